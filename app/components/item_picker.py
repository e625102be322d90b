"""Items to choose: found by their titles, put into the history, or explained."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import guard, zoo
from app.analysis import facets, recommend
from app.components import widgets
from app.session import state
from app.store.catalogue import Catalogue
from app.store.search import Hit
from app.text import clean, md, whole_rank
from engine.runtime import Zoo
from engine.writing import count

_HITS = 6


@st.fragment
def search(label: str, *, key: str, act: str, on_pick: Callable[[str], None], icon: str, **more: Any) -> None:
    """on_pick: called with the item_id that was clicked. key, act: of the widgets' keys. more: for st.text_input."""
    with guard.watch("the search"):
        now = state.get()
        if st.session_state.get(f"{key}_dataset") != now.dataset:  # what was looked for in another one
            st.session_state.update({f"{key}_dataset": now.dataset, f"{key}_search": ""})
        text = st.text_input(
            label,
            key=f"{key}_search",
            type="search",
            live="250ms",
            max_chars=100,
            **{"placeholder": "Title, person, genre …"} | more,
        )
        if not text or not text.strip():
            widgets.announced("", key=key)
            return
        catalogue, models = zoo.open_catalogue(now.dataset), zoo.open_zoo(now.dataset)
        meant = catalogue.meant(text)
        hits = catalogue.search(meant, _HITS, everywhere=True)
        nothing = f"Nothing like “{clean(text, 40)}” among {count(len(models), 'item')}."
        widgets.announced(count(len(hits), "result") if hits else nothing, key=key)
        with hits_of(text, key=key, gap=None):  # words, too: it lies over the page and pushes nothing
            if not hits:
                st.caption(md(nothing))
            elif meant != text:
                st.caption(facets.nearest(text, meant))
            for hit in hits:
                st.button(
                    md(zoo.titled(models, hit.item), 80) + reason(catalogue, hit, meant),
                    key=f"{key}_{act}_{hit.item}",
                    icon=icon,
                    type="tertiary",
                    wrap=False,
                    on_click=guard.callback(_pick, f"{key}_search", on_pick, hit.item_id),
                )


def hits_of(text: str, *, key: str, **layout: Any) -> DeltaGenerator:
    """Where the results of a search are drawn. Named after its text: Enter takes the first of these (browser.js), not of those
    before its last letters. key: of the search's widgets. layout: for st.container."""
    name = text.strip().encode(errors="replace").hex()
    return st.container(key=f"{key}_hits", **layout).container(key=f"{key}_hits_of_{name}", **layout)


def reason(catalogue: Catalogue, hit: Hit, text: str) -> str:
    """Why an item was found whose title does not say it, as Markdown."""
    if hit.how not in ("id", "facts", "prose"):
        return ""
    (row,) = catalogue.rows([hit.item]).to_pylist()
    return f"  :gray[{md(' · '.join(facets.matched(row, catalogue.searched, text)), 120)}]"


def _pick(key: str, on_pick: Callable[[str], None], item_id: str) -> None:
    on_pick(item_id)
    st.session_state[key] = ""
    st.rerun()  # the search alone would be drawn anew otherwise


def choose(item_id: str | None) -> None:
    """Selects an item, None: none any more; of a click in a fragment, which alone would be drawn anew otherwise, and the details
    are beside it."""
    state.select(item_id)
    st.rerun()


def titles(models: Zoo, items: Sequence[int], *, key: str) -> None:
    """Titles to click on: a click selects the item. key: of the buttons."""
    for place, item in enumerate(items):
        st.button(
            md(zoo.titled(models, item), 80),
            key=f"{key}_{place}",
            type="tertiary",
            on_click=guard.callback(state.select, models.item_ids[item]),
        )


def table(rows: pd.DataFrame, ids: Sequence[str], *, key: str, **more: Any) -> None:
    """A table whose rows are items: a click selects one, and the row of the item that is selected is marked, whoever selected it.
    ids: item_id by row. more: as of widgets.table."""
    chosen = state.get().item
    marked = [ids.index(chosen)] if chosen in ids else []
    if _marked(key) != marked:  # the details were closed, say, or show another item
        st.session_state[key] = {"selection": {"rows": marked, "columns": [], "cells": []}}
    clicked = guard.callback(select_row, key, ids)
    widgets.table(rows, key=key, on_select=clicked, selection_mode="single-row", **more)


