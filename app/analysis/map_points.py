"""Points of a map: where they lie, which are drawn, marked and selected, and what is selected as a text for the address.

sasrec~1.5_2_7.25_9            inside this box (two corners) on the map sasrec
codes.rqvae~0_0_1_0_1_1        items with a code inside this outline on the map of codes
prefix.rqvae~12-200            items whose codes begin so; x-7: any first code, then 7
item.ids~toy-1~toy-2           these items
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

Float32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

ALL = 100_000  # points that a browser draws and selects with ease
_FAR_OUT = 200  # one item in so many, at each end of an axis, may lie far from all others
SAMPLE = 50_000  # points over the density image where there are more


@dataclass(frozen=True)
class Points:
    """A model's map. x, y: float32 [items], NaN for an item that is not on it."""

    x: Float32
    y: Float32

    @classmethod
    def read(cls, table: pa.Table, items: int) -> Points:
        """table: `Bundle.map_table()`."""
        x, y = np.full(items, np.nan, np.float32), np.full(items, np.nan, np.float32)
        place = table["item"].to_numpy()
        x[place], y[place] = table["x"].to_numpy(), table["y"].to_numpy()
        return cls(x, y)

    def __len__(self) -> int:
        """How many items are on the map."""
        return int(np.isfinite(self.x).sum())

    @property
    def items(self) -> Ints:
        return np.flatnonzero(np.isfinite(self.x))

    def at(self, items: Iterable[int]) -> list[int]:
        """Those of the items that are on the map, in their order."""
        return [item for item in items if np.isfinite(self.x[item])]

    @property
    def aspect(self) -> float:
        """Width by height of what the map shows at first; 1 where it has no extent."""
        x0, x1, y0, y1 = self.core() or self.view(self.items.tolist(), 0.0) or (0, 1, 0, 1)
        return (x1 - x0) / (y1 - y0) if y1 > y0 else 1.0

    def core(self) -> tuple[float, float, float, float] | None:
        """(x0, x1, y0, y1) around all but the few items that lie far out; None where none do."""
        there = np.stack([self.x[self.items], self.y[self.items]]).astype(float)
        if there.shape[1] < _FAR_OUT:
            return None
        low, high = np.quantile(there, (1 / _FAR_OUT, 1 - 1 / _FAR_OUT), axis=1)
        around = 0.15 * (high - low)
        if (np.ptp(there, axis=1) < 1.5 * (high - low)).all() or not (high > low).all():
            return None
        (x0, y0), (x1, y1) = (low - around).tolist(), (high + around).tolist()
        return x0, x1, y0, y1

    def view(self, items: Sequence[int], margin: float = 0.35) -> tuple[float, float, float, float] | None:
        """(x0, x1, y0, y1) that shows these items with some surroundings; None where none is on the map."""
        there = self.at(items)
        if not there:
            return None
        x, y = self.x[there].astype(float), self.y[there].astype(float)
        least = 0.06 * float(np.nanmax([np.nanmax(self.x) - np.nanmin(self.x), np.nanmax(self.y) - np.nanmin(self.y)]))
        half_x, half_y = (max(float(np.ptp(v)) * (0.5 + margin / 2), least) for v in (x, y))
        mid_x, mid_y = (float(v.min() + v.max()) / 2 for v in (x, y))
        return mid_x - half_x, mid_x + half_x, mid_y - half_y, mid_y + half_y


def sample(
    points: Points, group: npt.NDArray[np.int16] | None, forced: Sequence[int], size: int = SAMPLE, seed: int = 0
) -> Ints:
    """Items to draw where there are too many: the same share of every group, drawn by lot, and all that are forced.

    Ascending; the same for the same arguments.
    """
    items = points.items
    if len(items) <= size:
        return items
    rng = np.random.default_rng(seed)
    groups = np.zeros(len(items), np.int64) if group is None else np.asarray(group)[items].astype(np.int64)
    kept = []
    for label in np.unique(groups):
        members = items[groups == label]
        kept.append(rng.choice(members, max(1, round(len(members) * size / len(items))), replace=False))
    return np.union1d(np.concatenate(kept), np.asarray(points.at(forced), np.int64))


