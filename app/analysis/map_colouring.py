"""What the points of a map can be coloured by, and the columns that cannot, with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.store.attributes import caption, is_place, names_items, prose
from app.text import clean

GROUPS = 8
OTHER, NOTHING = "Other", "No value"
_OTHER_COLOUR, _NOTHING_COLOUR = "#8a9496", "#b9c2c0"
# Okabe and Ito's palette without its grey, which is for "other".
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#c9b82e", "#7b5ea7")
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
CODES = len(PALETTE) * len(SYMBOLS)  # codes that can be told apart by colour and shape
SCALE = "Viridis"
_SKEWED = 20  # times the median from which the largest value would leave nothing but one colour to the others
_GROUPED = 0.05  # share of items that the eight largest groups must hold


@dataclass(frozen=True)
class Colouring:
    """Colours of all items by one column."""

    name: str
    title: str
    """What the column is called, not escaped."""
    numbers: npt.NDArray[np.float64] | None = None
    """[items], NaN: no value; for columns of numbers."""
    log: bool = False
    """Numbers are spread so unevenly that colours follow their logarithm."""
    groups: tuple[str, ...] = ()
    """Names of the groups, not escaped, the largest first; then Other and No value where there are such items."""
    group: npt.NDArray[np.int16] | None = None
    """[items], a place in `groups`."""
    several: bool = False
    """Items may have several values; each takes its most frequent one."""

    def colour(self, place: int) -> str:
        if self._left_over(place):
            return _NOTHING_COLOUR if self.groups[place] == NOTHING else _OTHER_COLOUR
        return PALETTE[place % len(PALETTE)]

    def symbol(self, place: int) -> str:
        """Another one where the colours begin anew."""
        return SYMBOLS[0] if self._left_over(place) else SYMBOLS[place // len(PALETTE) % len(SYMBOLS)]

    def _left_over(self, place: int) -> bool:
        return place >= CODES or (self.groups[place] in (OTHER, NOTHING) and place >= len(self.groups) - 2)

    @property
    def note(self) -> str:
        """What has to be known to read the colours, not escaped."""
        if len(self.groups) > GROUPS + 2:
            return (
                "Every code has a colour and a shape of its own, which say no more than that; a point names its code."
            )
        if self.log:
            return "Colours follow the logarithm, as a few items have far larger values than the others."
        if self.several:
            return "An item with several values takes the colour of its most frequent one."
        return ""


def possible(items: pa.Table) -> tuple[list[str], list[tuple[str, str]]]:
    """(columns to colour by, (title, why not) of the others)."""
    kept, left_out = ["popularity"], []
    if "popularity" in items.column_names and not items["popularity"].to_numpy().any():
        kept, left_out = [], [(caption("popularity"), "Nobody has taken any item.")]
    described = prose(items)
    for name in items.column_names:
        if name in ("item", "item_id", "title", "popularity"):
            continue
        why = _unfit(items, name, described)
        if why is None:
            kept.append(name)
        else:
            left_out.append((caption(name), why))
    left_out += [("Title", "Every item has its own."), ("Item id", "Every item has its own.")]
    return kept, left_out


def _unfit(items: pa.Table, name: str, described: str | None) -> str | None:
    kind = items[name].type
    if name == described:
        return "Sentences form no groups."
    if names_items(name):
        return "It only names the items."
    if is_place(name):
        return "It is the place within a series."
    if not _is_list(kind) and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values = _numbers(items, name)
        some = values[np.isfinite(values)]
        return (
            "No item has a value." if not len(some) else "All items have the same value." if np.ptp(some) == 0 else None
        )
    counts = _counts(items, name)
    if not counts:
        return "No item has a value."
    if len(counts) == 1:
        return "All items have the same value."
    held = sum(n for _, n in counts.most_common(GROUPS)) / len(items)
    if held < _GROUPED:
        return f"{len(counts):,} distinct values; the {GROUPS} largest hold only {100 * held:.1f} % of the items."
    return None


def colouring(items: pa.Table, name: str) -> Colouring:
    """Colours of all items by one of the possible columns."""
    title = caption(name)
    kind = items[name].type
    if not _is_list(kind) and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values = _numbers(items, name)
        some = values[np.isfinite(values)]
        low, middle, high = (some.min(), np.median(some), some.max()) if len(some) else (0, 0, 0)
        return Colouring(name, title, numbers=values, log=bool(low >= 0 and high > _SKEWED * max(middle, 1)))
    counts = _counts(items, name)
    top = [value for value, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:GROUPS]]
    places = {value: place for place, value in enumerate(top)}
    several = _is_list(kind)
    other, nothing = len(top), len(top) + 1
    group = np.empty(len(items), np.int16)
    for item, value in enumerate(items[name].to_pylist()):
        group[item] = min((places.get(category, other) for category in _values(value)), default=nothing)
    names = [clean(value, 40) for value in top]
    for place, extra in ((other, OTHER), (nothing, NOTHING)):
        if (group == place).any():
            group[group == place] = len(names)
            names.append(extra)
    return Colouring(name, title, groups=tuple(names), group=group, several=several)


def by_code(codes: npt.NDArray[np.int32], name: str, title: str) -> Colouring:
    """Colours of all items by one code each, int [items], −1: none. The most frequent CODES have a colour and a shape each."""
    values, counts = np.unique(codes[codes >= 0], return_counts=True)
    top = values[np.lexsort((values, -counts))][:CODES].tolist()
    places = {code: place for place, code in enumerate(top)}
    group = np.array([places.get(code, len(top) if code >= 0 else len(top) + 1) for code in codes.tolist()], np.int16)
    names = [f"code {code}" for code in top]
    for place, extra in ((len(top), OTHER), (len(top) + 1, NOTHING)):
        if (group == place).any():
            group[group == place] = len(names)
            names.append(extra)
    return Colouring(name, title, groups=tuple(names), group=group)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _numbers(items: pa.Table, name: str) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = items[name].cast(pa.float64()).to_pandas().to_numpy(np.float64, na_value=np.nan)
    return numbers


def _counts(items: pa.Table, name: str) -> Counter[str]:
    return Counter(category for value in items[name].to_pylist() for category in set(_values(value)))


def _values(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    return [str(entry) for entry in value if entry not in (None, "")] if isinstance(value, list) else [str(value)]
