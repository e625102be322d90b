"""Attention: what a model looked at while it read the history, and what its events really do."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import export, guard, zoo
from app.analysis import attention
from app.components import choice, item_picker
from app.figures import attention as figures
from app.screens.attention import attended, leave_one_out, weights, word_attention
from app.session import state
from app.text import clean, count, md
from engine.runtime import AttentionMap, Zoo, last_row

_UNITS = {"items": "Items", "codes": "Codes"}
_PEOPLE = {"distance": "By distance", "position": "Position by position"}
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
    history = state.numbers(models, now.current)
    if not history:
        item_picker.no_history("there is nothing to look at")
        return
    name = _choose(models)
    bundle = models.bundles[name]
    reason = bundle.cannot("attention")
    seen = looked_at = words = None
    writes = bundle.cannot("identifiers") is None
    by_code = writes and _unit() == "codes"
    if bundle.cannot("cross_attention") is None:
        with guard.watch("what the written codes looked at"):
            looked_at = weights.written_codes(models, name, history, by_code)
    elif writes:
        st.info(md(f"{bundle.cannot('cross_attention')}"), icon=":material/visibility_off:")
    if reason is None:
        codes = attention.attention(models, name, history)
        seen = attention.by_item(codes)
        shown = codes if by_code else seen
        called = _called(models, shown)
        if bundle.cannot("words") is None:
            with guard.watch("the words that the model looked at"):
                words = word_attention.show(models, name, history)
        elif looked_at is None:
            with guard.watch("what the model looked at"):
                _last(models, name, shown, called, len(history), writes)
        with guard.watch("the map"):
            weights.positions(models, name, shown, called, codes)
        with guard.watch("layers and heads"):
            weights.heads(name, shown)
    else:
        st.info(md(f"{bundle.manifest.title} has no attention to show. {reason}"), icon=":material/visibility_off:")
    with guard.watch("the effects"):
        leave_one_out.show(models, name, history, seen, looked_at, words)
    if bundle.manifest.text is not None and bundle.cannot("unseen_items") is None:
        with guard.watch("the item's own words"):
            word_attention.token_ablation(models, name, history)
    if seen is not None:
        with guard.watch("the mean over people"):
            _people(models, name, writes)


def _choose(models: Zoo) -> str:
    able = [name for name, bundle in models.bundles.items() if bundle.cannot("attention") is None]
    name = choice.segmented(
        "Model",
        "model",
        {
            name: f"{zoo.style(models, name).sign} {md(bundle.manifest.title)}"
            for name, bundle in models.bundles.items()
        },
        attended(models, state.get().own),
        key=f"attention_model_{models.info.name}",
        clears=("layer", "head", "decoder", "unit", "word_layer", "word_head"),
    )
    silent = [bundle for bundle in models.bundles.values() if bundle.cannot("attention") is not None]
    if silent and name in able:
        with st.expander(f"Why {count(len(silent), 'model')} cannot show attention", type="compact"):
            st.caption(
                "\n".join(
                    f"- **{md(bundle.manifest.title)}**: {md(bundle.cannot('attention') or '', 300)}"
                    for bundle in silent
                )
            )
    return name


def _called(models: Zoo, seen: AttentionMap) -> attention.Names:
    titles = {item: zoo.titled(models, item) for item in seen.items if item is not None}
    return attention.names(seen.positions, seen.items, titles, seen.levels)  # type: ignore[arg-type]


def _unit() -> str:
    """Whether a model that reads codes is shown by items or by codes."""
    return choice.segmented(
        "Positions",
        "unit",
        _UNITS,
        "items",
        key="attention_unit",
        help="This model reads and writes every item as several codes. Items: codes are grouped. Codes: each is a position.",
    )


def _last(models: Zoo, name: str, seen: AttentionMap, called: attention.Names, length: int, writes: bool) -> None:
    title = models.bundles[name].manifest.title
    looked = last_row(seen)
    st.subheader("What the latest item looked at" if writes else "What the prediction looked at")
    sentence = attention.sentence(title, looked, called, seen.pooled)
    st.markdown(sentence)
    shown, whole = attention.strongest(looked, called)
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
    read = len({place for place in seen.positions if place is not None})
    note = f"This is {where}, averaged over heads; it sums to {looked.sum():.2f}."
    if writes:
        note += " The codes are written by a decoder that reads all rows."
    if read < length:
        note += f" {title} attends to the latest {read} of {count(length, 'item')}."
    st.caption(md(note))


def _people(models: Zoo, name: str, writes: bool) -> None:
    st.subheader("Over many people")
    profile = attention.profile(models, name)
    if profile is None:
        st.info(
            "No mean over people: the dataset comes without histories, or they are too short. "
            "Export it with people's histories to see it."
            if models.has_log
            else "No mean over people: this is a catalogue without a log."
        )
        return
    title = models.bundles[name].manifest.title
    st.markdown(attention.distance_words(profile, title))
    how = choice.segmented(
        "Show as", "people", _PEOPLE, "distance", key="attention_people", label_visibility="collapsed"
    )
    paper = how == "position"
    export.figure(
        figures.by_position(profile) if paper else figures.by_distance(profile),
        key="attention_people_map" if paper else "attention_people_lines",
        alt=f"Mean attention of {clean(title)} by how far back an item is, over {count(profile.people, 'person', 'people')}.",
        table=attention.distances(profile),
        name=f"attention {name} over people",
        columns={"weight": _WEIGHT, "even": _WEIGHT, "back": st.column_config.NumberColumn("items back")},
    )
    st.caption(
        md(
            f"Mean over the {profile.people} of {profile.asked} people drawn at random (seed 0) whose histories fill "
            f"{len(profile.back)} positions, and over heads. After the figure in the SASRec paper (Kang & McAuley 2018)."
            + (" Here it is what the latest item looks at, its codes taken together." if writes else "")
        )
    )


page()
