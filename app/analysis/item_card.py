"""One item: how popular it is, what is known of it, its series, and who its neighbours are in each model."""

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.analysis.facets import value_words
from app.store.attributes import caption, is_place, names_items, prose, series
from engine.tabular.columns import RESERVED

_SIBLINGS = 60


class Standing(NamedTuple):
    """How popular an item is."""

    events: int
    rank: int
    """1 is the most popular; equals share the better rank."""
    percentile: float
    """Share of all other items that are less popular, in percent."""


def standing(popularity: npt.NDArray[np.int64], item: int) -> Standing:
    events = popularity[item]
    below = int((popularity < events).sum())
    others = max(1, len(popularity) - 1)
    return Standing(int(events), 1 + int((popularity > events).sum()), 100 * below / others)


def attributes(items: pa.Table, item: int) -> list[tuple[str, str, list[str]]]:
    """(column, what it is called, its values in words) of what an item has, its id last, unless that stands in for its title;
    without the description."""
    described = prose(items)
    rows = []
    for name in items.column_names:
        if name in RESERVED or name == described or is_place(name):
            continue
        value = items[name][item].as_py()
        values = [str(element) for element in value] if isinstance(value, list) else [value_words(value)]
        if any(values):
            rows.append((name, caption(name), values))
    rows.sort(key=lambda entry: names_items(entry[0]))
    title, item_id = (items[name][item].as_py() for name in ("title", "item_id"))
    return rows if title == item_id else [*rows, ("item_id", caption("item_id"), [item_id])]


def description(items: pa.Table, item: int) -> str:
    name = prose(items)
    return (items[name][item].as_py() or "") if name else ""


class Series(NamedTuple):
    """The items of one series."""

    name: str
    members: list[tuple[int, str]]
    """(item, its place in words or ""), in order."""


def series_of(items: pa.Table, item: int) -> Series | None:
    """The series an item belongs to, in order; None where the catalogue has no such column or the item stands alone."""
    groups = series(items)
    if groups is None:
        return None
    column, order = groups
    name = items[column][item].as_py()
    if not name:
        return None
    members = np.flatnonzero(pc.fill_null(pc.equal(items[column], name), False).to_numpy()).tolist()
    if len(members) < 2:
        return None
    by = order or ("year" if "year" in items.column_names else None)
    places = {member: items[by][member].as_py() if by else None for member in members}
    members.sort(key=lambda member: (*_in_order(places[member]), member))
    return Series(name, [(m, value_words(places[m]) if order else "") for m in members[:_SIBLINGS]])


def _in_order(place: Any) -> tuple[bool, Any, str]:
    """To sort places by: a text goes by the number that it begins with, what has none comes last."""
    if isinstance(place, str):
        number = re.match(r"[0-9]+(\.[0-9]+)?", place.strip())
        return number is None, float(number[0]) if number else 0, place
    return place is None, place or 0, ""


def similarity_words(value: float, measure: str) -> str:
    """Of a neighbour: 0.83, or a distance. value, measure: as of `Neighbours`."""
    return f"{value:.2f}" if measure == "cosine" else f"{-value:.3g} away"
