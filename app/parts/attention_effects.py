"""Is that why? What the removal of each event does to the rank of an item, which may be any of the catalogue."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import export, guard, state, zoo
from app.text import clean, md
from app.views import attention as views
from app.views import attention_figures as figures
from app.views import attention_words_figures as word_figures
from app.views.attention_words import Parts
from app.widgets import search
from engine.runtime import AttentionMap, Zoo

FIRST = 10  # of the model's best items are offered without a search
_MANY = 30  # events that are drawn; the table has all


def show(
    models: Zoo,
    name: str,
    history: tuple[int, ...],
    seen: AttentionMap | None,
    looked_at: dict[int, float] | None = None,
    words: Parts | None = None,
) -> None:
    """Leave-one-out for one item, beside the attention. seen: of items; None where the model does not attend.

    looked_at: place in the history → weight, where it is known for this very item. words: what the items got by attribute, where
    the model reads words.
    """
    st.subheader("Is that why?")
    st.markdown(
        "Attention is not an explanation: other weights can give the same answer (Jain & Wallace 2019), though it may still "
        "be a plausible account (Wiegreffe & Pinter 2019). So ask the model itself: **remove one event and see where the item "
        "stands then.**"
        if seen is not None
        else "Every model can be asked directly: **remove one event and see where the item stands then.**"
    )
    item = _item(models, name, history)
    if item is None:
        st.info("The model has nothing left to recommend after this history, so there is no item to look at.")
        return
    with st.spinner("Asking the model without each event …"):
        found = zoo.leave_one_out(models, name, history, item)
    titles = {event: zoo.titled(models, event) for event in history}
    if words is not None:
        looked_at = words.by_place()
    table = views.beside(seen, found, titles, history, looked_at)  # type: ignore[arg-type]
    aimed = zoo.titled(models, item)
    st.markdown(views.effect_words(table, aimed))
    if seen is not None:
        st.markdown(views.agreement_words(table))
    shown = table.tail(_MANY)
    export.figure(
        figures.effects(shown, zoo.style(models, name).colour, _split(words, shown)),
        key="attention_effects",
        alt=f"For each event, the rank of {clean(aimed)} without it" + (", beside its attention." if seen else "."),
        table=table,
        name=f"leave one out {name}",
        columns={
            "weight": st.column_config.NumberColumn(format="%.4f"),
            "log_probability": st.column_config.NumberColumn(format="%+.4f"),
            "score": st.column_config.NumberColumn(format="%+.4f"),
        },
    )
    note = (
        "Bars of the rank, on a log scale: to the right the item would fall without the event, so the event speaks for it. It "
        "is always ranked among the same items, those that could be recommended after the whole history. Log-probability, or "
        "score: with the event minus without it. It can point the other way, where other items gain or lose more."
    )
    if words is not None:
        note += " Attention: of the layer and head chosen above."
    if len(shown) < len(table):
        note += f" Drawn are the latest {len(shown)} of {len(table)} events; the table has all."
    st.caption(md(note))


def _split(words: Parts | None, shown: pd.DataFrame) -> list[go.Bar]:
    """The attention of the events that are drawn, by attribute."""
    if words is None or shown.empty:
        return []
    return word_figures.stacked(words.only([int(position) - 1 for position in shown["position"]]))


def wanted(models: Zoo, name: str, history: tuple[int, ...]) -> int | None:
    """The item that is explained: the one that was chosen, else the model's best; None where there is neither."""
    chosen = models.position(state.get().own["item"]) if "item" in state.get().own else None
    return chosen if chosen is not None else next(iter(zoo.top(models, name, history, FIRST).items.tolist()), None)


def _item(models: Zoo, name: str, history: tuple[int, ...]) -> int | None:
    """The item whose score is explained: one of the model's best, what truly came next, or any that is searched for.

    None where the model has nothing to recommend and nothing was chosen.
    """
    best = [int(item) for item in zoo.top(models, name, history, FIRST).items]
    truth = state.target(models)
    aimed = models.position(state.get().own["item"]) if "item" in state.get().own else None
    options = list(dict.fromkeys([*best, *(item for item in (truth, aimed) if item is not None)]))
    ranks = dict(zip(options, zoo.ranks(models, name, history, tuple(options)), strict=True)) if options else {}
    chosen = aimed if aimed is not None else next(iter(options), None)

    def called(item: int) -> str:
        note = " (what truly came next)" if item == truth else " (in the history)" if item in history else ""
        place = best.index(item) + 1 if item in best else ranks.get(item, 0)
        return clean(f"{place:,.0f}. {zoo.titled(models, item)}{note}", 120)

    listed, searched = st.columns(2, gap="medium")
    if chosen is not None:
        key = f"attention_item_{name}"
        st.session_state[key] = chosen
        listed.selectbox(
            "For which item?",
            options,
            format_func=called,
            key=key,
            filter_mode=None,
            on_change=guard.callback(_take),
            args=(key,),
            help="The model's best items, by rank; then what truly came next, where it is known, and the item you chose.",
        )
    with searched:
        search.item("Or any other one", key="attention", act="pick", on_pick=_choose, icon=":material/my_location:")
    return chosen


def _take(key: str) -> None:
    item, models = st.session_state.get(key), zoo.open_zoo(state.get().dataset)
    if isinstance(item, int) and 0 <= item < len(models):
        _choose(models.item_ids[item])


def _choose(item_id: str) -> None:
    state.choose(item=item_id)
