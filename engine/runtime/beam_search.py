"""From what a decoder says about the next token to items: beam search, and exact scores by walking the whole prefix tree.

The score of an item is the natural logarithm of the probability that its identifier is written. Constrained, every step's
softmax runs over the tokens that continue some identifier, so the probabilities of all identifiers sum to 1 and a step without
a choice is certain; unconstrained, it runs over the whole vocabulary, and what is written may be no identifier at all.

A node below which nothing is open (one identifier alone) is never shown to the network in constrained search: its way is
certain. In a catalogue whose last level merely tells collisions apart, that is most of the tree.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.bundle.index import Float32, Int32
from engine.bundle.trie import Bool, Int64, Trie
from engine.runtime.decoder import Decoder, Memory, Past

Float64 = npt.NDArray[np.float64]
SLACK = 1e-3
"""Of a log-probability that two batches of different size compute."""
_FIRST = 32  # prefixes that are followed before the others where the best items alone are sought


@dataclass(frozen=True)
class Beam:
    """What a search ended with, best first."""

    tokens: Int64
    """[beams, levels]; −1 after the end."""
    nodes: Int64
    """[beams]: the leaf; −1 where no item has this identifier (unconstrained alone)."""
    scores: Float64
    """[beams]: log-probability."""
    rows: Int64
    """[beams]: the row in the record; −1 where none was made."""


@dataclass
class Record:
    """The candidates of a search, one row each, step after step. `search` fills it; `listed`: how many of those not kept are
    written down per step, the best ones."""

    listed: int
    parts: list[dict[str, npt.NDArray[Any]]] = field(default_factory=list)
    """Of each step the columns of its rows: parents, depths, tokens, nodes, gains, totals, kept."""
    considered: list[int] = field(default_factory=list)
    mass: list[float] = field(default_factory=list)
    rows: int = 0

    def add(self, kept: Bool, totals: Float64, **columns: npt.NDArray[Any]) -> Int64:
        """Returns the row of each candidate, −1 where it is not written down."""
        rest = np.flatnonzero(~kept)
        rest = rest[np.argsort(-totals[rest], kind="stable")[: self.listed]]
        taken = np.sort(np.concatenate([np.flatnonzero(kept), rest]))
        rows = np.full(len(kept), -1, np.int64)
        rows[taken] = self.rows + np.arange(len(taken))
        self.rows += len(taken)
        columns |= {"kept": kept, "totals": totals}
        self.parts.append({name: values[taken] for name, values in columns.items()})
        self.considered.append(len(kept))
        return rows


def search(
    decoder: Decoder,
    trie: Trie,
    memory: Memory,
    width: int,
    *,
    allowed: Bool | None = None,
    constrained: bool = True,
    temperature: float = 1.0,
    record: Record | None = None,
    known: Float64 | None = None,
) -> Beam:
    """Beam search: after each step, the `width` most probable prefixes go on; whole identifiers keep their place among them.

    allowed: bool [items]; prefixes that lead to none of these are not followed (constrained search alone; the softmax runs over
    all identifiers all the same). The answer has min(width, identifiers that may be found) rows, fewer only where there are
    fewer. temperature: what the logits of every step are divided by before its softmax; as every step has a sum of its own, it
    changes the order of identifiers as well as their probabilities. known: what `walk_prefixes` found, so that the network need
    not be asked again (constrained search alone).
    """
    levels = decoder.shape.levels
    end = trie.vocabulary - 1 if decoder.shape.ends else -1
    living = None if allowed is None or not constrained else trie.below(allowed) > 0
    nodes, scores = np.zeros(1, np.int64), np.zeros(1)
    written = np.full((1, levels), -1, np.int64)
    done = np.zeros(1, bool)
    pasts = np.zeros(1, np.int64)  # the row of each beam in `past`; −1 where the network was not asked
    place = np.full(1, -1, np.int64)  # the row of each beam in the record
    barred = 0.0  # the probability of prefixes that lead to nothing allowed
    past = decoder.start()
    for step in range(levels):
        busy = np.flatnonzero(~done)
        if not len(busy):
            break
        ask = busy[trie.open[nodes[busy]]] if constrained else busy
        if known is not None:
            ask = ask[:0]
        logits = np.empty((0, trie.vocabulary), np.float32)
        if len(ask):
            logits, past = decoder.write(memory, written[ask, step - 1], step, past.take(pasts[ask]))
            logits = logits / np.float32(temperature)
        row = np.full(len(nodes), -1, np.int64)
        row[ask] = np.arange(len(ask))
        if constrained:
            owners, children, tokens, gains = _children(trie, nodes[busy], row[busy], logits, known)
        else:
            owners, children, tokens, gains = _anything(trie, nodes[busy], logits, width)
        owners = busy[owners]
        totals = scores[owners] + gains
        if living is not None:
            alive = living[children]
            if record is not None:
                barred += float(np.exp(totals[~alive]).sum())
            children, owners, tokens = children[alive], owners[alive], tokens[alive]
            gains, totals = gains[alive], totals[alive]
        carried = np.flatnonzero(done)
        order = np.argsort(-np.concatenate([scores[carried], totals]), kind="stable")[:width]
        old, new = carried[order[order < len(carried)]], order[order >= len(carried)] - len(carried)
        if record is not None:
            kept = np.zeros(len(totals), bool)
            kept[new] = True
            depths = np.full(len(totals), step + 1)
            rows = record.add(
                kept, totals, parents=place[owners], depths=depths, tokens=tokens, nodes=children, gains=gains
            )
            place = np.concatenate([place[old], rows[new]])
        before = written
        written = np.concatenate([before[old], before[owners[new]]])
        written[len(old) :, step] = tokens[new]
        pasts = np.concatenate([np.full(len(old), -1), row[owners[new]]])
        nodes = np.concatenate([nodes[old], children[new]])
        scores = np.concatenate([scores[old], totals[new]])
        over = trie.counts[children[new]] == 0 if constrained else (tokens[new] == end) | (step + 1 == levels)
        done = np.concatenate([np.ones(len(old), bool), over])
        if record is not None:
            record.mass.append(min(1.0, barred + float(np.exp(scores).sum())))
    order = np.argsort(-scores, kind="stable")
    nodes = np.where((nodes >= 0) & (trie.counts[nodes] == 0), nodes, -1)
    place = place[order] if record is not None else np.full(len(order), -1, np.int64)
    return Beam(written[order], nodes[order], scores[order], place)


def walk(decoder: Decoder, trie: Trie, memory: Memory, *, floor: float = -np.inf) -> Float32:
    """The exact score of every item, float32 [items]; items that share an identifier score alike to the last bit.

    floor: prefixes below it are not followed, since what they begin scores no higher; items below it may then be −inf.
    """
    scores = walk_prefixes(decoder, trie, memory, floor=floor)
    return scores[trie.anchors].astype(np.float32)


def walk_best(decoder: Decoder, trie: Trie, memory: Memory, allowed: Bool, k: int) -> Float32:
    """As `walk`, for the k best items of those allowed, bool [items]; the others may be −inf."""
    if not allowed.any():
        return np.full(len(allowed), -np.inf, np.float32)
    anchors = trie.anchors[allowed]
    log_probabilities = walk_prefixes(decoder, trie, memory, sought=anchors, k=min(k, len(anchors)))
    return log_probabilities[trie.anchors].astype(np.float32)


def walk_prefixes(
    decoder: Decoder,
    trie: Trie,
    memory: Memory,
    *,
    floor: float = -np.inf,
    temperature: float = 1.0,
    sought: Int64 | None = None,
    k: int = 1,
) -> Float64:
    """The exact log-probability of every prefix, float64 [nodes]; −inf below `floor`, and below nodes that leave no choice.

    The tree is walked in batches, depth first, so that memory does not grow with the catalogue. sought: int64 nodes; the k
    likeliest of them are exact, and other nodes may be −inf: the likeliest prefixes are followed to their ends first, and what
    is less likely than k of the sought by then begins nothing that is likelier.
    """
    totals = np.full(len(trie), -np.inf)
    totals[0] = 0
    batches: list[tuple[Int64, Past, Int64]] = []  # nodes of one depth, a past, and the row in it of each node's own
    if trie.open[0]:
        batches.append((np.zeros(1, np.int64), decoder.start(), np.zeros(1, np.int64)))
    while batches:
        nodes, past, rows = batches.pop()
        if sought is not None:
            floor = max(floor, float(np.partition(totals[sought], len(sought) - k)[len(sought) - k]) - SLACK)
            nodes, rows = nodes[totals[nodes] >= floor], rows[totals[nodes] >= floor]
            if not len(nodes):
                continue
        step = int(trie.depths[nodes[0]])
        logits, past = decoder.write(memory, trie.tokens[nodes], step, past.take(rows))
        logits = logits / np.float32(temperature)
        children, owners = trie.children(nodes)
        totals[children] = totals[nodes][owners] + shares(logits, np.arange(len(nodes)), owners, trie.tokens[children])
        on = trie.open[children] & (totals[children] >= floor)
        children, owners = children[on], owners[on]
        size = decoder.batch(step + 1)
        first = size if sought is None else min(_FIRST, size)
        order = np.arange(len(children)) if sought is None else np.argsort(-totals[children], kind="stable")
        for some in reversed(np.split(order, range(first, len(order), size))):
            if len(some):
                batches.append((children[some], past, owners[some]))
    return totals


def path_scores(decoder: Decoder, trie: Trie, memory: Memory, items: Int64) -> Float64:
    """The scores of a few items, float64 [items], by their own identifiers alone; constrained."""
    leaves, which = np.unique(trie.leaves[items], return_inverse=True)
    scores = np.zeros(len(leaves))
    ways = [trie.path(int(leaf)) for leaf in leaves]
    past, nodes = decoder.start(), np.zeros(len(leaves), np.int64)
    pasts = np.zeros(len(leaves), np.int64)
    for step in range(max((len(way) for way in ways), default=0)):
        ask = np.flatnonzero(trie.open[nodes])
        if not len(ask):
            break
        logits, past = decoder.write(memory, trie.tokens[nodes[ask]], step, past.take(pasts[ask]))
        children, owners = trie.children(nodes[ask])
        gains = shares(logits, np.arange(len(ask)), owners, trie.tokens[children])
        onward = np.array([ways[leaf][step] for leaf in ask], np.int64)
        counts = trie.counts[nodes[ask]]
        scores[ask] += gains[np.cumsum(counts) - counts + onward - trie.starts[nodes[ask]]]
        nodes[ask] = onward
        pasts[ask] = np.arange(len(ask))
    return scores[which]


def shares(logits: Float32, rows: Int64, owners: Int64, tokens: Int64) -> Float64:
    """Log-probabilities among siblings. tokens: int64 [children], one parent's beside each other; owners: the parent of each,
    counted from 0; rows: int64 [parents], the row of each parent in `logits`, −1 for one whose only child is certain."""
    values = np.zeros(len(tokens))
    known = rows[owners] >= 0
    values[known] = logits[rows[owners[known]], tokens[known]]
    begins = np.flatnonzero(np.diff(owners, prepend=-1))
    if not len(begins):
        return values
    sizes = np.diff(np.append(begins, len(owners)))
    values -= np.repeat(np.maximum.reduceat(values, begins), sizes)
    return values - np.repeat(np.log(np.add.reduceat(np.exp(values), begins)), sizes)


Continuations = tuple[Int64, Int64, Int64, Float64]
"""The prefix that each continues, its node (−1: no item begins so), its token and log-probability; by prefix, then by token."""


def _children(trie: Trie, nodes: Int64, rows: Int64, logits: Float32, known: Float64 | None) -> Continuations:
    """Those that lead to items. rows: as of `shares`. known: the scores of all prefixes, in place of `logits`."""
    children, owners = trie.children(nodes)
    tokens = trie.tokens[children]
    if known is None:
        return owners, children, tokens, shares(logits, rows, owners, tokens)
    parents, gains = nodes[owners], np.zeros(len(children))
    chosen = trie.open[parents]
    gains[chosen] = known[children[chosen]] - known[parents[chosen]]
    return owners, children, tokens, gains


def _anything(trie: Trie, nodes: Int64, logits: Float32, width: int) -> Continuations:
    """The `width` most probable ones of each prefix, whatever they lead to."""
    count = min(width, logits.shape[1])
    tokens = np.sort(np.argpartition(-logits, count - 1, axis=1)[:, :count], axis=1)
    rows = np.repeat(np.arange(len(logits)), count)
    tokens = tokens.reshape(-1).astype(np.int64)
    return rows, trie.child(nodes[rows], tokens), tokens, logits[rows, tokens] - _normaliser(logits)[rows]


def _normaliser(logits: Float32) -> Float64:
    """log Σ exp over each row, float64 [rows]."""
    most = logits.max(axis=1).astype(np.float64)
    return most + np.log(np.exp(logits - most[:, None].astype(np.float32)).sum(axis=1, dtype=np.float64))


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
    """Per step: the probability that some item below the kept prefixes is written, or one that is left out; what is missing from
    1 was given up."""

    def __len__(self) -> int:
        return len(self.parents)

    def path(self, row: int) -> list[int]:
        """The rows from the first step to this one."""
        rows = []
        while row >= 0:
            rows.append(row)
            row = int(self.parents[row])
        return rows[::-1]


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
