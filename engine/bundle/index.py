"""index.npy in memory: every item's row and bias, exact retrieval over all of them, ranks of scores, and the nearest rows of any
table of vectors.

score(i) = query · row_i + bias_i is one matrix-vector product of the file's own layout [items, dim + 1] with [query, 1]:
nothing is copied, and the index is read once, at the speed of memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.bundle.errors import QuestionError
from engine.bundle.files import Folder
from engine.bundle.manifest import File
from engine.bundle.tables import read_matrix
from engine.machine import cores

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
_ALONE = 128 << 20  # bytes of a table that one core is done with before another would surely have begun
_PIECE = 8 << 20  # bytes that a core takes at a time from a larger one
_pool = ThreadPoolExecutor(max(1, cores() - 1), "index")  # makes no thread before its first task
_ROUNDING = 1e-4  # relative, far beyond what two ways to add a few hundred products differ by
_SPARE = 16  # items that are looked at besides the k best, so that the next ones can be seen to be worse


@dataclass(frozen=True)
class ItemIndex:
    """table: float32 [items, dim + 1], bias last (identity: [items, 1], bias alone)."""

    table: Float32
    identity: bool

    def __len__(self) -> int:
        return len(self.table)

    @property
    def rows(self) -> Float32:
        """float32 [items, dim], a view; empty for an identity index."""
        return self.table[:, :-1]

    def scores(self, query: Float32) -> Float32:
        """query: float32 [dim] → a new float32 [items], infinite or NaN where float32 does not hold the sum."""
        if self.identity:
            with np.errstate(over="ignore"):
                return query + self.table[:, 0]
        return products(self.table, np.append(query, np.float32(1)))

    def many(self, queries: Float32) -> Float32:
        """queries: float32 [batch, dim] → float32 [batch, items], by one matrix product: `scores` but for rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.identity:
                return queries + self.table[:, 0]
            scores: Float32 = queries @ self.rows.T
            scores += self.table[:, -1]
        return scores

    def best_many(self, queries: Float32, rough: Float32, k: int) -> Iterator[tuple[Int32, Float32]]:
        """For each query the k best items and their scores, as `best` orders them; fewer where fewer are finite.

        rough: float32 [batch, items], `many` of the queries, −inf where an item is left out. Its last bits differ between equal
        items, so the few that may be among the best are scored once more, alike items alike.
        """
        wide = k + _SPARE
        if wide >= len(self):
            yield from (
                self._best(query, scores, np.flatnonzero(scores > -np.inf), k)
                for query, scores in zip(queries, rough, strict=True)
            )
            return
        near = np.argpartition(rough, len(self) - wide, axis=1)[:, -wide:]
        values = np.sort(np.take_along_axis(rough, near, axis=1), axis=1)
        with np.errstate(invalid="ignore"):  # −inf − −inf, where nearly all is left out
            clear = values[:, -k] - values[:, 0] > _ROUNDING * np.maximum(np.abs(values[:, -1]), 1e-30)
        for query, scores, few, least, is_clear in zip(queries, rough, near, values[:, -k], clear, strict=True):
            if not is_clear:  # more may be as good as the last of the best
                slack = (
                    _ROUNDING * max(abs(float(scores.max())), abs(float(least)), 1e-30) if least > -np.inf else np.inf
                )
                few = np.flatnonzero(scores >= least - slack)
            yield self._best(query, scores, few[scores[few] > -np.inf], k)

    def _best(self, query: Float32, rough: Float32, few: npt.NDArray[np.int64], k: int) -> tuple[Int32, Float32]:
        if self.identity:
            exact = rough[few]
        else:
            exact = np.einsum("ij,j->i", self.table[few, :-1], query) + self.table[few, -1]
        order = np.lexsort((few, -exact))[:k]
        return few[order].astype(np.int32), exact[order]