def in_polygon(points: Points, x: Sequence[float], y: Sequence[float]) -> npt.NDArray[np.bool_]:
    """[items]: inside a polygon (even–odd rule); two corners are a box."""
    if len(x) != len(y) or len(x) < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.zeros(len(points.x), bool)
    px, py = points.x.astype(float), points.y.astype(float)
    near = (px >= min(x)) & (px <= max(x)) & (py >= min(y)) & (py <= max(y))
    if len(x) == 2:
        return near
    qx, qy = px[near], py[near]
    within = np.zeros(len(qx), bool)
    ends = list(zip(x, y, strict=True))
    for (x0, y0), (x1, y1) in zip(ends, [*ends[1:], ends[0]], strict=True):
        if y0 == y1:
            continue
        crosses = (qy < y0) != (qy < y1)
        within ^= crosses & (qx < (x1 - x0) * (qy - y0) / (y1 - y0) + x0)
    mask = np.zeros(len(px), bool)
    mask[near] = within
    return mask


def selected(
    event: Mapping[str, Any], points: Points, position: Callable[[str], int | None], *, sampled: bool
) -> list[int]:
    """The items of a selection event, each once, ascending; a single click: the item clicked.

    Points are known by the item_id that they carry, never by their place among those drawn. Where only a sample is drawn, a box
    or a lasso takes all items inside, drawn or not. Nothing that comes from a browser is believed.
    """
    drawn = areas(event)
    if sampled and drawn:
        return within(points, drawn).tolist()
    carried = event.get("points")
    ids = (_carried(point) for point in carried) if isinstance(carried, list) else ()
    return sorted({item for item_id in ids if (item := position(item_id)) is not None})


def areas(event: Mapping[str, Any]) -> list[tuple[list[float], list[float]]]:
    """x and y of what was drawn around, boxes (two corners) first."""
    return [*_areas(event.get("box")), *_areas(event.get("lasso"))]


def _areas(value: Any) -> Iterable[tuple[list[float], list[float]]]:
    for area in value if isinstance(value, list) else ():
        try:
            yield [float(v) for v in area["x"]], [float(v) for v in area["y"]]
        except (TypeError, ValueError, KeyError):
            continue


def _carried(point: Any) -> str:
    try:
        carried = point["customdata"]
    except (TypeError, KeyError):
        return ""
    while isinstance(carried, (list, tuple)) and carried:
        carried = carried[0]
    return carried if isinstance(carried, str) else ""


@dataclass(frozen=True)
class Marks:
    """Items that stand out, item numbers."""

    history: tuple[int, ...] = ()
    """Oldest first; an item may stand there twice."""
    following: tuple[int, ...] = ()
    """What the model recommends next, best first."""
    matches: tuple[int, ...] = ()
    """What the search found."""
    chosen: int | None = None
    near: tuple[int, ...] = ()
    """Neighbours of the chosen item in the model's own space, nearest first."""
    selection: tuple[int, ...] = field(default=(), repr=False)

    @property
    def forced(self) -> list[int]:
        """All that must be drawn."""
        return [
            *self.history,
            *self.following,
            *self.matches,
            *([self.chosen] if self.chosen is not None else []),
            *self.near,
        ]


def marks_table(marks: Marks, points: Points, titles: Sequence[str], ids: Sequence[str]) -> pd.DataFrame:
    """What stands out on a map, as a table: the map's twin for those who do not see it."""
    rows: list[tuple[str, int, str, str, float, float]] = []

    def add(why: str, items: Iterable[int]) -> None:
        for place, item in enumerate(items, 1):
            rows.append((why, place, titles[item], ids[item], float(points.x[item]), float(points.y[item])))

    add("history", marks.history)
    add("next", marks.following)
    add("chosen", [marks.chosen] if marks.chosen is not None else [])
    add("neighbour of the chosen", marks.near)
    add("found by the search", marks.matches[:200])
    return pd.DataFrame(rows, columns=["Mark", "Place", "Item", "Item id", "x", "y"])


