"""The nearest rows of any table of vectors, by comparison with all of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.runtime.answers import Neighbours
from engine.runtime.faults import QuestionError
from engine.runtime.index import best

Rows = npt.NDArray[np.floating[Any]]
_CHUNK = 1 << 20  # numbers that are widened to float32 at a time


def nearest(rows: Rows, item: int, k: int, geometry: Literal["cosine", "euclidean"]) -> Neighbours:
    """The k items whose rows are nearest to the item's, nearest first, equal ones by number; fewer where there are fewer.

    rows: float16 or float32 [items, dim]; sums are taken in float32. Under "cosine" a row of zeros stands for nothing: it is
    nobody's neighbour. Raises QuestionError where the item does not exist, where its own row is such a one, or for k < 1.
    """
    if not 0 <= item < len(rows):
        raise QuestionError(f"There is no item number {item}: this catalogue has 0 to {len(rows) - 1}.")
    if k < 1:
        raise QuestionError(f"k must be 1 or more, not {k}.")
    with np.errstate(over="ignore", invalid="ignore"):
        near = _cosines(rows, item) if geometry == "cosine" else _distances(rows, item)
    if np.isnan(near).any() or (geometry == "euclidean" and np.isinf(near).any()):
        raise QuestionError("The numbers of this space are too large to be compared.")
    near[item] = -np.inf
    found = best(near, k)
    return Neighbours(found, near[found], geometry)


def _cosines(rows: Rows, item: int) -> npt.NDArray[np.float32]:
    own = rows[item].astype(np.float32)
    length = np.sqrt(np.einsum("j,j->", own, own))
    if not length > 0:
        raise QuestionError("This item has no vector in this space, so it has no neighbours there.")
    found = np.full(len(rows), -np.inf, np.float32)
    step = max(1, _CHUNK // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step].astype(np.float32, copy=False)
        # numpy's own loops: equal rows give equal products, whichever place they have (see `index.products`)
        products = np.einsum("ij,j->i", part, own)
        lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
        np.divide(products, lengths * length, out=found[start : start + step], where=lengths > 0)
    return np.clip(found, -1, 1, out=found, where=found > -np.inf)


def _distances(rows: Rows, item: int) -> npt.NDArray[np.float32]:
    """Minus the distance. By differences, as in `ItemIndex.distances`."""
    own = rows[item].astype(np.float32)
    found = np.empty(len(rows), np.float32)
    step = max(1, _CHUNK // rows.shape[1])
    for start in range(0, len(rows), step):
        apart = rows[start : start + step].astype(np.float32, copy=False) - own
        np.einsum("ij,ij->i", apart, apart, out=found[start : start + step])
    return np.subtract(0, np.sqrt(found), out=found)
