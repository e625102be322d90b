"""Compare: one history, every model's next items side by side, and what happens to them when the history changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from app import examples, export, glossary, guard, styles, zoo
from app.analysis import model_card, next_in_log, recommend
from app.analysis.recommend import BARS
from app.components import choice, history, sections, widgets
from app.figures import compare
from app.screens.compare import SECTIONS, VIEWS, actions
from app.screens.compare import beam_search as beams
from app.server import early, run_queue
from app.session import history_edits, state
from app.text import clean, distinct, md
from engine.runtime import Zoo
from engine.writing import count


def show() -> None:
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    question = Question.of(models, now)
    current, pinned, target = question
    looked_at = state.numbers(models, now.current)

    _head(models, now, looked_at)
    next_item = st.empty()
    if target is not None:  # at once; where the models rank it once they have answered
        next_item.markdown(compare.truth_words(models, [], target))
    history.choose()
    history.show(beside=partial(_experiments, models, looked_at), on_add=actions.add_found)
    if not models.bundles:
        _refused(models)
        st.info("No model of this dataset can be opened, so there is nothing to compare.", icon=":material/info:")
        return
    names, view = _chosen_models(models)
    answers = ask(models, names, now, question)
    if target is not None:
        next_item.markdown(compare.truth_words(models, answers, target, side="" if pinned is None else "B"))
    with st.container(key="compare_answers"):
        _lists(models, answers, question, view)
    run_queue.RUNS.others_first()
    _refused(models)
    _sections(models, answers, current)
    actions.reveal_answers("compare_answers")


def _lists(models: Zoo, answers: list[recommend.Answer], question: Question, view: str) -> None:
    """Side by side, or as one table of ranks."""
    now, key = state.get(), f"compare_{view}"
    if question.pinned is not None:
        sides = {
            "lists": "Recommendations for B compared with those for A",
            "ranks": "Ranks for B; arrows compare with A",
        }
        st.caption(f"{sides[view]}. The sections below look at B.")
    shown = for_widget(models, answers, now, question, view)
    names = [answer.name for answer in answers]
    answered = partial(after, folder=zoo.folder(now.dataset), names=names, now=now, view=view)
    address = early.LINKS.offer("compare", answered)
    beams = md(recommend.approximate_lists(models, answers, now.k))
    if view == "lists":
        widgets.recommendations(shown["models"], key=key, on_act=actions.act, early=address)
        st.caption(f"{BARS} {beams} Click a title for details.", help=_SHARE)
    else:
        widgets.item_ranks(shown, key=key, on_act=actions.act, early=address)
        st.caption(
            "Rank of each item in each model, also beyond its list; stronger colour is nearer the top. "
            f"In the mean, ranks beyond {now.k} count as {now.k + 1}. {beams} Click a title for details."
        )


def _sections(models: Zoo, answers: list[recommend.Answer], current: tuple[int, ...]) -> None:
    """What stands behind the lists."""
    default = "beam" if "beam" in state.get().own else ""  # links of before there were sections
    with (
        sections.opened(SECTIONS, key="compare", default=default) as section,
        guard.watch(f"the section {SECTIONS[section]}"),
    ):
        if section == "overview":
            _overview(models, answers, current)
        elif section == "flow":
            if flows := compare.flows(models, answers, current):
                widgets.model_flow(flows, key="compare_flow")
            else:
                st.caption("No model has a list of this history, so there is no way to it.")
        elif section == "agreement":
            _agreement(answers, state.get().k)
        else:
            beams.show(models, answers, current, state.get().k)


def _overview(models: Zoo, answers: list[recommend.Answer], current: tuple[int, ...]) -> None:
    now = state.get()
    words = next_in_log.sentence(models, current)
    if words:
        st.markdown(words, help=next_in_log.definition(models))
    st.markdown(recommend.agreement_words(answers))
    export.under(
        lambda: recommend.lists_table(models, answers),
        key="compare_lists",
        alt=f"The first {now.k} items of {count(len(answers), 'model')}",
        name=f"recommendations {now.dataset}",
        columns={"share": st.column_config.NumberColumn("share", format="percent", help=_SHARE)},
    )


_SHARE = (
    "That the item comes next: softmax of the scores over all items that could be recommended. Popularity and the Markov chain: "
    "counts over their sum, so that next to nothing is left for what never followed. Mult-VAE and Mult-DAE: that an item which "
    "such a user has is this one, whenever it comes. "
    "Generative models: the probability of the item’s semantic ID, shared by items in collision. "
    "Models trained with sampled negatives are overconfident; those whose scores only order items, such as AttRec and item-kNN, "
    "give none."
)


def _head(models: Zoo, now: state.State, current: tuple[int, ...]) -> None:
    """current: the history that is looked at, A or B."""
    row = examples.user_row(models, now.user)
    user = now.user if now.variant is None and row is not None else None
    notes = [md(models.info.title)]
    if models.info.simulated and "simulated" not in models.info.title.lower():
        notes.append("simulated users")
    if user is not None:
        unseen = "the held-out items" if models.info.sets else "what came next"
        notes.append(f"a user’s history: no model has seen {unseen}")
        whole = len(models.users["history"][row])
        if whole > len(current):
            notes.append(f"the latest {len(current)} of its {whole:,} items; on Users, ranks are after all of them")
    st.caption(" · ".join(["Compare recommenders: edit the history and see what each model recommends", *notes]))
    if user is not None:
        sets = models.info.sets
        st.title(f"What {'else' if sets else 'did'} {md(user, 60)} choose{'' if sets else ' next'}?")
    elif current:
        items = "this item" if len(current) == 1 else f"these {len(current)} items"
        st.title(f"Given {items}{f' of {now.a_or_b}' if now.a_or_b else ''}, what comes next?")
    else:
        st.title(f"Cold start: an empty history{f' ({now.a_or_b})' if now.a_or_b else ''}")


def _refused(models: Zoo) -> None:
    if models.refused:
        title = f"{count(len(models.refused), 'model')} could not be opened; the others go on working"
        lines = "\n".join(f"- {md(refusal, 1_000)}" for refusal in models.refused)
        st.warning(lines, title=title, icon=":material/error:")


# --- what the models say: for a run of the page, and for an edit before it (app/server/early.py)


class Question(NamedTuple):
    """What the models are asked, as a state has it."""

    history: tuple[int, ...]
    """B where there is one, whichever is looked at."""
    pinned: tuple[int, ...] | None
    """A, where there is a B."""
    target: int | None

    @classmethod
    def of(cls, models: Zoo, now: state.State) -> Question:
        whole = state.numbers(models, now.history)
        if now.variant is None:
            return cls(whole, None, state.target(models, now))
        return cls(state.numbers(models, now.variant), whole, state.target(models, now))


def ask(models: Zoo, names: Sequence[str], now: state.State, question: Question) -> list[recommend.Answer]:
    return recommend.ask(models, names, question.history, now.k, pinned=question.pinned, target=question.target)


def for_widget(
    models: Zoo, answers: Sequence[recommend.Answer], now: state.State, question: Question, view: str
) -> dict[str, Any]:
    """The answers for `widgets.recommendations` ({"models"}) or, with the view "ranks", for `widgets.item_ranks`."""
    read, pinned, target = question
    chosen = None if now.item is None else models.position(now.item)
    if view == "lists":
        return {"models": compare.cards(models, answers, read, target=target, chosen=chosen)}
    table = recommend.rank_table(models, answers, read, now.k, pinned=pinned, target=target)
    return compare.rank_table(models, table, read, now.k, target=target, chosen=chosen)


def after(
    act: Mapping[str, Any], folder: str, names: Sequence[str], now: state.State, view: str
) -> dict[str, Any] | None:
    """The lists and the chips after a click that edits the history of this state; None where it edits none. folder: that of the
    models."""
    models, edited = zoo.open_folder(folder), history_edits.clicked(now.current, act)
    if edited is None or models.position(str(act.get("id"))) is None:
        return None
    now = state.edited(now, edited)
    question = Question.of(models, now)
    answers = ask(models, [name for name in names if name in models.bundles], now, question)
    return {"lists": for_widget(models, answers, now, question, view), "chips": history.chips(models, now)}


# --- what if


def _experiments(models: Zoo, now: tuple[int, ...]) -> None:
    """What would be if the history were another: A stays, B is edited."""
    with st.container(width="content", key="compare_whatif"):
        st.markdown(":gray[What if:]", width="content")
    for experiment, (words, least, _) in actions.EXPERIMENTS.items():
        st.button(
            words,
            key=f"compare_{experiment}",
            disabled=len(now) < least,
            on_click=guard.callback(actions.experiment, experiment),
        )
    more = st.popover("More …", key="compare_more", on_change="rerun", disabled=not now)
    if more.open:
        with more:
            _more(models, now)


def _more(models: Zoo, now: tuple[int, ...]) -> None:
    """Experiments that need to be told what with."""
    places = list(range(len(now)))

    def called(place: int) -> str:
        return f"{place + 1}  {clean(models.titles[now[place]], 60)}" if 0 <= place < len(now) else "–"

    def choose(label: str, key: str, usual: int) -> None:
        place = st.session_state.get(key)
        st.session_state[key] = place if place in places else usual  # anew: another item may stand there by now
        st.selectbox(label, places, format_func=called, key=key)

    kind = st.selectbox("Experiment", history_edits.KINDS, key="compare_kind")
    if kind in ("Remove one", "Swap two", "Replace one by its nearest neighbour"):
        choose("Item", "compare_first", len(now) - 1)
    if kind == "Swap two":
        choose("and", "compare_second", 0)
    if kind == "Keep the latest":
        st.number_input("Number of items", 1, max(1, len(now)), min(3, len(now)), key="compare_count")
    if kind == "Replace one by its nearest neighbour":
        able = [name for name, bundle in models.bundles.items() if bundle.cannot("neighbours") is None]
        if not able:
            st.caption("None of these models has item vectors to compare.")
            return
        spaces = distinct({name: clean(styles.space(models.bundles[name]), 60) for name in able})
        st.selectbox(
            "Nearest in the space of",
            able,
            format_func=lambda name: spaces.get(name, name),
            key="compare_space",
            help=glossary.tooltip("Neighbours"),
        )
    st.button("Apply", key="compare_do", type="primary", on_click=guard.callback(actions.experiment, "chosen"))


# --- models


_FEW = 8
"""So many models stand side by side to choose from; more are behind a button, by what they go by."""


def _chosen_models(models: Zoo) -> tuple[list[str], str]:
    """(the names of those that are shown, at least one; which of `VIEWS`), from the address."""
    names, shown = list(models.bundles), model_card.shown(models, state.get().models)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="compare_models_row"):
        if len(names) > 1:
            _pills(models, "Models", shown if len(names) > _FEW else names, shown, "compare_models")
        if len(names) > _FEW:
            every = st.popover(
                f"All {len(names)} models …", key="compare_models_all", on_change="rerun", icon=":material/tune:"
            )
            if every.open:
                with every:
                    for kind, some in model_card.by_kind(models).items():
                        _pills(models, kind, some, shown, f"compare_models_{kind}", label_visibility="visible")
        view = choice.segmented(
            "View",
            "view",
            VIEWS,
            "ranks" if widgets.on_phone() else "lists",  # on a phone one list at a time has room
            key="compare_view",
            label_visibility="collapsed",
        )
    return shown, view


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
        on_change=guard.callback(actions.choose_models, key, tuple(names)),
        **{"label_visibility": "collapsed"} | more,
    )


def _title(models: Zoo, name: str) -> str:
    return clean(models.bundles[name].manifest.title, 60) if name in models.bundles else name


# --- sections


def _agreement(answers: list[recommend.Answer], k: int) -> None:
    able = [answer for answer in answers if answer.top is not None]
    titles = [answer.title for answer in able]
    if len(titles) < 2:
        st.markdown(recommend.agreement_words(answers))
        return
    words, chart = st.columns([2, 3], gap="large")
    with words:
        measure = _measure(k)
    with chart:
        export.figure(
            compare.agreement(titles, recommend.MEASURES[measure]([answer.items for answer in able], k), measure, k),
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


def _measure(k: int) -> str:
    """What the figure shows, chosen beside it."""
    chosen = st.segmented_control(
        "Measure",
        list(_MEASURES),
        format_func=lambda measure: _MEASURES.get(measure, measure),
        default="shared",
        required=True,
        key="compare_measure",
        label_visibility="collapsed",
        persist_state="session",
        wrap=True,
    )
    if chosen == "rbo":
        st.caption(recommend.rbo_words(k), help=glossary.tooltip("RBO"))
    elif chosen == "jaccard":
        st.caption("Jaccard: shared items over all items of either list.")
    else:
        st.caption(f"How many of the first {k} items two models share.")
    return chosen if chosen in _MEASURES else "shared"


show()
