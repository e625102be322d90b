"""The figures of the page Map on the screen: what each shows, and which part of it a visitor looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from app import export, guard, spaces, state, zoo
from app.parts.map_page import Page, drawn_on
from app.spaces import Place
from app.widgets import viewport


@dataclass(frozen=True)
class Drawn:
    """What a figure on the screen shows. While nothing else changes it stays the very same, and the browser keeps it."""

    contents: tuple[object, ...]
    view: viewport.View | None
    selection: tuple[int, ...]


def key(place: Place) -> str:
    return f"map_{place.slug}"


def as_drawn(name: str, contents: tuple[object, ...], selection: tuple[int, ...]) -> Drawn:
    """name: the figure's key. contents: all that decides how it looks, but view and selection; dataset and digest first."""
    before = st.session_state.get(f"{name}_drawn")
    # What was just drawn around in this figure its browser shows already; drawing it anew would only make it flicker.
    if isinstance(before, Drawn) and before.contents == contents and (drawn_on(name) or before.selection == selection):
        return before
    seen = viewport.of(name)
    asked, then = st.session_state.get(f"{name}_view", (None, None))
    view = asked if asked is not None and then == seen else seen
    if isinstance(before, Drawn) and before.contents[:2] != contents[:2]:
        view = None
    drawn = Drawn(contents, view, selection)
    st.session_state[f"{name}_drawn"] = drawn
    return drawn


def show_drawn(
    fig: export.Figure, page: Page, place: Place, *, alt: str, table: export.Table, take: Callable[[Place], None]
) -> None:
    """The figure of a place; take: called when something on it is selected."""
    name = key(place)
    export.figure(
        fig,
        key=name,
        alt=alt,
        table=table,
        name=f"map {place.slug}",
        height=page.height,
        on_select=guard.callback(lambda: take(place)),
        selection_mode=("points", "box", "lasso"),
        plotly={"scrollZoom": True, "modeBarButtonsToRemove": ["autoScale2d"]},
    )
    viewport.watch(name)


def moved(name: str) -> int:
    """How often the view was set from a button."""
    number = st.session_state.get(f"{name}_moved", 0)
    return number if isinstance(number, int) else 0


def look_at(items: tuple[int, ...] | None) -> None:
    """Shows these items, or their codes, on every map; None: the whole maps."""
    models = zoo.open_zoo(state.get().dataset)
    for place in spaces.able(models).values():
        points, name = spaces.points(models, place), key(place)
        shown = items
        if items is not None and place.of_codes:
            shown = spaces.codes(models, place).held(items)
        view = points.view(shown or tuple(points.items.tolist()), 0.35 if shown else 0.06)
        st.session_state[f"{name}_view"] = (view, viewport.of(name))
        st.session_state[f"{name}_moved"] = moved(name) + 1
