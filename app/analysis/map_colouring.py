"""What the points of a map can be coloured by, and the columns that cannot, with the reason."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.store.attributes import caption, is_place, is_year, names_items, numbers, prose
from app.styles import GREY, PALE_GREY, SERIES
from app.text import clean
from engine.bundle.tables import is_list, is_number
from engine.tabular.columns import RESERVED

Scale = Literal["linear", "log", "quantile"]
SCALES: tuple[Scale, ...] = get_args(Scale)
GROUPS = 8
OTHER, NOTHING = "Other", "No value"
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
CODES = len(SERIES) * len(SYMBOLS)  # codes that can be told apart by colour and shape
_SKEWED = 20  # times the median from which the largest value would leave nothing but one colour to the others
_PREFERRED = ("categories", "category", "genres", "genre")
_GROUPED = 0.05  # share of items that the eight largest groups must hold


@dataclass(frozen=True)
class Colouring:
    """Colours of all items by one column."""

    name: str
    title: str
    """What the column is called, not escaped."""
    numbers: npt.NDArray[np.float64] | None = None
    """[items], NaN: no value; for columns of numbers."""
    scale: Scale = "linear"
    """What the colours of numbers follow: the number, log10(1 + number), or its rank among all items."""
    groups: tuple[str, ...] = ()
    """Names of the groups, not escaped, the largest first; then Other and No value where there are such items."""
    group: npt.NDArray[np.int16] | None = None
    """[items], a place in `groups`."""
    several: bool = False
    """Items may have several values; each takes its most frequent one."""

    def colour(self, place: int) -> str:
        if self.left_over(place):
            return PALE_GREY if self.groups[place] == NOTHING else GREY
        return SERIES[place % len(SERIES)]

    def symbol(self, place: int) -> str:
        """Another one where the colours begin anew."""
        return SYMBOLS[0] if self.left_over(place) else SYMBOLS[place // len(SERIES) % len(SYMBOLS)]

    def left_over(self, place: int) -> bool:
        """Whether a group is of the items that no colour is for."""
        return place >= CODES or (self.groups[place] in (OTHER, NOTHING) and place >= len(self.groups) - 2)

    @property
    def years(self) -> bool:
        """Whether its numbers are years."""
        numbers = self.numbers
        return numbers is not None and is_year(self.name, float(np.nanmin(numbers)), float(np.nanmax(numbers)))

    def can(self, scale: Scale) -> bool:
        """Whether there is such a scale of its numbers: there is no logarithm where one is below 0."""
        return self.numbers is not None and (scale != "log" or not (self.numbers < 0).any())

    def shades(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Where numbers lie on the colour scale."""
        if self.scale == "log":
            return np.log10(1 + values)
        if self.scale == "quantile" and self.numbers is not None:
            known = np.sort(self.numbers[np.isfinite(self.numbers)])
            below, not_above = (np.searchsorted(known, values, side=side) for side in ("left", "right"))
            return np.asarray((below + not_above) / 2 / len(known))
        return values

    @property
    def note(self) -> str:
        """What has to be known to read the colours, not escaped."""
        if len(self.groups) > GROUPS + 2:
            return "Colours and shapes only distinguish the codes; hover a point to see its code."
        if self.several:
            return "An item with several values takes the colour of its most frequent one."
        return ""


def possible(items: pa.Table) -> list[str]:
    """The columns to colour by: those with some values that several items have in common, or with numbers."""
    columns = ["popularity"] if "popularity" not in items.column_names or items["popularity"].to_numpy().any() else []
    described = prose(items)
    return columns + [
        name
        for name in items.column_names
        if name not in (*RESERVED, described) and not names_items(name) and not is_place(name) and _groups(items, name)
    ]


def categorical(items: pa.Table) -> Iterator[Colouring]:
    """By columns of categories, the one that matters most first."""
    names = [name for name in possible(items) if name != "popularity"]
    for name in sorted(names, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED)):
        by_category = colouring(items, name)
        if by_category.group is not None:
            yield by_category


def _groups(items: pa.Table, name: str) -> bool:
    if is_number(items[name].type):
        values = numbers(items[name])
        known = values[np.isfinite(values)]
        return bool(len(known) and np.ptp(known) > 0)
    counts = _counts(items, name)
    return len(counts) > 1 and sum(n for _, n in counts.most_common(GROUPS)) >= _GROUPED * len(items)


def colouring(items: pa.Table, name: str, scale: Scale | None = None) -> Colouring:
    """Colours of all items by one of the possible columns.

    scale: of numbers; None: the logarithm where a few are far larger than the others.
    """
    title = caption(name)
    kind = items[name].type
    if is_number(kind):
        values = numbers(items[name])
        if scale is None:
            known = values[np.isfinite(values)]
            scale = "log" if len(known) and known.max() > _SKEWED * max(np.median(known), 1) else "linear"
        by_number = Colouring(name, title, numbers=values, scale=scale)
        return by_number if by_number.can(scale) else replace(by_number, scale="linear")
    frequent, of = by_frequency(items, name)
    top = frequent[:GROUPS]
    group = np.where(of < 0, len(top) + 1, np.minimum(of, len(top))).astype(np.int16)
    names = _with_rest([clean(value, 40) for value in top], group)
    return Colouring(name, title, groups=names, group=group, several=is_list(kind))


def by_frequency(items: pa.Table, name: str) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The values of a column of categories, the most frequent first; and of every item the place of its most frequent one there,
    −1 where it has none."""
    counts = _counts(items, name)
    values = sorted(counts, key=lambda value: (-counts[value], value))
    places = {value: place for place, value in enumerate(values)}
    of = [min((places[value] for value in categories(cell)), default=-1) for cell in items[name].to_pylist()]
    return values, np.array(of, np.int32)


def by_code(codes: npt.NDArray[np.int32], name: str, title: str) -> Colouring:
    """Colours of all items by one code each, int [items], −1: none. The most frequent CODES have a colour and a shape each."""
    values, counts = np.unique(codes[codes >= 0], return_counts=True)
    top = values[np.lexsort((values, -counts))][:CODES].tolist()
    places = {code: place for place, code in enumerate(top)}
    group = np.array([places.get(code, len(top) if code >= 0 else len(top) + 1) for code in codes.tolist()], np.int16)
    return Colouring(name, title, groups=_with_rest([f"code {code}" for code in top], group), group=group)


def _with_rest(names: list[str], group: npt.NDArray[np.int16]) -> tuple[str, ...]:
    """The names, then Other and No value where there are such items: those whose group is one or two places behind the names. The
    group of No value moves up where there is no Other."""
    for place, extra in ((len(names), OTHER), (len(names) + 1, NOTHING)):
        if (group == place).any():
            group[group == place] = len(names)
            names.append(extra)
    return tuple(names)


def _counts(items: pa.Table, name: str) -> Counter[str]:
    return Counter(category for value in items[name].to_pylist() for category in set(categories(value)))


def categories(value: Any) -> list[str]:
    """Those of one item, of a text or of a list of texts."""
    if value is None or value == "":
        return []
    return [str(entry) for entry in value if entry not in (None, "")] if isinstance(value, list) else [str(value)]
