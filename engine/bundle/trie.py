"""The prefix tree of a catalogue's identifiers, as flat arrays: the children of many nodes at once, without a loop over nodes.

    trie = Trie.build(identifiers)
    children, owners = trie.children(np.array([0]))      # what an identifier may begin with
    trie.items(trie.find([3, 259]))                      # items whose identifier begins with these tokens

Node 0 is the root. Nodes are numbered level by level, and within a level in the order of their tokens, so the children of a
node stand side by side. An identifier that is shorter than others ends in one node of the token that ends; nothing follows it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.data.identifiers import NONE, Identifiers
from engine.data.ragged import offsets_of, spread

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
WALK = 4_096
"""Trees of at most so many nodes are walked whole, so that answers are exact: a beam would hardly be faster."""


@dataclass(frozen=True)
class Trie:
    """All arrays but `order`, `leaves` and `anchors` run along the nodes."""

    tokens: Int64
    """The token that leads here; −1 for the root."""
    parents: Int64
    """−1 for the root."""
    depths: Int64
    """Tokens from the root to here."""
    starts: Int64
    """The first child."""
    counts: Int64
    """How many children; 0 for a leaf, which is a whole identifier."""
    lows: Int64
    highs: Int64
    """The items below are order[low:high]."""
    open: Bool
    """Whether there is still a choice: more than one identifier below."""
    order: Int64
    """[items]: item numbers in the order of their identifiers, those of one identifier by number."""
    leaves: Int64
    """[items]: the leaf of each item; items that share it are a tie."""
    anchors: Int64
    """[items]: the first node on the way to the item below which nothing is open; all that follows it is certain."""
    vocabulary: int

    @classmethod
    def build(cls, identifiers: Identifiers) -> Trie:
        written = identifiers.tokens()
        items, levels = written.shape
        order = np.lexsort(written.T[::-1]).astype(np.int64)
        written = written[order]
        real = np.ones((items, levels), bool)  # of the tokens that end, the first one alone
        real[:, 1:] = identifiers.codes[order][:, :-1] != NONE
        begins = np.zeros(items, bool)  # rows that differ from the one before in what was read so far
        begins[0] = True
        at = np.zeros(items, np.int64)  # the node of each row
        tokens, parents, depths, lows, highs = ([np.array([value])] for value in (-1, -1, 0, 0, items))
        total = 1
        for level in range(levels):
            begins[1:] |= written[1:, level] != written[:-1, level]
            new = begins & real[:, level]
            rows = np.flatnonzero(new)
            ends = np.append(np.flatnonzero(begins), items)
            tokens.append(written[rows, level])
            parents.append(at[rows])
            depths.append(np.full(len(rows), level + 1))
            lows.append(rows)
            highs.append(ends[np.searchsorted(ends, rows, side="right")])
            at = np.where(real[:, level], np.cumsum(new) - 1 + total, at)
            total += len(rows)
        low, high = np.concatenate(lows), np.concatenate(highs)
        above = np.concatenate(parents)
        several = np.cumsum(begins)  # the number of the identifier of each row
        undecided = several[high - 1] > several[low]
        leaves = np.empty(items, np.int64)
        leaves[order] = at
        anchors = leaves.copy()
        for _ in range(levels):
            up = above[anchors]
            anchors = np.where((up >= 0) & ~undecided[up], up, anchors)
        return cls(
            tokens=np.concatenate(tokens),
            parents=above,
            depths=np.concatenate(depths),
            starts=1 + np.searchsorted(above[1:], np.arange(total)),
            counts=np.bincount(above[1:], minlength=total),
            lows=low,
            highs=high,
            open=undecided,
            order=order,
            leaves=leaves,
            anchors=anchors,
            vocabulary=identifiers.vocabulary,
        )

    def __len__(self) -> int:
        """How many nodes, the root included."""
        return len(self.tokens)

    def children(self, nodes: Int64) -> tuple[Int64, Int64]:
        """All children of the nodes, one node's after the other's, and for each of them the place in `nodes` of its parent."""
        counts = self.counts[nodes]
        return spread(self.starts[nodes], counts), np.repeat(np.arange(len(nodes)), counts)

    def child(self, nodes: Int64, tokens: Int64) -> Int64:
        """The child of each node under the token beside it; −1 where there is none, or where the node is −1 itself."""
        keys = nodes * self.vocabulary + tokens
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where((nodes >= 0) & (self._keys[place] == keys), place + 1, -1)

    @functools.cached_property
    def _keys(self) -> Int64:
        """Parent and token of each node but the root in one number; ascending, as the nodes are numbered."""
        return self.parents[1:] * self.vocabulary + self.tokens[1:]

    def find(self, tokens: Sequence[int]) -> int:
        """The node that these tokens lead to; −1 where no identifier begins so."""
        node = np.zeros(1, np.int64)
        for token in tokens:
            node = self.child(node, np.array([token]))
        return int(node[0])

    def path(self, node: int) -> list[int]:
        """The nodes from below the root to this one."""
        nodes = []
        while node > 0:
            nodes.append(node)
            node = int(self.parents[node])
        return nodes[::-1]

    def items(self, node: int) -> Int64:
        """The items below the node (or of a leaf), by number."""
        return np.sort(self.order[self.lows[node] : self.highs[node]])

    def below(self, items: Bool) -> Int64:
        """items: bool [items] → int64 [nodes], how many of those items are below each node."""
        before = offsets_of(items[self.order])
        return before[self.highs] - before[self.lows]
