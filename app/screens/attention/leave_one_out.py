"""What the removal of each event of the history does to the rank of an item, which may be any of the catalogue."""

import plotly.graph_objects as go
import streamlit as st

from app import export, glossary, zoo
from app.analysis import attention, recommend
from app.analysis.word_attention import Parts
from app.components import widgets
from app.figures import attention as figures
from app.text import clean, md
from engine.runtime import AttentionMap, Zoo

_MANY = 30  # events that are drawn; the table has all


def show(
    models: Zoo,
    name: str,
    history: tuple[int, ...],
    item: int,
    seen: AttentionMap | None,
    looked_at: dict[int, float] | None = None,
    words: Parts | None = None,
) -> None:
    """Leave-one-out for one item, beside the attention. seen: of items; None where the model does not attend.

    looked_at: place in the history → weight, where it is known for this very item. words: what the items got by attribute, where
    the model reads words.
    """
    st.markdown(
        "Attention is not an explanation: other weights can give the same answer (Jain & Wallace 2019), though it may still "
        "be a plausible account (Wiegreffe & Pinter 2019). So test the model itself: **remove one event and see how the item’s "
        "rank changes.**"
        if seen is not None
        else "For every model: **remove one event and see how the item’s rank changes.**",
        help=glossary.tooltip("Leave-one-out effect"),
    )
    with st.spinner("Asking the model without each event …"):
        effects = recommend.leave_one_out(models, name, history, item)
    titles = {event: zoo.titled(models, event) for event in history}
    if words is not None:
        looked_at = words.by_place()
    table = attention.beside(seen, effects, titles, history, looked_at)  # type: ignore[arg-type]
    aimed = zoo.titled(models, item)
    st.markdown(attention.effect_words(table, aimed))
    if seen is not None:
        st.markdown(attention.agreement_words(table))
    shown = table.tail(_MANY)
    split: list[go.Bar] = []  # the attention of the events that are drawn, by attribute
    if words is not None and not shown.empty:
        split = figures.stacked(words.only([int(position) - 1 for position in shown["position"]]))
    export.figure(
        figures.effects(shown, zoo.style(models, name).colour, split, widgets.on_phone()),
        key="attention_effects",
        alt=f"For each event, the rank of {clean(aimed)} without it" + (", beside its attention." if seen else "."),
        table=table,
        name=f"leave one out {name}",
        columns={
            "weight": widgets.FOUR_DIGITS,
            "log_probability": widgets.SIGNED,
            "score": widgets.SIGNED,
        },
    )
    note = (
        "Bars: change of the rank, on a log scale; to the right: the event raises the item. "
        "Candidates are always those of the whole history. Log-probability, or "
        "score: with the event minus without it; its sign can differ from the rank’s, where other items change more."
    )
    if words is not None:
        note += " Attention: of the layer and head chosen under Attention weights."
    if len(shown) < len(table):
        note += f" Shown: the latest {len(shown)} of {len(table)} events; the table has all."
    st.caption(md(note))
