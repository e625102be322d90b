"""Models that write the identifier of the next item: decoder, prefix tree, and what can be asked of the two."""

import operator
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from engine.bundle.errors import QuestionError
from engine.bundle.files import EAGER_BYTES, Folder, Lazy
from engine.bundle.index import Float32, Int32, best
from engine.bundle.manifest import Manifest
from engine.bundle.tables import ARRAY_BYTES, TABLE_BYTES, read_matrix
from engine.bundle.tokenizers import IDENTIFIERS, read_identifiers
from engine.bundle.trie import WALK, Int64, Trie
from engine.data.identifiers import NONE, Identifiers
from engine.runtime.beam_search import (
    SLACK,
    Agreement,
    Beam,
    CrossAttention,
    Record,
    Trace,
    path_scores,
    search,
    walk,
    walk_best,
    walk_prefixes,
)
from engine.runtime.decoder import Decoder, Memory
from engine.runtime.retrieval import Events, padded

WIDEST = 1_024
"""Of a beam; who asks for more items than that gets exact scores."""
_ASKED = 64  # items whose own paths are written first in order to know how far down the tree must be walked


class Generated:
    """encoder.onnx, decoder.onnx and identifiers.parquet; see `Answerer`."""

    def __init__(self, folder: Folder, manifest: Manifest) -> None:
        assert manifest.generator is not None
        self.folder, self.manifest, self.shape = folder, manifest, manifest.generator
        files, items = manifest.files, manifest.num_items
        self.decoder = Decoder(folder, manifest)
        self._identifiers = Lazy(lambda: read_identifiers(folder, files[IDENTIFIERS], items, self.shape))
        self._trie = Lazy(lambda: Trie.build(self.identifiers))
        if folder.size(IDENTIFIERS, limit=TABLE_BYTES, expected=files[IDENTIFIERS]) <= EAGER_BYTES:
            self._identifiers.value()
        vectors = (items, self.shape.latents or 1)
        books = (self.shape.levels, max(self.shape.sizes), self.shape.codebooks or 1)
        self._latents = Lazy(lambda: read_matrix(folder, "latents.npy", files["latents.npy"], vectors))
        self._codebooks = Lazy(lambda: read_matrix(folder, "codebooks.npy", files["codebooks.npy"], books))
        for name, columns, value in (
            ("latents.npy", self.shape.latents, self._latents),
            ("codebooks.npy", self.shape.codebooks, self._codebooks),
        ):
            if columns is not None and folder.size(name, limit=ARRAY_BYTES, expected=files[name]) <= EAGER_BYTES:
                value.value()

    @property
    def identifiers(self) -> Identifiers:
        return self._identifiers.value()

    @property
    def trie(self) -> Trie:
        return self._trie.value()

    @property
    def provider(self) -> str:
        return self.decoder.provider

    @property
    def codebooks(self) -> Float32 | None:
        """float32 [levels, codes, dim], zero beyond the codes of a level; None where the bundle does not carry them."""
        return None if self.shape.codebooks is None else self._codebooks.value()

    @property
    def latents(self) -> Float32 | None:
        """float32 [items, dim]: what was quantised; None where the bundle does not carry it."""
        return None if self.shape.latents is None else self._latents.value()

    def warm(self) -> None:
        search(self.decoder, self.trie, self._memory(np.zeros(1, np.int64)), self.shape.beam)

    # --- what every model answers

    def beam(self, k: int) -> int | None:
        """How wide `recommend` searches for k items; None where it scores all."""
        width = max(self.shape.beam, k)
        return None if len(self.trie) <= WALK or width > WIDEST else width

    def recommend(self, events: Events, k: int, left_out: npt.NDArray[np.int64]) -> tuple[Int32, Float32]:
        """By beam search, wider where more items are asked for; exact where the tree is small or the beam would be too wide."""
        width, allowed = self.beam(k), self._allowed(left_out)
        if width is None:
            scores = walk_best(self.decoder, self.trie, self._memory(events), allowed, k)
            scores[left_out] = -np.inf
            ranked = best(scores, k)
            return ranked, scores[ranked]
        return self._ranked(search(self.decoder, self.trie, self._memory(events), width, allowed=allowed), allowed, k)

    def recommend_many(
        self, histories: Sequence[Events], k: int, left_out: Sequence[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[int, Int32, Float32]]:
        """Each history alone: a beam is a batch already."""
        for place, (events, out) in enumerate(zip(histories, left_out, strict=True)):
            yield place, *self.recommend(events, k, out)

    def scores(self, events: Events) -> Float32:
        return walk(self.decoder, self.trie, self._memory(events))

    def scores_near(self, histories: Sequence[Events], items: npt.NDArray[np.int64]) -> Iterator[Float32]:
        """Each history alone. The tree is walked no further down than the lowest of `items`."""
        for events in histories:
            memory, floor = self._memory(events), -np.inf
            if 0 < len(items) <= _ASKED:
                floor = float(path_scores(self.decoder, self.trie, memory, items).min()) - SLACK
            yield walk(self.decoder, self.trie, memory, floor=floor)

    # --- what only generators answer

    def trace(
        self,
        events: Events,
        width: int,
        left_out: npt.NDArray[np.int64],
        constrained: bool,
        dropped: int,
        temperature: float,
    ) -> Trace:
        record = Record(max(0, operator.index(dropped)))
        memory, allowed = self._memory(events), self._allowed(left_out)
        beam = search(
            self.decoder,
            self.trie,
            memory,
            _width(width),
            allowed=allowed,
            constrained=constrained,
            temperature=_temperature(temperature),
            record=record,
        )
        columns = {name: np.concatenate([part[name] for part in record.parts]) for name in record.parts[0]}
        nodes, tokens, depths = columns["nodes"], columns["tokens"], columns["depths"]
        levels, codes = self._spell(tokens, depths - 1)
        places = np.full(len(nodes), -1, np.int32)
        places[beam.rows] = np.arange(len(beam.rows))
        known = np.maximum(nodes, 0)
        leaf = (nodes >= 0) & (self.trie.counts[known] == 0)
        return Trace(
            parents=columns["parents"].astype(np.int32),
            depths=depths.astype(np.int32),
            tokens=tokens,
            levels=levels,
            codes=codes,
            probabilities=np.exp(columns["gains"]).astype(np.float32),
            scores=columns["totals"].astype(np.float32),
            kept=columns["kept"],
            below=np.where(nodes >= 0, self.trie.highs[known] - self.trie.lows[known], 0).astype(np.int32),
            places=places,
            items=self._items(np.where(leaf, nodes, -1)),
            considered=tuple(record.considered),
            mass=tuple(record.mass),
        )

    def agreement(
        self, histories: Sequence[Events], widths: Sequence[int], k: int, exclude_history: bool, temperature: float
    ) -> list[Agreement]:
        shares = np.zeros((len(widths), len(histories), 3))
        for place, events in enumerate(histories):
            memory = self._memory(events)
            left_out = events if exclude_history else events[:0]
            allowed = self._allowed(left_out)
            known = walk_prefixes(self.decoder, self.trie, memory, temperature=_temperature(temperature))
            scores = known[self.trie.anchors].astype(np.float32)
            scores[left_out] = -np.inf
            exact = best(scores, min(k, len(scores)))
            for row, width in enumerate(widths):
                beam = search(self.decoder, self.trie, memory, _width(width), allowed=allowed, known=known)
                items, _ = self._ranked(beam, allowed, k)
                shared = len(np.intersect1d(items, exact)) / max(1, len(exact))
                shares[row, place] = shared, np.array_equal(items, exact), np.array_equal(items[:1], exact[:1])
        means = shares.mean(axis=1) if len(histories) else np.full((len(widths), 3), np.nan)
        return [
            Agreement(int(width), float(mean[0]), float(mean[1]), float(mean[2]), len(histories))
            for width, mean in zip(widths, means, strict=True)
        ]

    def cross_attention(self, events: Events, item: int) -> CrossAttention:
        read = np.arange(max(0, len(events) - self.manifest.encoder.max_length), len(events))
        memory, past = self._memory(events), self.decoder.start()
        span = self.shape.lead + self.shape.levels
        if memory.size != max(1, len(read)) * span:
            raise self.folder.fault(
                "encoder.onnx", f"a memory of {memory.size} places, not {span} for each of {len(read)} items"
            )
        tokens = self.trie.tokens[self.trie.path(int(self.trie.leaves[item]))]
        weights = []
        for step in range(len(tokens)):
            looked, past = self.decoder.look(memory, tokens[step - 1 : step] if step else tokens[:1], step, past)
            weights.append(looked)
        shares = np.stack(weights)[..., : len(read) * span]
        if (shares < 0).any() or (shares.sum(-1) > 1.001).any():
            raise self.folder.fault("decoder.onnx", "cross_attention must be shares that sum to at most 1")
        real = np.ones((len(read), span), bool)
        real[:, self.shape.lead :] = self.filled(events[read])
        seen = real.ravel()
        levels = np.tile(np.arange(span) - self.shape.lead, len(read)).clip(min=-1)
        where = np.repeat(read, span)[seen]
        codes = self.identifiers.codes[item][: len(tokens)]
        return CrossAttention(
            item=item,
            weights=shares[..., seen],
            codes=codes,
            positions=tuple(where.tolist()),
            items=tuple(events[where].tolist()),
            levels=tuple(levels[seen].tolist()),
        )

    # --- identifiers

    def items_with(self, prefix: Sequence[int]) -> Int32:
        """The items whose identifiers begin with these codes, by number; all items for no codes."""
        codes = [operator.index(code) for code in prefix]
        if len(codes) > self.shape.levels:
            return np.empty(0, np.int32)
        tokens = []
        for level, code in enumerate(codes):
            if code == NONE and self.shape.ends:
                tokens.append(self.shape.vocabulary - 1)
                break
            if not 0 <= code < self.shape.sizes[level]:
                raise QuestionError(f"Level {level + 1} has codes 0 to {self.shape.sizes[level] - 1}, not {code}.")
            tokens.append(code + self.identifiers.offsets[level])
        node = self.trie.find(tokens)
        return self.trie.items(node).astype(np.int32) if node >= 0 else np.empty(0, np.int32)

    def siblings(self, item: int) -> tuple[Int32, ...]:
        """For each code of the item's identifier: the other items that share it and all codes before it."""
        siblings = []
        for node in self.trie.path(int(self.trie.leaves[item])):
            items = self.trie.items(node).astype(np.int32)
            siblings.append(items[items != item])
        return tuple(siblings)

    def filled(self, items: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """bool [items, levels]: where a code stands, or the token that ends; nothing stands after that."""
        stands = np.ones((len(items), self.shape.levels), bool)
        stands[:, 1:] = self.identifiers.codes[items][:, :-1] != NONE
        return stands

    def tied(self) -> int:
        """How many items share their identifier with another."""
        return int((np.bincount(self.trie.leaves)[self.trie.leaves] > 1).sum())

    # --- inside

    def _memory(self, events: Events) -> Memory:
        return self.decoder.read(padded([events], self.manifest.encoder.max_length, self.manifest.num_items))

    def _allowed(self, left_out: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        allowed = np.ones(self.manifest.num_items, bool)
        allowed[left_out] = False
        return allowed

    def _ranked(self, beam: Beam, allowed: npt.NDArray[np.bool_], k: int) -> tuple[Int32, Float32]:
        groups = [self.trie.items(int(leaf)) for leaf in beam.nodes]
        items = np.concatenate([np.empty(0, np.int64), *groups])
        scores = np.repeat(beam.scores.astype(np.float32), [len(group) for group in groups])
        items, scores = items[allowed[items]], scores[allowed[items]]
        order = np.lexsort((items, -scores))[:k]
        return items[order].astype(np.int32), scores[order]

    def _items(self, nodes: Int64) -> tuple[Int32, ...]:
        nothing = np.empty(0, np.int32)
        return tuple(self.trie.items(int(node)).astype(np.int32) if node >= 0 else nothing for node in nodes)

    def _spell(self, tokens: Int64, depths: Int64) -> tuple[Int32, Int32]:
        """Tokens [rows], and the step of each from 0 → the level that each belongs to, and the code within it."""
        offsets = np.array(self.identifiers.offsets)
        ends = (tokens == self.shape.vocabulary - 1) if self.shape.ends else np.zeros(tokens.shape, bool)
        levels = depths if self.shape.shared else np.searchsorted(offsets, tokens, side="right") - 1
        levels = np.where(ends, depths, levels)
        codes = np.where(ends, NONE, tokens - offsets[np.maximum(levels, 0)])
        return levels.astype(np.int32), codes.astype(np.int32)


def _width(width: int) -> int:
    width = operator.index(width)
    if not 1 <= width <= WIDEST:
        raise QuestionError(f"A beam keeps 1 to {WIDEST:,} prefixes, not {width}.")
    return width


def _temperature(temperature: float) -> float:
    if not 0.01 <= temperature <= 100:
        raise QuestionError(f"A temperature is between 0.01 and 100, not {temperature}.")
    return temperature
