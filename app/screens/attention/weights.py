"""Attention weights: position by position, of every head, and of the codes that a generator wrote."""

from typing import cast

import numpy as np
import streamlit as st

from app import export, glossary, guard, zoo
from app.analysis import attention, beam_search
from app.components import choice, sections, widgets
from app.figures import attention as figures
from app.screens.attention import SCALES, VIEWS
from app.session import state
from app.text import clean, md
from engine.runtime import AttentionMap, Zoo
from engine.writing import count

_ROLLOUT = f"Rollout: {glossary.tooltip('Rollout')}"
_LATEST = 40  # positions that are drawn unless more are chosen


def positions(models: Zoo, name: str, seen: AttentionMap, called: attention.Names, codes: AttentionMap) -> None:
    """One map of weights beside the choices of what it shows. called: the names of all positions.

    codes: the same, before codes were grouped by item; `seen` itself where nothing was.
    """
    sections.heading("Position by position")
    wide, narrow = st.columns([5, 2], gap="large")
    with narrow:
        kinds = {kind: words for kind, words in VIEWS.items() if kind != "rollout" or seen.no_rollout is None}
        view = cast(
            attention.View,
            choice.segmented("Show", "view", kinds, "mean", key="attention_view", wrap=True, help=_ROLLOUT),
        )
        if seen.no_rollout is not None:
            st.caption(md(seen.no_rollout))
        layer, head = seen.layers, 1
        if view != "rollout":
            layer = choice.numbered("Layer", "layer", seen.layers, seen.layers, key="attention_layer")
        if view == "head":
            head = choice.numbered("Head", "head", seen.heads, 1, key="attention_head")
        scale = choice.segmented(
            "Colours",
            "scale",
            SCALES,
            "fit",
            key="attention_scale",
            wrap=True,
            help="Fit: up to the largest weight shown. 0 to 1: comparable between maps. Per row: by its own largest weight.",
        )
        most = min(len(seen), attention.MAX_POSITIONS)
        many = _latest(most) if most > 2 else most
        weights = attention.matrix(seen, view, layer - 1, head - 1)
        if view == "rollout" and codes is not seen:  # followed through the layers code by code
            weights = attention.by_item_of(codes, attention.matrix(codes, view, 0, 0))
        st.caption(md(attention.sums(weights, many)))
        st.caption(md(_how(seen, view, layer, head)))
        if codes.levels:
            st.caption(
                "Each item is several positions, one per code: a, b, c, …"
                if seen.levels
                else "The model reads an item as several codes. Here they are grouped: columns are summed over an item's codes, "
                "rows are averaged."
            )
    called = called.latest(many)
    part, top = attention.scaled(weights[-many:, -many:], scale)
    with wide:
        export.figure(
            figures.heatmap(
                part, called, top, "weight" if scale != "rows" else "share of the row's largest", widgets.on_phone()
            ),
            key="attention_map",
            alt=f"{VIEWS[view]} of {clean(models.bundles[name].manifest.title)}: {many} by {many} positions, oldest first.",
            table=attention.wide(weights[-many:, -many:], called),
            name=f"attention {name} {view} layer {layer} head {head}" if view == "head" else f"attention {name} {view}",
        )


def _latest(most: int) -> int:
    """How many positions are drawn, at most `most`."""
    key = f"attention_latest_{most}"
    st.session_state[key] = many = choice.number(state.get().own, "latest", _LATEST, most)
    st.slider("Latest positions", 2, most, key=key, on_change=guard.callback(_take_latest, key, most))
    return many


def _take_latest(key: str, most: int) -> None:
    latest = st.session_state.get(key)
    if isinstance(latest, int) and 2 <= latest <= most:
        state.choose(latest=str(latest))


def _how(seen: AttentionMap, view: attention.View, layer: int, head: int) -> str:
    """How to read the map, in words. layer, head: from 1."""
    words = "Rows are queries, columns are keys; oldest to newest, downwards and to the right."
    if seen.causal:
        words += (
            " Above the diagonal only the codes of one item see each other; the rest is blank, since no code sees later items."
            if attention.sees_whole_items(seen)
            else " Above the diagonal is blank: a position cannot see later ones."
        )
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
        words += f" Layer {layer} of {seen.layers}, head {head} of {seen.heads}."
    else:
        words += f" Layer {layer} of {seen.layers}, mean over {count(seen.heads, 'head')}."
    return words


def heads(name: str, seen: AttentionMap) -> None:
    """How widely and how far each head of each layer looks."""
    sections.heading("Layers and heads")
    table = attention.by_head(seen)
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
    widgets.table(
        table,
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


_DRAWN = 60  # positions; the table has all


def by_event(models: Zoo, name: str, history: tuple[int, ...], item: int) -> dict[int, float]:
    """Place in the history → what the codes that were generated looked at there, of the decoder's layer that is chosen."""
    writes = models.bundles[name].manifest.generator
    layer = choice.mean_or_number("decoder", writes.layers if writes is not None else 1, "mean")
    return beam_search.by_event(beam_search.cross_attention(models, name, history, item), layer)


def generated_codes(models: Zoo, name: str, history: tuple[int, ...], item: int, by_code: bool) -> None:
    """What each code of the item looked at in the history while it was generated."""
    sections.heading("What the generated codes looked at")
    bundle = models.bundles[name]
    writes = bundle.manifest.generator
    assert writes is not None
    cross_attention = beam_search.cross_attention(models, name, history, item)
    key = f"attention_decoder_{name}"
    layer = choice.mean_or_numbered("Layer of the decoder", "decoder", writes.layers, "mean", key=key)
    titles = {event: zoo.titled(models, event) for event in cross_attention.items}
    whole, events, _ = beam_search.weights(cross_attention, titles, layer, False)  # type: ignore[arg-type]
    shares, called = whole, events
    if by_code:
        shares, called, _ = beam_search.weights(cross_attention, titles, layer, True)  # type: ignore[arg-type]
    title = bundle.manifest.title
    st.markdown(beam_search.sentence(title, zoo.titled(models, item), whole, events))
    rows = beam_search.steps(cross_attention, writes.names)
    export.figure(
        figures.steps(shares[:, -_DRAWN:], called.latest(_DRAWN), rows, widgets.on_phone()),
        key="attention_written",
        alt=f"For each code of {clean(zoo.titled(models, item), 80)}, what {clean(title)} looked at in the history.",
        table=beam_search.wide(shares, called, rows),
        name=f"attention {name} generated codes",
        columns={"mean": widgets.FOUR_DIGITS},
    )
    note = "One column per code that was generated, first to last; the attention of the decoder, mean over heads"
    note += " and layers." if layer is None or writes.layers < 2 else f", layer {layer + 1}."
    if by_code:
        note += " a, b, c, …: the codes of an item."
        if len(called) > _DRAWN:
            note += f" Shown: the latest {_DRAWN} of {len(called):,} positions."
    st.caption(md(note))
