"""Compare: one history, every model's next items side by side, and what happens to them when the history changes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import examples, export, guard, run_queue, styles, zoo
from app.analysis import beam_search, next_in_log, recommend, usual_models
from app.bars import BARS
from app.components import widgets
from app.figures import compare
from app.screens.compare import actions
from app.screens.compare import beam_search as beams
from app.session import history_edits, state
from app.text import clean, count, listed, md, ordinal
from engine.runtime import Zoo


def show() -> None:
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    history = state.numbers(models, now.history)
    edited = None if now.variant is None else state.numbers(models, now.variant)
    target = state.target(models)

    _head(models, now, history if edited is None else edited)
    if not models.bundles:
        _refused(models)
        st.info("No model of this dataset can be opened, so there is nothing to compare.", icon=":material/info:")
        return
    _what_if(models, history, edited)
    names = _chosen_models(models)
    current = history if edited is None else edited
    answers = recommend.ask(models, names, current, now.k, pinned=None if edited is None else history, target=target)
    why = _why(models, answers)
    with guard.watch("what people had next"):
        _next_in_log(models, current)
    st.caption(BARS, help=_SHARE)
    widgets.recommendations(
        compare.cards(models, answers, current, target=target, chosen=why),
        key="compare_lists",
        on_act=guard.callback(actions.clicked),
    )
    run_queue.RUNS.others_first()
    if target is not None:
        st.markdown(compare.truth_words(models, answers, target))
    export.under(
        lambda: recommend.lists_table(models, answers),
        key="compare_lists",
        alt=f"The first {now.k} items of {count(len(answers), 'model')}",
        name=f"recommendations {now.dataset}",
        columns={"share": st.column_config.NumberColumn("share", format="percent", help=_SHARE)},
    )
    _refused(models)
    with guard.watch("the agreement"):
        _agreement(answers, now.k)
    with guard.watch("the beams"):
        beams.show(models, [answer.name for answer in answers if answer.cannot is None], current, now.k)
    with guard.watch("the reasons"):
        _reasons(models, answers, current, why)


_SHARE = (
    "Softmax of the scores over all items that could be recommended. Popularity and the Markov chain: counts over their sum. "
    "Generative models: the probability of the item’s semantic ID, which items in collision have in common. "
    "Models trained with sampled negatives are too sure of themselves; AttRec ranks by distance and gives none."
)


def _head(models: Zoo, now: state.State, history: tuple[int, ...]) -> None:
    person = now.user if now.variant is None and examples.user_row(models, now.user) is not None else None
    if person is not None:
        st.title(
            f"What {'else' if models.info.sets else 'did'} {md(person, 60)} choose{'' if models.info.sets else ' next'}?"
        )
    elif history:
        st.title(f"Given {'this item' if len(history) == 1 else f'these {len(history)} items'}, what comes next?")
    else:
        st.title("What comes next for somebody nobody knows?")
    words = next((example.why for example in examples.of(models) if example.history == now.current), None)
    notes = [md(models.info.title)]
    if models.info.simulated and "simulated" not in models.info.title.lower():
        notes.append("simulated people")
    if now.variant is not None:
        notes.append("B, the edited history")
    if person is not None:
        notes.append(
            f"a held-out history: no model has seen {'the held-out items' if models.info.sets else 'what came next'}"
        )
    st.caption(" · ".join([*notes, *([md(words)] if words else [])]))


def _next_in_log(models: Zoo, history: tuple[int, ...]) -> None:
    words = next_in_log.sentence(models, history)
    if words:
        st.markdown(words, help=next_in_log.definition(models))


def _refused(models: Zoo) -> None:
    if models.refused:
        title = f"{count(len(models.refused), 'model')} could not be opened; the others go on working"
        lines = "\n".join(f"- {md(refusal, 1_000)}" for refusal in models.refused)
        st.warning(lines, title=title, icon=":material/error:")


# --- what if


def _what_if(models: Zoo, history: tuple[int, ...], edited: tuple[int, ...] | None) -> None:
    """The history, and the edited one next to it; the experiments."""
    with st.container(border=True, key="compare_histories"):
        if edited is None:
            st.markdown(compare.path(models, history) if history else ":gray[The history is empty.]")
        else:
            st.markdown(f"**A** :gray[pinned]  {compare.path(models, history) or ':gray[empty]'}")
            st.markdown(f"**B** :gray[edited]  {compare.path(models, edited) or ':gray[empty]'}")
        _experiments(models, history if edited is None else edited, edited is not None)


def _experiments(models: Zoo, now: tuple[int, ...], is_edited: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(":gray[What if …]" if not is_edited else ":gray[and then …]", width="content")
        quick = (
            ("the last item were gone", "drop_last", 1),
            ("the last two were swapped", "swap_last", 2),
            ("all were shuffled", "shuffle", 2),
            ("nothing were known", "nothing", 1),
        )
        for words, experiment, least in quick:
            st.button(
                words,
                key=f"compare_{experiment}",
                disabled=len(now) < least,
                on_click=guard.callback(actions.experiment),
                args=(experiment,),
            )
        more = st.popover("More …", key="compare_more", on_change="rerun", disabled=not now)
        if more.open:
            with more:
                _more(models, now)
        if is_edited:
            st.button(
                "Keep B",
                key="compare_keep",
                icon=":material/check:",
                on_click=guard.callback(actions.keep),
                help="B becomes the history",
            )
            st.button("Back to A", key="compare_back", icon=":material/undo:", on_click=guard.callback(actions.back))


def _more(models: Zoo, now: tuple[int, ...]) -> None:
    """Experiments that need to be told what with."""
    places = list(range(len(now)))

    def called(place: int) -> str:
        return f"{place + 1}  {clean(models.titles[now[place]], 60)}" if 0 <= place < len(now) else "–"

    kind = st.selectbox("Experiment", history_edits.KINDS, key="compare_kind")
    if kind in ("Remove one", "Swap two", "Replace one by its nearest neighbour"):
        st.selectbox("Item", places, format_func=called, key="compare_first", index=len(places) - 1)
    if kind == "Swap two":
        st.selectbox("and", places, format_func=called, key="compare_second")
    if kind == "Keep the latest":
        st.number_input("Number of items", 1, max(1, len(now)), min(3, len(now)), key="compare_count")
    if kind == "Replace one by its nearest neighbour":
        able = [name for name, bundle in models.bundles.items() if bundle.cannot("neighbours") is None]
        if not able:
            st.caption("None of these models has item vectors to compare.")
            return
        st.selectbox(
            "Nearest in the space of", able, format_func=lambda name: _space(models, name), key="compare_space"
        )
    st.button("Do it", key="compare_do", type="primary", on_click=guard.callback(actions.experiment), args=("told",))


# --- models


_FEW = 8
"""So many models stand side by side to choose from; more are behind a button, by what they go by."""


def _chosen_models(models: Zoo) -> list[str]:
    """Which models are shown, from the address; at least one."""
    names, shown = list(models.bundles), usual_models.shown(models, state.get().models)
    if len(names) > _FEW:
        with st.container(horizontal=True, gap="small", key="compare_models_row"):
            _pills(models, "Models", shown, shown, "compare_models")
            with st.popover(f"All {len(names)} models …", icon=":material/tune:"):
                for kind, some in usual_models.by_kind(models).items():
                    _pills(models, kind, some, shown, f"compare_models_{kind}", label_visibility="visible")
    elif len(names) > 1:
        _pills(models, "Models", names, shown, "compare_models")
    return shown


def _pills(models: Zoo, label: str, names: list[str], shown: list[str], key: str, **more: Any) -> None:
    """Some of the models, those that are shown among them pressed."""
    st.session_state[key] = [name for name in names if name in shown]
    st.pills(
        label,
        names,
        selection_mode="multi",
        format_func=lambda name: f"{zoo.style(models, name).sign} {md(_title(models, name))}",
        key=key,
        wrap=True,
        on_change=guard.callback(actions.choose_models),
        args=(key, tuple(names)),
        **{"label_visibility": "collapsed"} | more,
    )


def _space(models: Zoo, name: str) -> str:
    return clean(styles.space(models.bundles[name]), 60) if name in models.bundles else name


def _title(models: Zoo, name: str) -> str:
    return clean(models.bundles[name].manifest.title, 60) if name in models.bundles else name


# --- agreement and reasons


def _agreement(answers: list[recommend.Answer], k: int) -> None:
    st.subheader("How much do they agree?")
    if len({answer.title for answer in answers if answer.top is not None}) < 2:
        st.markdown(recommend.agreement_words(answers, k))
        return
    said, shown = st.columns([2, 3], gap="large")
    with said:
        measure = _measure(answers, k)
    with shown:
        export.figure(
            compare.agreement(recommend.agreement(answers, k, [measure]), measure, k),
            key="compare_agreement",
            alt=f"{_MEASURES[measure]} of each pair of models among their first {k} items",
            table=lambda: recommend.agreement(answers, k).query("first != second"),
            name="agreement",
            columns={
                "jaccard": st.column_config.NumberColumn("Jaccard", format="%.3f"),
                "rbo": st.column_config.NumberColumn("RBO", format="%.3f"),
            },
        )


_MEASURES = {"shared": "Shared items", "jaccard": "Jaccard", "rbo": "Order (RBO)"}


def _measure(answers: list[recommend.Answer], k: int) -> str:
    """What the figure shows, chosen beside it."""
    st.markdown(recommend.agreement_words(answers, k))
    chosen = st.segmented_control(
        "Measure",
        list(_MEASURES),
        format_func=lambda measure: _MEASURES.get(measure, measure),
        default="shared",
        required=True,
        key="compare_measure",
        label_visibility="collapsed",
        persist_state="session",
    )
    if chosen == "rbo":
        st.caption(recommend.rbo_words(k))
    elif chosen == "jaccard":
        st.caption("Jaccard: shared items over all items of either list.")
    else:
        st.caption(f"How many of the first {k} items two models share.")
    return chosen if chosen in _MEASURES else "shared"


def _why(models: Zoo, answers: list[recommend.Answer]) -> int | None:
    """The item to explain: the one that is selected, else the first one of the first list."""
    item = state.selected(models)
    if item is not None:
        return item
    return next((answer.items[0] for answer in answers if answer.items), None)


def _reasons(models: Zoo, answers: list[recommend.Answer], history: tuple[int, ...], item: int | None) -> None:
    st.subheader("Why this item?", anchor="why")
    if item is None or not history:
        st.markdown("With a history, this shows what each of its items does for a recommendation.")
        return
    st.markdown(
        f"**{md(zoo.titled(models, item))}**: where it would stand if one item of the history were left out. Bars to the right: "
        "it would fall, so that item speaks for it; to the left: it would rise. They are moves of its rank, on one log scale."
    )
    slow = [
        answer for answer in answers if answer.cannot is None and beam_search.slow(models, answer.name, len(history))
    ]
    if slow and state.get().own.get("slow") != "asked":
        names = listed([md(answer.title) for answer in slow])
        st.button(
            f"Ask {names}, too",
            key="compare_slow",
            help="Every item of the catalogue is written anew for each event left out, which takes a while.",
            on_click=guard.callback(state.choose),
            kwargs={"slow": "asked"},
        )
        answers = [answer for answer in answers if answer not in slow]
    reasons = recommend.why(models, answers, history, item)
    if reasons.effects:
        ranks = ", ".join(
            f"{md(a.title)} {ordinal(e.rank)}" for a, e in zip(reasons.answers, reasons.effects, strict=True)
        )
        st.caption(f"{compare.key_words(reasons.answers)}  ·  ranks now: {ranks}")
        figure, left_out = compare.effects(models, reasons, history)
        export.figure(
            figure,
            key="compare_effects",
            alt=f"What leaving out each item of the history does to the rank of {clean(models.titles[item], 80)}, per model",
            table=lambda: recommend.why_table(models, reasons, history),
            name=f"leave one out {models.item_ids[item]}",
        )
        if left_out:
            st.caption(left_out)
    for name, parts in reasons.sums.items():
        title = f"**{md(models.bundles[name].manifest.title)}**"
        st.markdown(recommend.sum_words(title, parts, [md(styles.titled(models, event)) for event in history]))
    _look_inside(models, answers, item)
    for reason in reasons.cannot:
        st.caption(md(reason))
    st.caption("Choose another title in the lists to see its reasons.")


def _look_inside(models: Zoo, answers: list[recommend.Answer], item: int) -> None:
    """Links to Attention, a model each: the same item after the same history."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="compare_inside"):
        st.caption("Look inside on Attention:", width="content")
        for answer in answers:
            if answer.cannot is not None:
                continue
            st.page_link(
                "screens/attention/page.py",
                label=f"{zoo.style(models, answer.name).sign} {md(answer.title)}",
                icon=":material/visibility:",
                help="This item, this history and this model on the page Attention.",
                query_params=state.link_params(model=answer.name, item=models.item_ids[item]),
            )


show()