def products(table: Float32, vector: Float32) -> Float32:
    """table · vector: float32 [rows, columns], [columns] → a new float32 [rows]; equal rows give equal products.

    By numpy's own loop instead of BLAS. BLAS computes the last rows of a product with another kernel, so that equal items would
    differ in the last bit; and its threads wait for each other, which takes 20 ms instead of 0.1 where the cores are shared.
    """
    sums = np.empty(len(table), np.float32)
    whole = table.nbytes <= _ALONE
    step = max(1, len(table) if whole else _PIECE // table[0].nbytes)
    pieces = deque(range(0, len(table), step))

    def work() -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            while pieces:
                try:
                    start = pieces.popleft()
                except IndexError:  # another thread took the last one
                    return
                np.einsum("ij,j->i", table[start : start + step], vector, out=sums[start : start + step])

    helpers = [] if whole else [_pool.submit(work) for _ in range(cores() - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # one that had no turn yet is not waited for: the work is done
            helper.result()
    return sums


def best(scores: Float32, k: int) -> Int32:
    """Item numbers of the k highest scores (fewer where fewer are finite), best first, equal scores by item number."""
    k = min(k, len(scores))
    threshold = scores[np.argmax(scores)] if k == 1 else np.partition(scores, len(scores) - k)[len(scores) - k]
    if threshold == -np.inf:
        above = np.flatnonzero(scores > -np.inf)
        return above[np.lexsort((above, -scores[above]))].astype(np.int32)
    # Above the threshold stand fewer than k; of those at it, the first in order. A constant model is not sorted at all.
    above = np.flatnonzero(scores > threshold)
    above = above[np.lexsort((above, -scores[above]))]
    level = np.flatnonzero(scores == threshold)[: k - len(above)]
    return np.concatenate([above, level]).astype(np.int32)


# --- ranks, 1 is best, ties at their mean; engine/evaluation/ranks.py has them in torch


def mean_rank(
    scores: npt.NDArray[np.floating], score: npt.ArrayLike, candidates: npt.NDArray[np.bool_] | Literal[True] = True
) -> Float64:
    """1 + the candidates above + half of the other candidates level with it: float64 [...].

    scores: [..., items]; score: [...], that of a candidate; candidates: bool [items], True: all.
    """
    target = np.asarray(score)[..., None]
    above = np.count_nonzero((scores > target) & candidates, axis=-1)
    level = np.count_nonzero((scores == target) & candidates, axis=-1) - 1
    return np.asarray(1 + above + level / 2, np.float64)


def ranks_among(others: npt.NDArray[np.floating], scores: npt.ArrayLike) -> Float64:
    """The rank that each of `scores` would have among `others`, which it is none of: float64, as long as `scores`."""
    ordered = np.sort(others)
    not_above = np.searchsorted(ordered, scores, side="right")
    level = not_above - np.searchsorted(ordered, scores, side="left")
    return np.asarray(1 + (len(ordered) - not_above) + level / 2, np.float64)


def read_index(folder: Folder, expected: File, items: int, dim: int, identity: bool) -> ItemIndex:
    """index.npy: every item's row and bias. Raises BundleError."""
    return ItemIndex(read_matrix(folder, "index.npy", expected, (items, 1 if identity else dim + 1)), identity)


Rows = npt.NDArray[np.floating[Any]]
_WIDENED = 1 << 20  # numbers that are widened to float32 at a time


def nearest(rows: Rows, item: int, k: int, geometry: str, centre: Float32 | None = None) -> Neighbours:
    """The k items whose rows are nearest to the item's, nearest first, equal ones by number; fewer where there are fewer.

    rows: float16 or float32 [items, dim]; sums are taken in float32. Under "cosine" a row of zeros stands for nothing: it is
    nobody's neighbour. centre: float32 [dim], what is taken from every row before angles are compared. Raises QuestionError where
    the item does not exist, where its own row is such a one, or for k < 1.
    """
    if not 0 <= item < len(rows):
        raise QuestionError(f"There is no item number {item}: this catalogue has 0 to {len(rows) - 1}.")
    if k < 1:
        raise QuestionError(f"k must be 1 or more, not {k}.")
    with np.errstate(over="ignore", invalid="ignore"):
        near = _cosines(rows, item, centre) if geometry == "cosine" else minus_distances(rows, item)
    if np.isnan(near).any() or (geometry == "euclidean" and np.isinf(near).any()):
        raise QuestionError("The numbers of this space are too large to be compared.")
    near[item] = -np.inf
    neighbours = best(near, k)
    return Neighbours(neighbours, near[neighbours], geometry)


def _cosines(rows: Rows, item: int, centre: Float32 | None) -> Float32:
    row = rows[item].astype(np.float32) if centre is None else rows[item] - centre
    length = np.sqrt(np.einsum("j,j->", row, row))
    if not length > 0:
        raise QuestionError("This item has no vector in this space, so it has no neighbours there.")
    cosines = np.full(len(rows), -np.inf, np.float32)
    step = max(1, _WIDENED // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step].astype(np.float32, copy=False)
        part = part if centre is None else part - centre
        # numpy's own loops: equal rows give equal products, whichever place they have (see `index.products`)
        products = np.einsum("ij,j->i", part, row)
        lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
        np.divide(products, lengths * length, out=cosines[start : start + step], where=lengths > 0)
    return np.clip(cosines, -1, 1, out=cosines, where=cosines > -np.inf)


def minus_distances(rows: Rows, item: int) -> Float32:
    """Minus the Euclidean distance of the item's row to every row, float32 [items].

    By differences: |x|² + |y|² − 2 x·y would lose all digits for the very items asked for, the near ones.
    """
    row = rows[item].astype(np.float32)
    distances = np.empty(len(rows), np.float32)
    step = max(1, _WIDENED // rows.shape[1])
    for start in range(0, len(rows), step):
        with np.errstate(over="ignore"):
            apart = rows[start : start + step].astype(np.float32, copy=False) - row
            np.einsum("ij,ij->i", apart, apart, out=distances[start : start + step])
    return np.subtract(0, np.sqrt(distances), out=distances)  # not −0, which a page would print


class Neighbours(NamedTuple):
    """The items nearest to one item in the model's own space, nearest first."""

    items: Int32
    similarity: Float32
    """Cosine (−1 to 1) where measure is "cosine"; minus the distance where it is "euclidean". Higher is nearer."""
    measure: str
