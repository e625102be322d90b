"""What a model looked at while it read the history, and what its events really do."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from app import export, guard, state, zoo
from app.text import clean, count, md
from app.views import attention as views
from app.views import attention_answers as answers
from app.views import attention_figures as figures
from engine.runtime import AttentionMap, Zoo, last_row

_KEEP: Any = "session"
_MANY = 30  # events that are drawn; the table has all
_VIEWS: dict[views.View, str] = {"mean": "Mean over heads", "head": "One head", "rollout": "Rollout"}
_SCALES = {"fit": "Fit", "unit": "0 to 1", "rows": "Per row"}
_WEIGHT = st.column_config.NumberColumn(format="%.4f")


def page() -> None:
    st.title("Attention")
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    st.markdown(
        "What a model mixed into its answer while it read the history. A way to look inside; by itself no explanation."
    )
    if not models.bundles:
        st.info("There is no model to look into: this dataset has no bundles yet. Export one with `seqscope export`.")
        return
    history = state.numbers(models, now.history)
    if not history:
        st.info("No history yet, so there is nothing to look at. Load an example, or add items in the sidebar.")
        st.button("Load an example", on_click=guard.callback(state.reset), type="primary")
        return
    name = _choose(models)
    bundle = models.bundles[name]
    reason = bundle.cannot("attention")
    seen = None
    if reason is None:
        seen = answers.attention(models, name, history)
        with guard.watch("what the model looked at"):
            _last(models, name, seen, len(history))
        with guard.watch("the map"):
            _map(models, name, seen)
        with guard.watch("layers and heads"):
            _heads(name, seen)
    else:
        st.info(md(f"{bundle.manifest.title} has no attention to show. {reason}"), icon=":material/visibility_off:")
    with guard.watch("the effects"):
        _effects(models, name, history, seen)
    if seen is not None:
        with guard.watch("the mean over people"):
            _people(models, name)


def _choose(models: Zoo) -> str:
    able = [name for name, bundle in models.bundles.items() if bundle.cannot("attention") is None]
    name = st.segmented_control(
        "Model",
        list(models.bundles),
        default=(able or list(models.bundles))[0],
        format_func=lambda name: f"{zoo.style(models, name).sign} {md(models.bundles[name].manifest.title)}",
        required=True,
        key=f"attention_model_{models.info.name}",
        persist_state=_KEEP,
    )
    silent = [bundle for bundle in models.bundles.values() if bundle.cannot("attention") is not None]
    if silent and name in able:
        words = " ".join(f"{bundle.manifest.title}: {bundle.cannot('attention')}" for bundle in silent)
        st.caption(md(f"Without attention — {words}", 2_000))
    return name if name in models.bundles else next(iter(models.bundles))


def _called(models: Zoo, seen: AttentionMap) -> views.Names:
    titles = {item: zoo.titled(models, item) for item in seen.items if item is not None}
    return views.names(seen.positions, seen.items, titles)  # type: ignore[arg-type]


def _last(models: Zoo, name: str, seen: AttentionMap, length: int) -> None:
    title = models.bundles[name].manifest.title
    called, looked = _called(models, seen), last_row(seen)
    st.subheader("What the prediction looked at")
    sentence = views.sentence(title, looked, called, seen.pooled)
    st.markdown(sentence)
    shown, whole = views.strongest(looked, called)
    export.figure(
        figures.bars(shown, zoo.style(models, name).colour, float(looked.sum()) / len(looked)),
        key="attention_last",
        alt=f"Attention of {clean(title)} by position, oldest on top; most at {called.titles[int(np.argmax(looked))]}.",
        table=whole,
        name=f"attention {name} last row",
        columns={"weight": _WEIGHT},
    )
    where = (
        "the mean over all rows, because the model averages them" if seen.pooled else "the last row of the last layer"
    )
    read = len([place for place in seen.positions if place is not None])
    note = f"This is {where}, averaged over heads; it sums to {looked.sum():.2f}."
    if read < length:
        note += f" {title} attends to the latest {read} of {count(length, 'item')}."
    st.caption(md(note))


def _map(models: Zoo, name: str, seen: AttentionMap) -> None:
    st.subheader("Position by position")
    wide, narrow = st.columns([3, 1], gap="large")
    with narrow:
        view: views.View = st.segmented_control(
            "Show",
            list(_VIEWS),
            default="mean",
            wrap=True,
            format_func=_VIEWS.__getitem__,
            required=True,
            key="attention_view",
            persist_state=_KEEP,
        )
        layer, head = seen.layers - 1, 0
        if view != "rollout" and seen.layers > 1:
            layer = _number("Layer", seen.layers, seen.layers - 1, f"attention_layer_{name}")
        if view == "head" and seen.heads > 1:
            head = _number("Head", seen.heads, 0, f"attention_head_{name}")
        scale = st.segmented_control(
            "Colours",
            list(_SCALES),
            default="fit",
            wrap=True,
            format_func=_SCALES.__getitem__,
            required=True,
            key="attention_scale",
            help="Fit: up to the largest weight shown. 0 to 1: comparable between maps. Per row: by its own largest weight.",
            persist_state=_KEEP,
        )
        most = min(len(seen), views.MAX_POSITIONS)
        many = most
        if most > 2:
            many = st.slider("Latest positions", 2, most, min(most, 40), key=f"attention_many_{most}")
        weights = views.matrix(seen, view, layer, head)
        st.caption(md(views.sums(weights, many)))
        st.caption(md(_how(seen, view, layer, head)))
    called = _called(models, seen).latest(many)
    part, top = views.scaled(weights[-many:, -many:], scale)
    with wide:
        export.figure(
            figures.heatmap(part, called, top, "weight" if scale != "rows" else "share of the row's largest"),
            key="attention_map",
            alt=f"{_VIEWS[view]} of {clean(models.bundles[name].manifest.title)}: {many} by {many} positions, oldest first.",
            table=views.wide(weights[-many:, -many:], called),
            name=f"attention {name} {view} layer {layer + 1} head {head + 1}"
            if view == "head"
            else f"attention {name} {view}",
        )


def _number(words: str, many: int, default: int, key: str) -> int:
    options = list(range(many))
    if many <= 6:
        found = st.segmented_control(
            words,
            options,
            default=default,
            format_func=lambda at: str(at + 1),
            required=True,
            key=key,
            persist_state=_KEEP,
        )
    else:
        found = st.selectbox(
            words, options, index=default, format_func=lambda at: str(at + 1), key=key, persist_state=_KEEP
        )
    return default if found is None else int(found)


def _how(seen: AttentionMap, view: views.View, layer: int, head: int) -> str:
    words = "Rows look, columns are looked at; oldest to newest, downwards and to the right."
    if seen.causal:
        words += " Above the diagonal is blank: a position cannot see later ones."
    if seen.masked_diagonal and view != "rollout":
        words += " The diagonal is blank: a position does not look at itself."
    if seen.next_token:
        words += " The last row is the position of the next item, from which the model predicts."
    if view == "rollout":
        words += (
            " Rollout (Abnar & Zuidema 2020): layers multiplied, each taken as half residual, 0.5 I + 0.5 A. An approximation: "
            "it leaves out the feed-forward layers"
            + (", and in causal models it drifts towards early positions." if seen.causal else ".")
        )
    elif view == "head":
        words += f" Layer {layer + 1} of {seen.layers}, head {head + 1} of {seen.heads}."
    else:
        words += f" Layer {layer + 1} of {seen.layers}, mean over {count(seen.heads, 'head')}."
    return words


def _heads(name: str, seen: AttentionMap) -> None:
    st.subheader("Layers and heads")
    table = views.by_head(seen)
    if len(table) > 1:
        export.figure(
            figures.small_maps(seen.weights, float(np.nanmax(seen.weights))),
            key="attention_small",
            alt=f"Attention maps of {count(seen.layers, 'layer')} and {count(seen.heads, 'head')} per layer, with one scale.",
            table=table,
            name=f"attention {name} heads",
        )
    else:
        st.caption("The model has one layer with one head, so there are no others to set beside it.")
    st.dataframe(
        table,
        hide_index=True,
        alt="Entropy and mean distance of every head.",
        column_config={
            "layer": st.column_config.NumberColumn("Layer", format="%d"),
            "head": st.column_config.NumberColumn("Head", format="%d"),
            "entropy": st.column_config.NumberColumn(
                "Entropy, bits", format="%.2f", help="Mean over positions with a choice."
            ),
            "spread": st.column_config.ProgressColumn(
                "Spread",
                format="%.2f",
                min_value=0,
                max_value=1,
                help="Entropy over the largest possible: 0 one position, 1 all alike.",
            ),
            "distance": st.column_config.NumberColumn(
                "Mean distance", format="%.1f", help="Positions between looking and looked at."
            ),
            "last": st.column_config.NumberColumn(
                "Last row, bits", format="%.2f", help="Entropy of the last position."
            ),
        },
        key="attention_heads_table",
    )


def _effects(models: Zoo, name: str, history: tuple[int, ...], seen: AttentionMap | None) -> None:
    st.subheader("Is that why?")
    st.markdown(
        "Attention is not an explanation: other weights can give the same answer (Jain & Wallace 2019), though it may still "
        "be a plausible account (Wiegreffe & Pinter 2019). So ask the model itself: **remove one event and see what happens "
        "to the score.**"
        if seen is not None
        else "Every model can be asked directly: **remove one event and see what happens to the score.**"
    )
    best = [int(item) for item in zoo.top(models, name, history, 10).items]
    truth = state.target(models)
    options = best + ([truth] if truth is not None and truth not in best else [])
    if not options:
        st.info("The model has nothing left to recommend after this history, so there is no score to look at.")
        return
    places = {item: f"{place}. " for place, item in enumerate(best, 1)}
    item = st.selectbox(
        "For which item?",
        options,
        format_func=lambda item: clean(
            f"{places.get(item, '')}{zoo.titled(models, item)}{' (what truly came next)' if item == truth else ''}", 120
        ),
        key=f"attention_item_{name}",
        filter_mode=None,
    )
    item = item if item in options else options[0]
    with st.spinner("Asking the model without each event …"):
        found = zoo.leave_one_out(models, name, history, item)
    titles = {event: zoo.titled(models, event) for event in history}
    table = views.beside(seen, found, titles, history)  # type: ignore[arg-type]
    aimed = zoo.titled(models, item)
    st.markdown(views.effect_words(table, aimed, found.rank))
    if seen is not None:
        st.markdown(views.agreement_words(table))
    shown = table.tail(_MANY)
    export.figure(
        figures.effects(shown, zoo.style(models, name).colour),
        key="attention_effects",
        alt=f"For each event, what its removal does to the score of {clean(aimed)}"
        + (", beside its attention." if seen else "."),
        table=table,
        name=f"leave one out {name}",
        columns={"weight": _WEIGHT, "effect": st.column_config.NumberColumn(format="%+.4f")},
    )
    note = "Effect: the score with the event minus that without it, in the model's units; to the right it speaks for the item."
    if len(shown) < len(table):
        note += f" Drawn are the latest {len(shown)} of {len(table)} events; the table has all."
    st.caption(md(note))


def _people(models: Zoo, name: str) -> None:
    st.subheader("Over many people")
    profile = answers.profile(models, name)
    if profile is None:
        st.info(
            "No mean over people: the dataset comes without histories, or they are too short. "
            "Export it with people's histories to see it."
        )
        return
    title = models.bundles[name].manifest.title
    st.markdown(views.distance_words(profile, title))
    how = st.segmented_control(
        "Show as",
        ["By distance", "Position by position"],
        default="By distance",
        required=True,
        key="attention_people",
        label_visibility="collapsed",
        persist_state=_KEEP,
    )
    paper = how == "Position by position"
    export.figure(
        figures.by_position(profile) if paper else figures.by_distance(profile),
        key="attention_people_map" if paper else "attention_people_lines",
        alt=f"Mean attention of {clean(title)} by how far back an item is, over {profile.people} people.",
        table=views.distances(profile),
        name=f"attention {name} over people",
        columns={"weight": _WEIGHT, "even": _WEIGHT, "back": st.column_config.NumberColumn("items back")},
    )
    st.caption(
        md(
            f"Mean over the {profile.people} of {profile.asked} people drawn at random (seed 0) whose histories fill "
            f"{len(profile.back)} positions, and over heads. After the figure in the SASRec paper (Kang & McAuley 2018)."
        )
    )


page()
