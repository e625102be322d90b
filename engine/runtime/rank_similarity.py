"""How much two lists of recommendations, or two score vectors, agree. Pure functions on numpy arrays.

Scores of different models have different units: compare places, not scores.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from engine.bundle.index import Float64, ranks_among

Items = Sequence[int] | npt.NDArray[np.integer]


def overlap(lists: Sequence[Items], k: int) -> npt.NDArray[np.int64]:
    """How many items two lists share among their first k: int64 [lists, lists]; the diagonal holds the lengths."""
    sets = [set(map(int, items[:k])) for items in lists]
    return np.array([[len(a & b) for b in sets] for a in sets], np.int64).reshape(len(sets), len(sets))


def jaccard(lists: Sequence[Items], k: int) -> Float64:
    """Shared items over all items of either list, among their first k: float64 [lists, lists]; 1 where both are empty."""
    shared = overlap(lists, k)
    either = np.diag(shared)[:, None] + np.diag(shared)[None, :] - shared
    return np.where(either > 0, shared / np.maximum(either, 1), 1.0)


def rbo(first: Items, second: Items, p: float = 0.9) -> float:
    """Rank-biased overlap of two rankings without repeats, 0 (nothing shared) to 1 (the same): the extrapolated RBO_ext.

    Webber, Moffat & Zobel 2010, "A similarity measure for indefinite rankings", equation 32. A reader looks at depth d + 1 with
    probability p after depth d; what is beyond the lists is assumed to agree as what was seen. State p with every figure, and
    `rbo_weight(p, k)` with it: at p = 0.9 the first 10 places carry 86 % of the weight.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must lie between 0 and 1, not {p}")
    short, long = sorted(([*map(int, first)], [*map(int, second)]), key=len)
    if len(set(short)) != len(short) or len(set(long)) != len(long):
        raise ValueError("a ranking holds an item twice")
    if not short:
        return 1.0 if not long else 0.0
    s, length = len(short), len(long)
    shared = _shared(short, long)
    depth, weight = _depths(p, length)
    seen = np.sum(shared / depth * weight)
    beyond = 0.0 if s == length else np.sum(shared[s - 1] * (depth[s:] - s) / (s * depth[s:]) * weight[s:])
    last = (shared[-1] - shared[s - 1]) / length + shared[s - 1] / s
    return float((1 - p) / p * (seen + beyond) + last * p**length)


@functools.lru_cache(maxsize=64)
def _depths(p: float, length: int) -> tuple[npt.NDArray[np.int64], Float64]:
    """1 … length, and how likely a reader gets to look beyond each."""
    depth = np.arange(1, length + 1, dtype=np.int64)
    return depth, np.power(p, depth, dtype=np.float64)


def _shared(short: list[int], long: list[int]) -> npt.NDArray[np.int64]:
    """Items that both lists hold within their first d places, d = 1 … len(long)."""
    place = {item: d for d, item in enumerate(short)}
    both = np.zeros(len(long), np.int64)
    for d, item in enumerate(long):
        if item in place:
            both[max(d, place[item])] += 1
    return np.cumsum(both)


def rbo_weight(p: float, depth: int) -> float:
    """The share of RBO's weight on the first `depth` places (the same paper, equation 21)."""
    d = np.arange(1, depth)
    return float(1 - p ** (depth - 1) + (1 - p) / p * depth * (np.log(1 / (1 - p)) - np.sum(p**d / d)))


def mean_ranks(values: npt.ArrayLike) -> Float64:
    """Rank of every value, 1 is the highest, ties at their mean: float64, as long as `values`."""
    return ranks_among(np.asarray(values), values) - 0.5  # which are not level with themselves


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Spearman's rank correlation of two score vectors over the same items, ties at their mean; NaN where one is constant."""
    a, b = mean_ranks(first), mean_ranks(second)
    if a.shape != b.shape:
        raise ValueError(f"the vectors have {len(a)} and {len(b)} entries")
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(np.clip((a @ b) / norm, -1, 1)) if norm > 0 else float("nan")


Change = Literal["up", "down", "same", "new", "dropped"]


@dataclass(frozen=True)
class Move:
    """One item of two lists. before, after: its place in each, 1 is the top; None where it is not there."""

    item: int
    before: int | None
    after: int | None

    @property
    def change(self) -> Change:
        if self.before is None:
            return "new"
        if self.after is None:
            return "dropped"
        return "same" if self.after == self.before else "up" if self.after < self.before else "down"

    def __str__(self) -> str:
        """↑3, ↓1, =, new, dropped."""
        if self.before is None or self.after is None:
            return self.change
        steps = self.before - self.after
        return "=" if steps == 0 else f"↑{steps}" if steps > 0 else f"↓{-steps}"


def movement(before: Items, after: Items) -> list[Move]:
    """What became of each item from one list to the other: in the order of `after`, then the dropped ones as they stood."""
    was = {int(item): place for place, item in enumerate(before, 1)}
    now = {int(item): place for place, item in enumerate(after, 1)}
    moves = [Move(item, was.get(item), place) for item, place in now.items()]
    return moves + [Move(item, place, None) for item, place in was.items() if item not in now]
