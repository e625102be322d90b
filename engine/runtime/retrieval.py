"""What a bundle asks of its model, however that finds its answers, and the models that match a query with an index of items."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.bundle.files import EAGER_BYTES, Folder, Lazy
from engine.bundle.index import Float32, Int32, ItemIndex, best, read_index
from engine.bundle.manifest import Manifest
from engine.bundle.tables import ARRAY_BYTES
from engine.runtime.item_to_item import ItemToItemWeights, read_weights
from engine.runtime.sessions import ITEMS, Session

Events = npt.NDArray[np.int64]


class Answerer(Protocol):
    """Histories come checked, uncut and as int64 [length]; the model reads the latest `max_length` events of each."""

    @property
    def provider(self) -> str:
        """ONNX Runtime's execution provider that the model really runs on."""

    def warm(self) -> None:
        """Reads what is read on first use, makes the sessions and asks them once."""

    def recommend(self, events: Events, k: int, left_out: npt.NDArray[np.int64]) -> tuple[Int32, Float32]:
        """The k best items but those left out (fewer where there are fewer), best first, equal ones by number; their scores."""

    def recommend_many(
        self, histories: Sequence[Events], k: int, left_out: Sequence[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[int, Int32, Float32]]:
        """As `recommend`, for each history once, in any order: (its place, items, scores). Many are encoded together."""

    def scores(self, events: Events) -> Float32:
        """float32 [items], a new array, finite."""

    def scores_near(self, histories: Sequence[Events], items: npt.NDArray[np.int64]) -> Iterator[Float32]:
        """For each history the score of every item; of those that score lower than all of `items`, −inf will do."""


def padded(histories: Sequence[Events], longest: int, padding: int) -> Events:
    """int64 [histories, length], cut to the latest `longest` events and filled up on the left; at least one column, as graphs
    do not take none."""
    histories = [history[-longest:] for history in histories]
    width = max(1, *(len(history) for history in histories))
    table = np.full((len(histories), width), padding, np.int64)
    for row, history in enumerate(histories):
        table[row, width - len(history) :] = history
    return table


class Recommendations(NamedTuple):
    """The answer to a batch of histories; row r belongs to history r, best item first."""

    items: Int32
    """[batch, k]; −1 after the last valid one."""
    scores: Float32
    """[batch, k]; −inf after the last valid one. Comparable within one model alone."""
    valid: npt.NDArray[np.int64]
    """[batch]: how many of a row are recommendations; fewer than k where the catalogue is used up."""


class Ranked(NamedTuple):
    """Items best first, and their scores."""

    items: Int32
    scores: Float32


AVERAGE = "an average item"


@dataclass(frozen=True)
class Contributions:
    """A score as the sum of what each event of the history gave, or of parts of the model, and of what the item has anyway."""

    events: Float32
    """[history], oldest first, 0 for those that the model does not read; empty of a model that adds up parts."""
    prior: float
    """What the item has whatever the history; beside parts, more than an average item has."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """By what they are called (`Index.parts`), AVERAGE first."""

    @property
    def score(self) -> float:
        return float(self.events.sum(dtype=np.float64)) + sum(self.parts.values()) + self.prior


_TOKENS = 16_384  # of one batch of variants: attention over them takes memory in proportion
_NUMBERS = 1 << 24  # of one batch of queries: 64 MiB
_PER_ITEM = (
    128  # numbers that an encoder holds of each item on its way to a score, where it scores all items itself (NeuMF)
)
_ROUNDING = 1e-4  # how far parts may be from the query that they add up to, relative to the largest number above 1
_MATCHED = 1 << 22  # scores of many histories at a time: 16 MiB, and twice that to find the best


class Indexed:
    """encoder.onnx, or weights between items, and index.npy; see `Answerer`."""

    def __init__(self, folder: Folder, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        files, items, dim = manifest.files, manifest.num_items, manifest.encoder.dim
        identity = manifest.index.kind == "identity"
        longest = manifest.encoder.max_length
        each = dim * _PER_ITEM if identity and manifest.item_to_item is None else dim
        self._most_queries = max(1, _NUMBERS // each)
        self._weights: Lazy[ItemToItemWeights] | None = None
        self._graph: Session | None = None
        if manifest.item_to_item is not None:
            self._weights = Lazy(lambda: read_weights(folder, manifest))
        else:
            outputs: dict[str, tuple[int | None, ...]] = {"query": (None, dim)}
            if manifest.adds_parts:
                outputs["parts"] = (None, len(manifest.index.parts), dim)
            if manifest.encoder.gates is not None:
                outputs["gates"] = (None, manifest.encoder.gates)
            if (latest := manifest.encoder.matches) is not None:
                outputs["matches"] = (None, latest * (latest + 1) // 2, None)
            self._graph = Session(folder, "encoder.onnx", files, ITEMS, outputs, longest)
        self._index = Lazy(lambda: read_index(folder, files["index.npy"], items, dim, identity))
        if folder.size("index.npy", limit=ARRAY_BYTES, expected=files["index.npy"]) <= EAGER_BYTES:
            self._index.value()

    @property
    def index(self) -> ItemIndex:
        return self._index.value()

    @property
    def _encoder(self) -> ItemToItemWeights | Session:
        return self._weights.value() if self._weights is not None else self._session

    @property
    def _session(self) -> Session:
        assert self._graph is not None
        return self._graph

    @property
    def provider(self) -> str:
        return self._encoder.provider

    def warm(self) -> None:
        self.scores(np.zeros(1, np.int64))

    def recommend(self, events: Events, k: int, left_out: npt.NDArray[np.int64]) -> tuple[Int32, Float32]:
        scores = self.scores(events)
        scores[left_out] = -np.inf
        ranked = best(scores, k)
        return ranked, scores[ranked]

    def recommend_many(
        self, histories: Sequence[Events], k: int, left_out: Sequence[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[int, Int32, Float32]]:
        """In padded batches of like lengths, and one matrix product per batch."""
        longest = self.manifest.encoder.max_length
        lengths = np.array([min(len(history), longest) for history in histories], np.int64)
        order = np.argsort(lengths, kind="stable")
        many = max(1, _MATCHED // len(self.index))
        start = 0
        while start < len(order):
            most = max(1, min(self._most_queries, _TOKENS // max(1, int(lengths[order[start]]))))
            rows = order[start : start + most]  # sorted, so that the last is the longest
            rows = rows[: max(1, _TOKENS // max(1, int(lengths[rows[-1]])))]
            queries = self._encoder.run(self._input([histories[row] for row in rows]))
            for at in range(0, len(rows), many):
                part, some = queries[at : at + many], rows[at : at + many].tolist()
                rough = self._finite(self.index.many(part))
                for place, row in enumerate(some):
                    rough[place, left_out[row]] = -np.inf
                for row, ranked in zip(some, self.index.best_many(part, rough, k), strict=True):
                    yield row, *ranked
            start += len(rows)

    def scores(self, events: Events) -> Float32:
        return self._match(self.query(events))

    def query(self, events: Events) -> Float32:
        """float32 [dim]"""
        query: Float32 = self._encoder.run(self._input([events]))[0]
        return query

    def contributions(self, events: Events, item: int) -> Contributions:
        """A score taken apart, exactly: into what each event gave, or into the mean score of all items and what each part puts on
        top of that, for zero means nothing to a product of vectors."""
        if self._weights is not None:
            given, read = np.zeros(len(events), np.float32), events[-self.manifest.encoder.max_length :]
            given[len(events) - len(read) :] = self._weights.value().contributions(read, item)
            return Contributions(given, float(self.index.table[item, 0]))
        parts = self._query_parts(events)
        average = self.index.table.mean(0, dtype=np.float64)
        above = self.index.table[item] - average
        mean = float((parts @ average[:-1]).sum() + average[-1])
        named = zip(self.manifest.index.parts, (parts @ above[:-1]).tolist(), strict=True)
        return Contributions(np.zeros(0, np.float32), float(above[-1]), {AVERAGE: mean, **dict(named)})

    def _query_parts(self, events: Events) -> Float32:
        """What adds up to the query, float32 [parts, dim], in the order of `manifest.index.parts`."""
        query, widths = self.query(events), list(self.manifest.index.parts.values())
        if not self.manifest.adds_parts:
            part_of = np.repeat(np.arange(len(widths)), widths)
            return np.where(part_of == np.arange(len(widths))[:, None], query, np.float32(0))
        parts: Float32 = self._session.run(self._input([events]), "parts")[0]
        if np.abs(parts.sum(0) - query).max() > _ROUNDING * max(1.0, float(np.abs(parts).max())):
            raise self.folder.fault("encoder.onnx", "its parts do not add up to its query")
        return parts

    def gates(self, events: Events) -> Float32:
        """How far each of the latest `manifest.encoder.gates` events is let through, float32 [events], 0 to 1."""
        gates: Float32 = self._session.run(self._input([events]), "gates")[0]
        if gates.min() < 0 or gates.max() > 1:
            raise self.folder.fault("encoder.onnx", "its gates are not between 0 and 1")
        return gates[max(0, len(gates) - len(events)) :]

    def matches(self, events: Events) -> list[Float32]:
        """How well filters over 1, 2, … of the latest items in a row match: of each height float32 [rows, filters], 0 or more,
        the latest row last; without rows that end before the first event."""
        latest = self.manifest.encoder.matches
        assert latest is not None
        every: Float32 = self._session.run(self._input([events]), "matches")[0]
        if every.min() < 0:
            raise self.folder.fault("encoder.onnx", "its matches are below 0")
        of_height = np.split(every, np.cumsum(np.arange(latest, 1, -1)))
        return [rows[max(0, len(rows) - len(events)) :] for rows in of_height]

    def scores_near(self, histories: Sequence[Events], items: npt.NDArray[np.int64]) -> Iterator[Float32]:
        """In padded batches of bounded size; every item's score is exact."""
        longest = max((len(history) for history in histories), default=1)
        longest = max(1, min(longest, self.manifest.encoder.max_length))
        rows = max(1, min(_TOKENS // longest, self._most_queries))
        for start in range(0, len(histories), rows):
            for query in self._encoder.run(self._input(histories[start : start + rows])):
                yield self._match(query)

    def _match(self, query: Float32) -> Float32:
        return self._finite(self.index.scores(query))

    def _finite(self, scores: Float32) -> Float32:
        if not np.isfinite(scores).all():
            raise self.folder.fault("index.npy", "its numbers are so large that scores exceed a float32")
        return scores

    def _input(self, histories: Sequence[Events]) -> Events:
        return padded(histories, self.manifest.encoder.max_length, self.manifest.num_items)
