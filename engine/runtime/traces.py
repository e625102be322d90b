"""What a generator wrote, and what it considered on the way, in a form that a page can draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.runtime.index import Float32, Int32


@dataclass(frozen=True)
class Generation:
    """The identifiers that a beam search ended with, best first. They may be of items that the history holds."""

    tokens: npt.NDArray[np.int64]
    """[beams, levels]: as numbers of the vocabulary; −1 after the end."""
    levels: Int32
    """[beams, levels]: the level that each token belongs to, −1 after the end. In an identifier that exists, token i is of
    level i."""
    codes: Int32
    """[beams, levels]: the codes within those levels; −1 for the token that ends, and after it."""
    scores: Float32
    """[beams]: log-probabilities."""
    items: tuple[Int32, ...]
    """[beams]: the items of each identifier, by number: several where they share it, none where nobody has it."""

    @property
    def invalid(self) -> int:
        """How many of the identifiers no item has. 0 unless the search was unconstrained."""
        return sum(not len(items) for items in self.items)

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class Trace:
    """The tree of prefixes that a beam search considered, one row per prefix, step after step; parents come before children.

    All arrays have one entry per row. Prefixes that were dropped are listed as far as was asked for, the best ones.
    """

    parents: Int32
    """The row of the prefix without its last code; −1 at the first step."""
    depths: Int32
    """Codes in the prefix, from 1."""
    tokens: npt.NDArray[np.int64]
    """The last token, as a number of the vocabulary."""
    levels: Int32
    """The level that the token belongs to, from 0."""
    codes: Int32
    """The code within that level; −1 for the token that ends."""
    probabilities: Float32
    """Of the last code, given those before; 1 where there was no choice."""
    scores: Float32
    """Log-probability of the whole prefix."""
    kept: npt.NDArray[np.bool_]
    """Whether the beam went on with it (or had it finished)."""
    below: Int32
    """How many items begin so; 0 where none does (unconstrained alone)."""
    places: Int32
    """For the identifiers that the search ended with their place, 0 is best; −1 elsewhere."""
    items: tuple[Int32, ...]
    """The items of whole identifiers, those left out (the history) included; empty for all other prefixes."""
    considered: tuple[int, ...]
    """Per step: how many prefixes were weighed."""
    mass: tuple[float, ...]
    """Per step: the probability that some item below the kept prefixes is written; what is missing from 1 was given up."""

    def __len__(self) -> int:
        return len(self.parents)

    def path(self, row: int) -> list[int]:
        """The rows from the first step to this one."""
        found = []
        while row >= 0:
            found.append(row)
            row = int(self.parents[row])
        return found[::-1]


@dataclass(frozen=True)
class Agreement:
    """How faithful a beam of one width is to exact scores, over some histories."""

    width: int
    overlap: float
    """Mean share of the exact first k that are among the beam's first k."""
    same: float
    """Share of histories whose first k items are the same, in the same order."""
    first: float
    """Share of histories whose best item is the same."""
    histories: int


@dataclass(frozen=True)
class CrossAttention:
    """What each step looked at in the history while one item's identifier was written."""

    item: int
    weights: Float32
    """[steps, layers, heads, places]; for a decoder that attends to what it has written as well (decoder-only), the rest to 1
    went there."""
    codes: Int32
    """[steps]: the code that was written at each step; −1 for the one that ends."""
    positions: tuple[int, ...]
    """[places]: the place in the history (0 is its first event)."""
    items: tuple[int, ...]
    """[places]"""
    levels: tuple[int, ...]
    """[places]: which code of the item, from 0; −1 for what stands before its codes."""
