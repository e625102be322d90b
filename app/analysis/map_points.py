"""Points of a map: where they lie, which are drawn, which were selected, which are marked and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

Float32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

ALL = 100_000  # points that a browser draws and selects with ease
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
    for one in np.unique(groups):
        members = items[groups == one]
        kept.append(rng.choice(members, max(1, round(len(members) * size / len(items))), replace=False))
    return np.union1d(np.concatenate(kept), np.asarray(points.at(forced), np.int64))


def inside(points: Points, x: Sequence[float], y: Sequence[float]) -> npt.NDArray[np.bool_]:
    """[items]: inside a polygon (even–odd rule); two corners are a box."""
    if len(x) != len(y) or len(x) < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.zeros(len(points.x), bool)
    px, py = points.x.astype(float), points.y.astype(float)
    if len(x) == 2:
        return (px >= min(x)) & (px <= max(x)) & (py >= min(y)) & (py <= max(y))
    found = np.zeros(len(px), bool)
    near = (px >= min(x)) & (px <= max(x)) & (py >= min(y)) & (py <= max(y))
    qx, qy = px[near], py[near]
    within = np.zeros(len(qx), bool)
    ends = list(zip(x, y, strict=True))
    for (x0, y0), (x1, y1) in zip(ends, [*ends[1:], ends[0]], strict=True):
        if y0 == y1:
            continue
        crosses = (qy < y0) != (qy < y1)
        within ^= crosses & (qx < (x1 - x0) * (qy - y0) / (y1 - y0) + x0)
    found[near] = within
    return found


def selected(event: Mapping[str, Any], points: Points, positions: Mapping[str, int], *, sampled: bool) -> list[int]:
    """The items of a selection event, each once, ascending; a single click: the item clicked.

    Points are known by the item_id that they carry, never by their place among those drawn. Where only a sample is drawn, a box
    or a lasso takes all items inside, drawn or not. Nothing that comes from a browser is believed.
    """
    drawn = areas(event)
    if sampled and drawn:
        found = np.zeros(len(points.x), bool)
        for x, y in drawn:
            found |= inside(points, x, y)
        return [int(item) for item in np.flatnonzero(found)]
    carried = event.get("points")
    ids = (_carried(point) for point in carried) if isinstance(carried, list) else ()
    return sorted({positions[item_id] for item_id in ids if item_id in positions})


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


class Positions(Mapping[str, int]):
    """item_id → item number, as a mapping over `Zoo.position`."""

    def __init__(self, position: Callable[[str], int | None]) -> None:
        self._position = position

    def __getitem__(self, item_id: str) -> int:
        item = self._position(item_id)
        if item is None:
            raise KeyError(item_id)
        return item

    def __iter__(self) -> Iterator[str]:
        raise TypeError("all item_ids are in Zoo.item_ids")

    def __len__(self) -> int:
        raise TypeError("all item_ids are in Zoo.item_ids")


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


def points_table(points: Points, titles: Sequence[str], ids: Sequence[str]) -> pd.DataFrame:
    """Every item on the map with its place."""
    items = points.items
    return pd.DataFrame(
        {
            "Item": [titles[i] for i in items],
            "Item id": [ids[i] for i in items],
            "x": points.x[items],
            "y": points.y[items],
        }
    )
