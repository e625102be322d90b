"""The prefix tree of a catalogue's identifiers, as flat arrays.

Nodes are numbered level by level from the root (0), and within a level in the order of their tokens, so the children of a node
stand side by side and in order. Every path has as many nodes as there are levels: a shorter identifier ends in tokens END, of
which only the first is ever written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.data.identifiers import Identifiers

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trie:
    """tokens, parents: int64 [nodes], the root's own are −1; first: int64 [nodes + 1], the children of node i are
    first[i] … first[i + 1] − 1; starts: where each level begins, from the root's to one past the last; leaves: int64 [items],
    the leaf of each item (a leaf of several items is a tie); end: the token END, −1 where every identifier has full length."""

    tokens: Ints
    parents: Ints
    first: Ints
    starts: tuple[int, ...]
    leaves: Ints
    end: int

    @classmethod
    def of(cls, identifiers: Identifiers) -> Trie:
        codes = identifiers.tokens()
        inner = np.zeros(len(codes), np.int64)  # each item's node within the level
        tokens, parents, counts, starts = [np.array([-1])], [np.array([-1])], [], [0, 1]
        for level in range(identifiers.levels):
            pairs, place = np.unique(np.stack([inner, codes[:, level]], 1), axis=0, return_inverse=True)
            counts.append(np.bincount(pairs[:, 0], minlength=starts[-1] - starts[-2]))
            tokens.append(pairs[:, 1])
            parents.append(pairs[:, 0] + starts[-2])
            inner = place.reshape(-1).astype(np.int64)
            starts.append(starts[-1] + len(pairs))
        counts.append(np.zeros(starts[-1] - starts[-2], np.int64))
        first = 1 + np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        end = identifiers.vocabulary - 1 if identifiers.ends else -1
        return cls(
            np.concatenate(tokens), np.concatenate(parents), first.astype(np.int64), tuple(starts), inner + starts[-2], end
        )  # fmt: skip

    def __len__(self) -> int:
        """Nodes, the root among them."""
        return len(self.tokens)

    @property
    def levels(self) -> int:
        return len(self.starts) - 2

    @property
    def children(self) -> Ints:
        """int64 [nodes]: how many children each has."""
        return np.diff(self.first)

    def level(self, depth: int) -> range:
        """The nodes of a level; 0 is the root's."""
        return range(self.starts[depth], self.starts[depth + 1])

    def asked(self, constrained: bool) -> npt.NDArray[np.bool_]:
        """bool [nodes]: where a network has to be asked in order to score all items.

        Constrained: nodes with two children or more, and all above one of these, since a network reads what it has written; a
        single child is certain. Unconstrained: every node that is written further.
        """
        if constrained:
            found = self.children > 1
        else:
            found = (self.children > 0) & (self.tokens != self.end) if self.end >= 0 else self.children > 0
        for depth in range(self.levels, 0, -1):
            span = slice(self.starts[depth], self.starts[depth + 1])
            found[self.parents[span][found[span]]] = True
        return found

    def on(self, device: torch.device) -> TorchTrie:
        return TorchTrie(self, device)


class TorchTrie:
    """The arrays of a trie as tensors on one device."""

    def __init__(self, trie: Trie, device: torch.device) -> None:
        self.trie = trie
        self.tokens, self.parents, self.first, self.leaves = (
            torch.from_numpy(array).to(device) for array in (trie.tokens, trie.parents, trie.first, trie.leaves)
        )
        self.children = self.first.diff()
        bottom = trie.level(trie.levels)
        self.bottom = bottom.start
        self.sizes = torch.bincount(self.leaves - bottom.start, minlength=len(bottom))
        """Items of each leaf, int64 [leaves]."""

    def expand(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Children of each node, int64 [..., most], and which of them are (bool); a node −1 has none."""
        known = nodes.clamp(min=0)
        count = torch.where(nodes >= 0, self.children[known], 0)
        place = torch.arange(int(count.max()), device=nodes.device)
        real = place < count[..., None]
        return torch.where(real, self.first[known][..., None] + place, 0), real