# --- what is selected, in the address


IDS = "item.ids"
LISTED = 300  # items that an address names one by one
LONGEST = 6_000  # characters of a selection in an address
_OUTLINES, _CORNERS, _DIGITS = 10, 500, 9
_NUMBER = r"-?[0-9]{1,9}(\.[0-9]{1,9})?"
_OUTLINE = re.compile(rf"{_NUMBER}(_{_NUMBER})*")
_PREFIX = re.compile(r"(?:(?:x|[0-9]{1,8})-){0,63}[0-9]{1,8}")

Outline = tuple[list[float], list[float]]
"""x and y of its corners; two are a box."""


def split(text: str) -> tuple[str, str]:
    """(where, what) of a selection in an address."""
    where, _, selection = text.partition("~")
    return where, selection


def outlines(text: str) -> list[Outline] | None:
    """Those of a text; None where it is none."""
    shapes: list[Outline] = []
    parts = text.split("~") if len(text) <= LONGEST else []
    for part in parts:
        if not _OUTLINE.fullmatch(part):
            return None
        numbers = [float(number) for number in part.split("_")]
        if len(numbers) < 4 or len(numbers) % 2 or len(numbers) > 2 * _CORNERS:
            return None
        shapes.append((numbers[::2], numbers[1::2]))
    return shapes if 0 < len(shapes) <= _OUTLINES else None


def prefix(text: str) -> tuple[int | None, ...] | None:
    """Codes to begin with, None: any; None where the text is no prefix."""
    if not _PREFIX.fullmatch(text):
        return None
    return tuple(None if code == "x" else int(code) for code in text.split("-"))


def within(points: Points, areas: Sequence[Outline]) -> npt.NDArray[np.int64]:
    """The points inside any of the outlines."""
    mask = np.zeros(len(points.x), bool)
    for x, y in areas:
        mask |= in_polygon(points, x, y)
    return np.flatnonzero(mask)


def outline_text(points: Points, areas: Sequence[Outline]) -> str | None:
    """The outlines as a short text that has the very same points inside; None where that would be too long."""
    if not 0 < len(areas) <= _OUTLINES or any(len(x) != len(y) or len(x) < 2 for x, y in areas):
        return None
    some = points.items
    if not len(some):
        return None
    width = max(float(np.ptp(points.x[some])), float(np.ptp(points.y[some])), 1e-6)
    digits = int(np.clip(3 - np.floor(np.log10(width)), 0, _DIGITS))
    mask = within(points, areas)
    simple = [_simpler(points, area) for area in areas]
    for corners in (simple, areas):
        for more in (0, 1, 2, 6):
            text = _text(corners, min(digits + more, _DIGITS))
            again = outlines(text)
            if again is not None and np.array_equal(within(points, again), mask):
                return text
    return None


def _text(areas: Sequence[Outline], digits: int) -> str:
    def number(value: float) -> str:
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"

    return "~".join("_".join(number(v) for corner in zip(x, y, strict=True) for v in corner) for x, y in areas)


def _simpler(points: Points, area: Outline) -> Outline:
    """Without the corners that can go: cutting one off changes what is inside by the triangle that is cut, where no point may
    lie."""
    corners = list(zip(*area, strict=True))
    before = len(corners) + 1
    while 3 < len(corners) < before:
        before, place = len(corners), 0
        while place < len(corners) and len(corners) > 3:
            around = (corners[place - 1], corners[place], corners[(place + 1) % len(corners)])
            x, y = zip(*around, strict=True)
            if in_polygon(points, x, y).any():
                place += 1
            else:
                del corners[place]
                place += 1  # not all of one side first
    return [x for x, _ in corners], [y for _, y in corners]
