"""What is selected on a map, as a text for the address: an outline on one of the maps, a prefix of codes, or item_ids.

sasrec~1.5_2_7.25_9            inside this box (two corners) on the map sasrec
codes.rqvae~0_0_1_0_1_1        items with a code inside this outline on the map of codes
prefix.rqvae~12-200            items whose codes begin so; x-7: any first code, then 7
item.ids~toy-1~toy-2           these items
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.analysis.map_points import Points, inside

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
    where, _, what = text.partition("~")
    return where, what


def outlines(what: str) -> list[Outline] | None:
    """Those of a text; None where it is none."""
    found: list[Outline] = []
    parts = what.split("~") if len(what) <= LONGEST else []
    for part in parts:
        if not _OUTLINE.fullmatch(part):
            return None
        numbers = [float(number) for number in part.split("_")]
        if len(numbers) < 4 or len(numbers) % 2 or len(numbers) > 2 * _CORNERS:
            return None
        found.append((numbers[::2], numbers[1::2]))
    return found if 0 < len(found) <= _OUTLINES else None


def prefix(what: str) -> tuple[int | None, ...] | None:
    """Codes to begin with, None: any; None where the text is no prefix."""
    if not _PREFIX.fullmatch(what):
        return None
    return tuple(None if code == "x" else int(code) for code in what.split("-"))


def beginning(codes: npt.NDArray[np.integer], wanted: Sequence[int | None]) -> npt.NDArray[np.int64]:
    """The items whose codes, int [items, levels], begin so; none where there are fewer levels."""
    found = np.full(len(codes), len(wanted) <= codes.shape[1])
    for level, code in enumerate(wanted[: codes.shape[1]]):
        if code is not None:
            found &= codes[:, level] == code
    return np.flatnonzero(found)


def within(points: Points, areas: Sequence[Outline]) -> npt.NDArray[np.int64]:
    """The points inside any of the outlines."""
    found = np.zeros(len(points.x), bool)
    for x, y in areas:
        found |= inside(points, x, y)
    return np.flatnonzero(found)


def told(points: Points, areas: Sequence[Outline]) -> str | None:
    """The outlines as a short text that has the very same points inside; None where that would be too long."""
    if not 0 < len(areas) <= _OUTLINES or any(len(x) != len(y) or len(x) < 2 for x, y in areas):
        return None
    some = points.items
    if not len(some):
        return None
    width = max(float(np.ptp(points.x[some])), float(np.ptp(points.y[some])), 1e-6)
    digits = int(np.clip(3 - np.floor(np.log10(width)), 0, _DIGITS))
    wanted = within(points, areas)
    simple = [_simpler(points, area) for area in areas]
    for corners in (simple, areas):
        for more in (0, 1, 2, 6):
            text = _text(corners, min(digits + more, _DIGITS))
            again = outlines(text)
            if again is not None and np.array_equal(within(points, again), wanted):
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
            if inside(points, x, y).any():
                place += 1
            else:
                del corners[place]
                place += 1  # not all of one side first
    return [x for x, _ in corners], [y for _, y in corners]
