"""How the codes of semantic IDs are used, and what their prefixes have in common: of reports of training and of pages.

codes: int [items, levels], −1 in trailing places, everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.data.identifiers import NONE

Ints = npt.NDArray[np.integer[Any]]
Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Usage:
    """How the codes of one level are used."""

    counts: npt.NDArray[np.int64]
    """[codes]: items with each code."""

    @property
    def size(self) -> int:
        return len(self.counts)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def ordered(self) -> npt.NDArray[np.int64]:
        """Most used first."""
        return np.sort(self.counts)[::-1]

    @property
    def used(self) -> int:
        return int((self.counts > 0).sum())

    @property
    def dead(self) -> int:
        return self.size - self.used

    @property
    def perplexity(self) -> float:
        """2^H: as many codes, evenly used, would be as hard to guess."""
        shares = self.counts[self.counts > 0] / max(self.total, 1)
        return float(np.exp(-(shares * np.log(shares)).sum()))

    @property
    def normalised(self) -> float:
        """Perplexity as a share of the codes: 1 where all are used alike; see `normalised_by_chance`."""
        return self.perplexity / self.size

    @property
    def gini(self) -> float:
        """0: all codes equally often; towards 1: one code has everything. Dead codes count."""
        rising = np.sort(self.counts)
        places = 2 * np.arange(1, self.size + 1) - self.size - 1
        return float((places * rising).sum() / (self.size * max(self.total, 1)))

    def lorenz(self) -> tuple[Float, Float]:
        """(share of codes, share of items they have), the least used first; from (0, 0) to (1, 1)."""
        held = np.concatenate([[0], np.cumsum(np.sort(self.counts))]) / max(self.total, 1)
        return np.linspace(0, 1, self.size + 1), held


def usage(codes: Ints, sizes: Sequence[int]) -> list[Usage]:
    """One entry per level."""
    return [
        Usage(np.bincount(codes[codes[:, level] != NONE, level], minlength=size).astype(np.int64))
        for level, size in enumerate(sizes)
    ]


class Depth(NamedTuple):
    """How much items with the same first codes have in common."""

    depth: int
    groups: int
    """Different beginnings."""
    items: int
    """Items with a category whose beginning another one has, too."""
    purity: float
    """Share of these that are of their group's commonest category; NaN without any."""
    chance: float
    """The same with the categories dealt out anew."""


def purity(codes: Ints, categories: Ints, seed: int = 0) -> list[Depth]:
    """Per depth. categories: int [items], −1 where an item has none; such items are left out."""
    known = categories >= 0
    codes, categories = codes[known], categories[known]
    dealt = np.random.default_rng(seed).permutation(categories)
    depths = []
    for depth in range(1, codes.shape[1] + 1):
        _, group, counts = np.unique(codes[:, :depth], axis=0, return_inverse=True, return_counts=True)
        shared = counts[group] > 1
        many = int(shared.sum())
        values = [
            _pure(group[shared], labels[shared], len(counts)) / many if many else float("nan")
            for labels in (categories, dealt)
        ]
        depths.append(Depth(depth, len(counts), many, *values))
    return depths


def _pure(group: Ints, labels: Ints, number: int) -> int:
    cells, times = np.unique(np.stack([group, labels]), axis=1, return_counts=True)
    best = np.zeros(number, np.int64)
    np.maximum.at(best, cells[0], times)
    return int(best.sum())
