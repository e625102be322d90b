"""From a network that writes codes to items: beam search, the whole trie, or single paths.

Constrained: at every node the softmax runs over the children in the trie, so no probability is spent on identifiers that do not
exist, and none can be written. Unconstrained: the softmax runs over the vocabulary, and what is written may be nobody's.
Both score items, not strings: an identifier that several items share gives all of them its score.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bundle.trie import Trie

if TYPE_CHECKING:
    from engine.generation.base import Generator

OUTSIDE = -1e30
"""Score of an item that a beam did not reach: less than any log-probability, and the same for all of them, which is a tie."""
LOGITS = 1 << 22
"""Logits at a time (16 MiB) when many nodes are asked."""
NODES = 1 << 14
"""Nodes of all people together whose keys and values are kept while the trie is walked."""


class TorchTrie:
    """The arrays of a trie as tensors on one device. A leaf is its own and only child: whoever is there stays there, which is
    certain, so that identifiers shorter than others need no case of their own."""

    def __init__(self, trie: Trie, device: torch.device) -> None:
        self.device = device
        leaf = trie.counts == 0
        self.starts, self.counts = (
            torch.from_numpy(np.where(leaf, at_leaves, inside)).to(device)
            for at_leaves, inside in ((np.arange(len(trie)), trie.starts), (1, trie.counts))
        )
        self.tokens, self.parents, self.depths, self.lows, self.highs, self.order, self.leaves, self.open = (
            torch.from_numpy(array).to(device)
            for array in (
                trie.tokens, trie.parents, trie.depths, trie.lows, trie.highs, trie.order, trie.leaves, trie.open
            )
        )  # fmt: skip
        begins = np.searchsorted(trie.depths, np.arange(trie.depths[-1] + 2)).tolist()
        self.levels = [slice(start, stop) for start, stop in itertools.pairwise(begins)]
        """The nodes of each level, the root's first."""

    def __len__(self) -> int:
        return len(self.tokens)

    def expand(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Children of each node, int64 [..., most], and which of them are (bool); a node −1 has none."""
        known = nodes.clamp(min=0)
        count = torch.where(nodes >= 0, self.counts[known], 0)
        place = torch.arange(max(1, int(count.max())), device=nodes.device)
        real = place < count[..., None]
        return torch.where(real, self.starts[known][..., None] + place, 0), real


class Memory(NamedTuple):
    """A history, read: keys and values float32 [people, layers, heads, places, head_dim]; mask [people, places] or
    [people, beams, places], added to logits: 0, or −inf where nothing stands."""

    keys: Tensor
    values: Tensor
    mask: Tensor

    def take(self, rows: slice) -> Memory:
        return Memory(self.keys[rows], self.values[rows], self.mask[rows])


class Past(NamedTuple):
    """What was written so far, as attention needs it: float32 [people, beams, layers, heads, written, head_dim]."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class Beams:
    """What a beam search found, best first.

    tokens: int64 [people, width, levels]; scores: float32 [people, width], log-probabilities, −inf where there are fewer;
    leaves: int64 [people, width], numbers of the trie's nodes, −1 where nothing has this identifier.
    """

    tokens: Tensor
    scores: Tensor
    leaves: Tensor

    @property
    def invalid(self) -> Tensor:
        """How many of each person's identifiers belong to no item, int64 [people]."""
        return ((self.leaves < 0) & (self.scores > -torch.inf)).sum(1)


@torch.no_grad()
def beam_search(
    model: Generator, memory: Memory, width: int, *, constrained: bool = True, blocked: Tensor | None = None
) -> Beams:
    """The `width` most probable identifiers after each history, as far as a beam of that width sees.

    blocked: bool [people, items], items that are not wanted. What leads to such items alone is not followed, so it takes no
    place from others; its probability is not given to them.
    """
    trie, people = model.branches, len(memory.mask)
    end = model.vocabulary - 1 if model.identifiers.ends else -1
    device = memory.mask.device
    nodes = torch.zeros(people, 1, dtype=torch.int64, device=device)
    scores = torch.zeros(people, 1, device=device)
    tokens = torch.empty(people, 1, 0, dtype=torch.int64, device=device)
    last = torch.full((people, 1), model.bos, device=device)
    past: Past | None = None
    rows = torch.arange(people, device=device)[:, None]
    allowed = None if blocked is None else _wanted(trie, blocked)
    for level in range(model.levels):
        logits, past = model.decode(last[..., None], memory, past)
        logits = logits[:, :, 0].float()
        if constrained:
            children, real = trie.expand(nodes)
            written = trie.tokens[children].clamp(min=0)
            child_logits = logits.gather(2, written).masked_fill(~real, -torch.inf)
            # a beam that is no beam (there were fewer identifiers) has no children
            share = child_logits - torch.where(
                real.any(-1, keepdim=True), child_logits.logsumexp(-1, keepdim=True), 0.0
            )
        else:
            written = torch.arange(model.vocabulary, device=device).expand(people, nodes.shape[1], -1)
            share = F.log_softmax(logits, -1)
            if end >= 0 and level:  # nothing follows END but END, which costs nothing
                ended = (last == end)[..., None]
                only = torch.where(written == end, 0.0, -torch.inf)
                share = torch.where(ended, only, share)
            children = _step(trie, nodes, written)
        total = scores[..., None] + share
        if allowed is not None:  # the last column answers for what is no node
            alive = allowed.gather(1, torch.where(children < 0, len(trie), children).flatten(1)).view(children.shape)
            total = total.masked_fill(~alive, -torch.inf)
        fan = total.shape[2]
        scores, best = total.flatten(1).topk(min(width, nodes.shape[1] * fan), dim=1)
        beam = best // fan
        nodes, last = children.flatten(1).gather(1, best), written.flatten(1).gather(1, best)
        nodes = torch.where(scores > -torch.inf, nodes, -1)
        tokens = torch.cat([tokens[rows, beam], last[..., None]], -1)
        past = Past(past.keys[rows, beam], past.values[rows, beam])
    return Beams(tokens, scores, nodes)


def _step(trie: TorchTrie, nodes: Tensor, written: Tensor) -> Tensor:
    """The child of each node that each token leads to, −1 where there is none; [people, beams, vocabulary]."""
    next_nodes = torch.full(written.shape, -1, device=nodes.device)
    children, real = trie.expand(nodes)
    next_nodes = F.pad(next_nodes, (0, 1))  # a place for what is no child
    places = torch.where(real, trie.tokens[children], written.shape[2])
    return next_nodes.scatter(2, places, torch.where(real, children, -1))[..., :-1]


def _wanted(trie: TorchTrie, blocked: Tensor) -> Tensor:
    """bool [people, nodes + 1]: which nodes lead to an item that is not blocked; the last, for what is no node, is true."""
    before = F.pad((~blocked)[:, trie.order].cumsum(1), (1, 0))
    return F.pad(before[:, trie.highs] > before[:, trie.lows], (0, 1), value=True)


def item_scores(model: Generator, beams: Beams) -> Tensor:
    """float32 [people, items]: each item's score where its identifier was found, OUTSIDE where it was not."""
    trie = model.branches
    table = beams.scores.new_full((len(beams.scores), len(trie) + 1), OUTSIDE)
    table.scatter_(1, torch.where(beams.leaves >= 0, beams.leaves, len(trie)), beams.scores)
    return table[:, trie.leaves]


def exact_scores(model: Generator, memory: Memory) -> Tensor:
    """float32 [people, items]: the log-probability of every item's identifier, by walking the whole trie level by level.

    Where a node has a single child there is nothing to decide, so the network is asked only at nodes that branch and on the
    way to them. People and nodes go through in groups, so that memory stays bounded.
    """
    size = max(1, NODES // max(1, int(model.branches.open.sum())))
    parts = [_walk(model, memory.take(slice(start, start + size))) for start in range(0, len(memory.mask), size)]
    return torch.cat(parts)


def _walk(model: Generator, memory: Memory) -> Tensor:
    trie, people = model.branches, len(memory.mask)
    slot = torch.full_like(trie.tokens, -1)  # place of an asked node among those of its level
    scores = [memory.mask.new_zeros(people, 1)]  # per level, of its nodes
    level_caches: list[tuple[Tensor, Tensor]] = []  # per level, the asked nodes' keys and values of their own token
    for level, below in itertools.pairwise(trie.levels):
        reached = scores[-1][:, trie.parents[below] - level.start]
        nodes = level.start + trie.open[level].nonzero()[:, 0]
        slot[nodes] = torch.arange(len(nodes), device=nodes.device)
        row = slot[trie.parents[below]]
        child = (row >= 0).nonzero()[:, 0]  # children of asked nodes, in the order of these
        row = row[child]
        caches: list[tuple[Tensor, Tensor]] = []
        size = max(1, LOGITS // (people * model.vocabulary))
        for start in range(0, len(nodes), size):
            part = nodes[start : start + size]
            logits, past = model.decode(_token(model, part, people), memory, _past(trie, part, slot, level_caches))
            caches.append((past.keys[:, :, :, :, -1], past.values[:, :, :, :, -1]))
            first, last = torch.searchsorted(row, torch.tensor([start, start + size], device=row.device)).tolist()
            mine, place = child[first:last], row[first:last] - start
            share = _shares(logits[:, :, 0].float(), place, trie.tokens[below.start + mine])
            reached = reached.index_add(1, mine, share)
        scores.append(reached)
        if caches:
            keys, values = zip(*caches, strict=True)
            level_caches.append((torch.cat(keys, 1), torch.cat(values, 1)))
    return torch.cat(scores, 1)[:, trie.leaves]


def _token(model: Generator, nodes: Tensor, people: int) -> Tensor:
    """The token that leads to each node, BOS to the root: [people, nodes, 1]."""
    tokens = model.branches.tokens[nodes]
    return torch.where(nodes == 0, model.bos, tokens).expand(people, -1)[..., None]


def _past(trie: TorchTrie, nodes: Tensor, slot: Tensor, level_caches: list[tuple[Tensor, Tensor]]) -> Past | None:
    """Keys and values of what was written before each node, collected from its ancestors."""
    pairs: list[tuple[Tensor, Tensor]] = []
    for keys, values in reversed(level_caches):
        nodes = trie.parents[nodes]
        pairs.append((keys[:, slot[nodes]], values[:, slot[nodes]]))
    if not pairs:
        return None
    above, behind = zip(*reversed(pairs), strict=True)
    return Past(torch.stack(above, 4), torch.stack(behind, 4))


def _shares(logits: Tensor, row: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities [people, children] of each child given its parent; row: int64 [children], the parent's in `logits`."""
    child_logits = logits[:, row, tokens]
    most = logits.new_full(logits.shape[:2], -torch.inf)
    most = most.scatter_reduce(1, row.expand(len(logits), -1), child_logits.detach(), "amax")
    sums = torch.zeros_like(most).index_add(1, row, (child_logits - most[:, row]).exp())
    return child_logits - (most + sums.log())[:, row]


def path_scores(model: Generator, memory: Memory, targets: Tensor) -> Tensor:
    """float32 [people, targets]: as `exact_scores`, for some items: int64 [people, targets]. Each path is computed by itself."""
    trie, size = model.branches, max(1, LOGITS // (len(targets) * model.levels * model.vocabulary))
    parts = []
    for start in range(0, targets.shape[1], size):
        chunk = targets[:, start : start + size]
        logits = model.decode(model.inputs(chunk), memory)[0].float()
        total = logits.new_zeros(chunk.shape)
        node = trie.leaves[chunk]
        for level in reversed(range(model.levels)):
            path_tokens = trie.tokens[node]
            node = torch.where(trie.depths[node] > level, trie.parents[node], node)
            children, real = trie.expand(node)
            child_logits = (
                logits[:, :, level].gather(2, trie.tokens[children].clamp(min=0)).masked_fill(~real, -torch.inf)
            )
            total = total + logits[:, :, level].gather(2, path_tokens[..., None])[..., 0] - child_logits.logsumexp(-1)
        parts.append(total)
    return torch.cat(parts, 1)
