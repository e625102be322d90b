"""What all parts of the page Map speak of, and what a click on it changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from app import spaces, state
from app.address import decode, encode
from app.analysis import map_points
from app.analysis.map_colouring import Colouring
from app.spaces import Place
from app.store.catalogue import Catalogue
from engine.runtime import Zoo

_HELD = "map_area"  # (dataset, items): a selection that no address can say
_DRAWN_ON = "map_area_of"  # the key of the figure that was just drawn around in


@dataclass(frozen=True)
class Page:
    models: Zoo
    found: Catalogue
    places: tuple[Place, ...]
    """One, or two side by side."""
    colours: Colouring | None
    """Of items."""
    by: str
    """What colours codes."""
    hits: tuple[int, ...]
    """Items that the search found."""
    item: int | None
    code: tuple[str, str] | None
    """(tokenizer, level-code) that is chosen."""
    layers: frozenset[str]
    selection: tuple[int, ...]

    @property
    def beside(self) -> bool:
        return len(self.places) > 1

    @property
    def height(self) -> int:
        return 460 if self.beside else 560


# --- the selection


def selected(models: Zoo) -> tuple[int, ...]:
    """The items that are selected, ascending."""
    now = state.get()
    area = now.own.get("area")
    if area is None:
        dataset, items = st.session_state.get(_HELD, (None, ()))
        return items if dataset == now.dataset else ()
    return tuple(inside(models, area).tolist())


def inside(models: Zoo, area: str) -> np.ndarray:
    """The items that an area of the address selects, by number, ascending."""
    where, what = map_points.split(area)
    if where == map_points.IDS:
        return np.array(sorted(set(state.numbers(models, decode(what)))), np.int64)
    if where.startswith("prefix."):
        one = models.tokenizations.get(where.removeprefix("prefix."))
        return (
            map_points.beginning(one.own, map_points.prefix(what) or ()) if one is not None else np.empty(0, np.int64)
        )
    place, outlines = spaces.able(models).get(where), map_points.outlines(what)
    if place is None or outlines is None:
        return np.empty(0, np.int64)
    found = map_points.within(spaces.points(models, place), outlines)
    return spaces.codes(models, place).having(found.tolist()) if place.of_codes else found


def is_held() -> bool:
    """Whether the selection is one that no address says."""
    return "area" not in state.get().own and _HELD in st.session_state


def drawn_on(key: str) -> bool:
    """Whether the selection was drawn in this figure, so that its browser shows it already."""
    return bool(st.session_state.get(_DRAWN_ON) == key)


def select(area: str | None) -> None:
    """Selects what the text says; None: nothing."""
    st.session_state.pop(_HELD, None)
    st.session_state.pop(_DRAWN_ON, None)
    state.choose(area=area)


def draw_around(models: Zoo, place: Place, key: str, outlines: list[map_points.Outline], carried: list[int]) -> None:
    """Selects what was drawn around in the figure `key`. carried: the points that the browser says are inside, which may be fewer
    than those inside the outlines where some were hidden."""
    points = spaces.points(models, place)
    text = map_points.told(points, outlines)
    if text is not None and map_points.within(points, outlines).tolist() == carried:
        select(f"{place.key}~{text}")
    else:
        items = spaces.codes(models, place).having(carried).tolist() if place.of_codes else carried
        named = f"{map_points.IDS}~{encode(models.item_ids[item] for item in items)}"
        if not items or (len(items) <= map_points.LISTED and len(named) <= map_points.LONGEST):
            select(named if items else None)
        else:
            select(None)
            st.session_state[_HELD] = (state.get().dataset, tuple(items))
    st.session_state[_DRAWN_ON] = key


# --- what is chosen


def choose(item_id: str) -> None:
    state.choose(item=item_id)


def add(ids: tuple[str, ...]) -> None:
    for item_id in ids:
        state.add(item_id)
    st.rerun()  # the map alone would be drawn anew otherwise, and the history is beside it


def positions(models: Zoo) -> map_points.Positions:
    return map_points.Positions(models.position)