def select_row(key: str, ids: Sequence[str]) -> None:
    """Selects the item of the row that was clicked; a click on a marked row leaves none, and the item selected."""
    for row in _marked(key):
        if isinstance(row, int) and 0 <= row < len(ids):
            state.select(ids[row])


def _marked(key: str) -> list[Any]:
    """Rows of a table, as the browser said."""
    return list(getattr(getattr(st.session_state.get(key), "selection", None), "rows", []))


MOST_ADDED = 20  # items that are added at once


def add_button(
    ids: Sequence[str], *, key: str, most: str = "", why_not: str | None = None, alone: bool = False
) -> None:
    """ids: by item_id, the first ones are taken where there are too many; most: what those are called. why_not: why it waits.
    alone: as of `add`."""
    known = set(state.get().current)
    new = [item_id for item_id in ids if item_id not in known]
    some, there = tuple(new[:MOST_ADDED]), len(ids) - len(new)
    words = f"{count(there, 'item')} {'is' if there == 1 else 'are'} in it already" if there else None
    st.button(
        add_label(len(some), len(new), there, most),
        icon=":material/add:",
        key=key,
        disabled=not some or why_not is not None,
        help=why_not or words,
        on_click=guard.callback(add, some, alone=alone),
    )


def add(ids: tuple[str, ...], *, alone: bool = False) -> None:
    """Puts items into the history. alone: of a click in a fragment, which alone would be drawn anew otherwise."""
    for item_id in ids:
        state.add(item_id)
    if alone:
        st.rerun()


def add_label(added: int, new: int, there: int, most: str) -> str:
    """added: how many a click adds; new: how many are not in the history yet; there: how many are."""
    if not added:
        return "In the history" if there == 1 else "All in the history already"
    if new + there == 1:
        return "Add it to the history"
    if added < new:
        which = f"the {most} {added} of the others" if there else f"the {most} {added}"
    else:
        which = f"the other {added if added > 1 else 'one'}" if there else f"all {added}"
    return f"Add {which} to the history"


FIRST = 10
"""Of the model's best items are offered without a search."""


def no_history(why: str) -> None:
    """Instead of a page that explains a history, where there is none. why: what cannot be shown then."""
    st.info(f"No history yet, so {why}. Load an example, or add items.")
    st.button("Load an example", on_click=guard.callback(state.load_example), type="primary")


def explained_item(models: Zoo, name: str, history: tuple[int, ...]) -> int | None:
    """The item that is explained: the one that is selected, else the model's best; None where there is neither."""
    chosen = state.selected(models)
    return (
        chosen if chosen is not None else next(iter(recommend.top_k(models, name, history, FIRST).items.tolist()), None)
    )


def choose_explained(models: Zoo, name: str, history: tuple[int, ...], *, key: str) -> int | None:
    """Lets an item be chosen; None where the model has nothing to recommend and nothing was chosen. key: of the page."""
    best = [int(item) for item in recommend.top_k(models, name, history, FIRST).items]
    truth = state.target(models)
    aimed = state.selected(models)
    options = list(dict.fromkeys([*best, *(item for item in (truth, aimed) if item is not None)]))
    ranks = dict(zip(options, recommend.ranks(models, name, history, tuple(options)), strict=True)) if options else {}
    chosen = aimed if aimed is not None else next(iter(options), None)

    def called(item: int) -> str:
        note = " (the held-out item)" if item == truth else " (in the history)" if item in history else ""
        place = best.index(item) + 1 if item in best else ranks.get(item, 0)
        return clean(f"{whole_rank(place or 0)}. {zoo.titled(models, item)}{note}", 120)

    listed, searched = st.columns(2, gap="medium")
    if chosen is not None:
        at = f"{key}_item_{name}"
        st.session_state[at] = chosen
        listed.selectbox(
            "Item to explain",
            options,
            format_func=called,
            key=at,
            filter_mode=None,
            on_change=guard.callback(_take_explained, at),
            help="The model's best items, by rank; then the held-out item, where there is one, and the item you chose.",
        )
    with searched:
        search("Another item", key=key, act="pick", on_pick=state.select, icon=":material/my_location:")
    return chosen


def _take_explained(key: str) -> None:
    item, models = st.session_state.get(key), zoo.open_zoo(state.get().dataset)
    if isinstance(item, int) and 0 <= item < len(models):
        state.select(models.item_ids[item])
