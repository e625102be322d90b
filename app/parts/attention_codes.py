"""What each code looked at while a generator wrote the item that is explained."""

from __future__ import annotations

import streamlit as st

from app import export, zoo
from app.analysis import beam_search
from app.figures import attention as figures
from app.text import clean, md
from app.widgets import choice, explained
from engine.runtime import Zoo

_DRAWN = 60  # positions; the table has all
_WEIGHT = st.column_config.NumberColumn(format="%.4f")


def written(models: Zoo, name: str, history: tuple[int, ...], by_code: bool) -> dict[int, float] | None:
    """Draws the section; returns place in the history → mean weight, None where there is nothing to write."""
    st.subheader("What the written codes looked at")
    item = explained.wanted(models, name, history)
    if item is None:
        st.info("The model has nothing left to recommend after this history, so there are no codes to look at.")
        return None
    bundle = models.bundles[name]
    writes = bundle.manifest.generator
    assert writes is not None
    found = beam_search.cross_attention(models, name, history, item)
    layers = {"mean": "Mean", **{str(layer): str(layer) for layer in range(1, writes.layers + 1)}}
    layer = "mean"
    if writes.layers > 1:
        layer = choice.segmented("Layer of the decoder", "decoder", layers, "mean", key=f"attention_decoder_{name}")
    titles = {event: zoo.titled(models, event) for event in found.items}
    own = None if layer == "mean" else int(layer) - 1
    whole, events, places = beam_search.weights(found, titles, own, False)  # type: ignore[arg-type]
    shares, called = whole, events
    if by_code:
        shares, called, _ = beam_search.weights(found, titles, own, True)  # type: ignore[arg-type]
    title = bundle.manifest.title
    st.markdown(beam_search.sentence(title, zoo.titled(models, item), whole, events))
    rows = beam_search.steps(found, writes.names)
    export.figure(
        figures.steps(shares[:, -_DRAWN:], called.latest(_DRAWN), rows),
        key="attention_written",
        alt=f"For each code of {clean(zoo.titled(models, item), 80)}, what {clean(title)} looked at in the history.",
        table=beam_search.wide(shares, called, rows),
        name=f"attention {name} written codes",
        columns={"mean": _WEIGHT},
    )
    note = "One column per code that was written, first to last; the attention of the decoder, mean over heads"
    note += f", layer {layer}." if layer != "mean" else " and layers."
    if by_code:
        note += " a, b, c, …: the codes of an item."
        if len(called) > _DRAWN:
            note += f" Drawn are the latest {_DRAWN} of {len(called):,} positions."
    st.caption(md(f"{note} Another item can be chosen under “Is that why?”."))
    return dict(zip(places, whole.mean(axis=0).tolist(), strict=True))
