"""What a page explains: the history, or that there is none; and the item whose score it is about, one of the model's best, what
truly came next, or any that is searched for."""

from __future__ import annotations

import streamlit as st

from app import guard, state, zoo
from app.analysis import recommend
from app.text import clean
from app.widgets import search
from engine.runtime import Zoo

FIRST = 10
"""Of the model's best items are offered without a search."""


def no_history(why: str) -> None:
    """Instead of a page that explains a history, where there is none. why: what cannot be shown then."""
    st.info(f"No history yet, so {why}. Load an example, or add items in the sidebar.")
    st.button("Load an example", on_click=guard.callback(state.reset), type="primary")


def wanted(models: Zoo, name: str, history: tuple[int, ...]) -> int | None:
    """The item that is explained: the one that was chosen, else the model's best; None where there is neither."""
    chosen = models.position(state.get().own["item"]) if "item" in state.get().own else None
    return (
        chosen if chosen is not None else next(iter(recommend.top(models, name, history, FIRST).items.tolist()), None)
    )


def choose(models: Zoo, name: str, history: tuple[int, ...], *, key: str) -> int | None:
    """Lets an item be chosen; None where the model has nothing to recommend and nothing was chosen. key: of the page."""
    best = [int(item) for item in recommend.top(models, name, history, FIRST).items]
    truth = state.target(models)
    aimed = models.position(state.get().own["item"]) if "item" in state.get().own else None
    options = list(dict.fromkeys([*best, *(item for item in (truth, aimed) if item is not None)]))
    ranks = dict(zip(options, recommend.ranks(models, name, history, tuple(options)), strict=True)) if options else {}
    chosen = aimed if aimed is not None else next(iter(options), None)

    def called(item: int) -> str:
        note = " (what truly came next)" if item == truth else " (in the history)" if item in history else ""
        place = best.index(item) + 1 if item in best else ranks.get(item, 0)
        return clean(f"{place:,.0f}. {zoo.titled(models, item)}{note}", 120)

    listed, searched = st.columns(2, gap="medium")
    if chosen is not None:
        at = f"{key}_item_{name}"
        st.session_state[at] = chosen
        listed.selectbox(
            "For which item?",
            options,
            format_func=called,
            key=at,
            filter_mode=None,
            on_change=guard.callback(_take),
            args=(at,),
            help="The model's best items, by rank; then what truly came next, where it is known, and the item you chose.",
        )
    with searched:
        search.item("Or any other one", key=key, act="pick", on_pick=_pick, icon=":material/my_location:")
    return chosen


def _take(key: str) -> None:
    item, models = st.session_state.get(key), zoo.open_zoo(state.get().dataset)
    if isinstance(item, int) and 0 <= item < len(models):
        _pick(models.item_ids[item])


def _pick(item_id: str) -> None:
    state.choose(item=item_id)
