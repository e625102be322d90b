"""One exported model: what it says of itself, and its answers."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ValidationError

from engine.runtime.answers import Neighbours, Ranked, Recommendations
from engine.runtime.attention import AttentionMap, blank
from engine.runtime.explain import LeaveOneOut, leave_one_out
from engine.runtime.faults import CapabilityError, QuestionError, complaints
from engine.runtime.files import EAGER_BYTES, Folder
from engine.runtime.index import INDEX_BYTES, Float32, ItemIndex, best, read_index
from engine.runtime.lazily import Lazily
from engine.runtime.manifest import SCHEMA_VERSION, Manifest
from engine.runtime.sessions import Graph
from engine.runtime.tables import TABLE_BYTES, Column, read_table, side_tables

History = Sequence[int] | npt.NDArray[np.integer]

_TOKENS = 16_384  # of one batch of variants: attention over them takes memory in proportion
_NUMBERS = 1 << 24  # of one batch of queries: 64 MiB
_WEIGHTS = 1 << 26  # of one attention map: 256 MiB, far beyond what a page can draw

_REASONS = {
    "attention": "This model has no attention to show.",
    "neighbours": "This model has no item vectors to compare.",
    "map": "This model has no item vectors to draw on a map.",
    "unseen_items": "This model knows only the items it was trained on.",
    "trained_users": "This model has no vectors for people; it knows them by their histories.",
}


@dataclass(frozen=True)
class Catalogue:
    """What a bundle must fit: the dataset folder it lies in."""

    name: str
    fingerprint: str
    items: int


class Bundle:
    """A model to ask. All methods may be called from many threads at once.

    Attributes: name, the folder's name; manifest (`Manifest`); digest, hex, changes with any content of the bundle (for cache
    keys).

    Items are numbers 0..n−1; a history is their sequence, oldest first, of any length: the model reads the latest
    `manifest.encoder.max_length` of it (`used`), and all of it is excluded from the answers. Every method that asks the model
    raises QuestionError where a number is no item, where the history is empty though the model needs one, or where k < 1, and
    BundleError where a file read on first use is damaged or the model answers nonsense.
    """

    def __init__(self, folder: Folder, manifest: Manifest, digest: str) -> None:
        self.folder = folder
        self.name = manifest.name
        self.manifest = manifest
        self.digest = digest
        files, items, dim = manifest.files, manifest.num_items, manifest.encoder.dim
        identity = manifest.index.kind == "identity"
        longest = manifest.encoder.max_length
        self._encoder = Graph(folder, "encoder.onnx", files["encoder.onnx"], longest, "query", (None, dim))
        self._index = Lazily(lambda: read_index(folder, files["index.npy"], items, dim, identity))
        if folder.size("index.npy", limit=INDEX_BYTES, expected=files["index.npy"]) <= EAGER_BYTES:
            self._index.value()
        self._lengths = Lazily(self._measure)
        self._attention: Graph | None = None
        shape = manifest.attention
        if shape is not None and "attention.onnx" in files:
            wanted = (None, shape.layers, shape.heads, None, None)
            self._attention = Graph(folder, "attention.onnx", files["attention.onnx"], longest, "attention", wanted)
        self._tables = {file: self._table(file, columns) for file, columns in side_tables(items).items()}

    @classmethod
    def open(cls, path: Path, catalogue: Catalogue) -> Bundle:
        """Raises BundleError where any file is missing or not what it should be; those above 16 MiB are checked on first use."""
        folder = Folder(path, path.name)
        raw = folder.json("manifest.json")
        version = raw.get("schema_version", SCHEMA_VERSION)
        if isinstance(version, int) and version > SCHEMA_VERSION:
            reason = (
                f"written by a newer Seqscope (format {version}, this one reads {SCHEMA_VERSION}); update this Seqscope"
            )
            raise folder.fault("manifest.json", reason)
        try:
            manifest = Manifest.model_validate(raw)
        except ValidationError as error:
            raise folder.fault("manifest.json", complaints(error)) from None
        if manifest.name != path.name:
            raise folder.fault("manifest.json", f"it names the model {manifest.name}, its folder {path.name}")
        if manifest.num_items != catalogue.items:
            reason = f"made for a catalogue of {manifest.num_items:,} items; {catalogue.name} has {catalogue.items:,}"
            raise folder.fault("manifest.json", reason)
        if manifest.fingerprint != catalogue.fingerprint:
            reason = (
                f"made for another dataset or another state of it (fingerprint {manifest.fingerprint[:8]}… where "
                f"{catalogue.name} has {catalogue.fingerprint[:8]}…); train and export it again"
            )
            raise folder.fault("manifest.json", reason)
        return cls(folder, manifest, hashlib.sha256(manifest.model_dump_json().encode()).hexdigest())

    def __repr__(self) -> str:
        return f"Bundle({self.name!r}, {self.manifest.title!r})"

    def warm(self) -> None:
        """Loads the index, makes the encoder's session and asks it once, so that the first person does not wait."""
        self.scores([0])

    @property
    def index(self) -> ItemIndex:
        """Item rows and biases."""
        return self._index.value()

    @property
    def provider(self) -> str:
        """ONNX Runtime's execution provider that the encoder really runs on."""
        return self._encoder.provider

    # --- what it can do

    def cannot(self, capability: str) -> str | None:
        """None where the model can, else why not, in a sentence a page can show.

        capability: "attention", "neighbours", "map", "unseen_items" or "trained_users"; KeyError for any other.
        """
        default = _REASONS[capability]
        if getattr(self.manifest.capabilities, capability):
            return None
        return self.manifest.capabilities.reasons.get(capability) or default

    def used(self, history: History) -> range:
        """The places of the history that the model reads: its latest `max_length` events."""
        return range(max(0, len(history) - self.manifest.encoder.max_length), len(history))

    # --- recommending

    def recommend(
        self, histories: Sequence[History], k: int, *, exclude_history: bool = True, exclude: Iterable[int] = ()
    ) -> Recommendations:
        """The k best items after each history, equal scores in the order of item numbers.

        A history's answer does not depend, to the last bit, on what else is in the batch: each is encoded alone, without
        padding. k may exceed the catalogue; the answer is then as wide as the catalogue. `exclude`: further items to leave out.
        """
        k = min(_count(k), self.manifest.num_items)
        left_out = self.check_items(exclude)
        items = np.full((len(histories), k), -1, np.int32)
        scores = np.full((len(histories), k), -np.inf, np.float32)
        valid = np.zeros(len(histories), np.int64)
        for row, history in enumerate(histories):
            events = self.check_history(history)
            own = self._scores(events)
            if exclude_history:
                own[events] = -np.inf
            own[left_out] = -np.inf
            found = best(own, k)
            valid[row] = len(found)
            items[row, : len(found)], scores[row, : len(found)] = found, own[found]
        return Recommendations(items, scores, valid)

    def recommend_one(
        self, history: History, k: int, *, exclude_history: bool = True, exclude: Iterable[int] = ()
    ) -> Ranked:
        """`recommend` for one history; the answer ends with its last valid item."""
        items, scores, valid = self.recommend([history], k, exclude_history=exclude_history, exclude=exclude)
        return Ranked(items[0, : valid[0]], scores[0, : valid[0]])

    def scores(self, history: History) -> Float32:
        """The score of every item, float32 [items], those of the history included."""
        return self._scores(self.check_history(history))

    def ranks(self, history: History, items: Iterable[int]) -> npt.NDArray[np.float64]:
        """The rank of each of `items` after the history, float64 [items], 1 is best, ties at their mean.

        Candidates are all items but the history's; an item that is asked for is always a candidate.
        """
        asked = self.check_items(items)
        events = self.check_history(history)
        scores = self._scores(events)
        candidates = np.ones(len(scores), bool)
        candidates[events] = False
        ordered = np.sort(scores[candidates])
        own = scores[asked]
        not_above = np.searchsorted(ordered, own, side="right")
        level = not_above - np.searchsorted(ordered, own, side="left") - candidates[asked]  # but for the item itself
        return 1 + (len(ordered) - not_above) + level / 2

    # --- explaining

    def attention(self, history: History) -> AttentionMap:
        """What the model looked at while reading the history. Raises CapabilityError where it does not attend."""
        reason = self.cannot("attention")
        described = self.manifest.attention
        if reason is not None or described is None or self._attention is None:
            raise CapabilityError(reason or _REASONS["attention"])
        events = self.check_history(history)
        places = list(self.used(events))[-described.window :]
        size = len(places) + described.next_token
        if described.layers * described.heads * size**2 > _WEIGHTS:
            raise QuestionError(f"A map of {size:,} positions is too large to show; shorten the history.")
        raw = self._attention.run(self._input([events[-self.manifest.encoder.max_length :]]))[0]
        if raw.shape[-1] != raw.shape[-2] or raw.shape[-1] < size:
            raise self.folder.fault(
                "attention.onnx", f"{raw.shape[-2]} × {raw.shape[-1]} positions where {size} were asked for"
            )
        raw = raw[:, :, -size:, -size:]  # a graph with a fixed window may have filled it up on the left
        weights, impossible = blank(raw, described.causal, described.masked_diagonal)
        sums = np.where(impossible, 0, raw).sum(axis=-1)
        # A model that drops what a position gave to itself may leave less than 1, but nothing leaves more.
        least = 0 if described.masked_diagonal else 1
        if (raw < 0).any() or (sums > 1.001).any() or (sums < least - 0.001).any():
            raise self.folder.fault("attention.onnx", "the weights of a position are no shares: they must sum to 1")
        token: tuple[int | None, ...] = (None,) if described.next_token else ()
        return AttentionMap(
            weights=weights,
            positions=(*places, *token),
            items=(*(int(events[place]) for place in places), *token),
            causal=described.causal,
            next_token=described.next_token,
            masked_diagonal=described.masked_diagonal,
            pooled=described.pooled,
        )

    def leave_one_out(self, history: History, item: int) -> LeaveOneOut:
        """What each event of the history does to the score and rank of `item`.

        effect[j] = score(history) − score(history without event j), in the model's score units. Removed is the event, not the
        item: one that stands twice is removed once. Where the history is longer than the model reads, the shorter history is
        cut anew, so an earlier event slides in; events that are not read have effect 0. Where nothing is left that the
        model could read, effect and rank are NaN. Ranks before and after are among the same candidates: all items but those of
        the whole history. Costs one encoder batch and one pass over the index per event read.
        """
        return leave_one_out(self, history, item)

    def neighbours(self, item: int, k: int) -> Neighbours:
        """The k items nearest to `item` in the model's own space, by exact comparison with all; fewer where there are fewer.

        Raises CapabilityError where the item rows carry no meaning to compare.
        """
        reason = self.cannot("neighbours")
        if reason is not None:
            raise CapabilityError(reason)
        (item,) = self.check_items([item])
        k = _count(k)
        measure = self.manifest.index.geometry
        if measure == "euclidean":
            near = 0 - self.index.distances(item)  # not −0, which a page would print
        else:
            near = self.index.cosines(item, self._lengths.value())
        self._finite(near)
        near[item] = -np.inf
        found = best(near, min(k, len(near) - 1)) if len(near) > 1 else np.empty(0, np.int32)
        return Neighbours(found, near[found], measure)

    # --- side tables: None where the bundle does not have them

    def ranks_table(self) -> pa.Table | None:
        """Evaluation: user int32, target int32, history_length int32, protocol string, rank float64 (mean under ties)."""
        return self._tables["ranks.parquet"].value()

    def exposure_table(self) -> pa.Table | None:
        """How often each item was recommended: protocol string, k int32, item int32, count int64."""
        return self._tables["exposure.parquet"].value()

    def map_table(self) -> pa.Table | None:
        """Item rows on a plane: item int32 (each once), x float32, y float32, without units."""
        return self._tables["map.parquet"].value()

    def curve_table(self) -> pa.Table | None:
        """Training: step int64, epoch float64, seconds float64, loss float64, valid_ndcg float64 (the last two may be null)."""
        return self._tables["curve.parquet"].value()

    # --- for this package

    def check_items(self, items: Iterable[int]) -> npt.NDArray[np.int64]:
        """int64 [items]; raises QuestionError where one is no item of the catalogue."""
        found = np.asarray(items if isinstance(items, np.ndarray) else list(items))
        if found.size == 0:
            return np.empty(0, np.int64)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise QuestionError("Items are asked for by their whole numbers, one after the other.")
        wrong = found[(found < 0) | (found >= self.manifest.num_items)]
        if len(wrong):
            raise QuestionError(
                f"There is no item number {wrong[0]}: this catalogue has 0 to {self.manifest.num_items - 1}."
            )
        return found.astype(np.int64)

    def check_history(self, history: History) -> npt.NDArray[np.int64]:
        """As `check_items`, and QuestionError for an empty history where the model needs one."""
        events = self.check_items(history)
        if len(events) < self.manifest.encoder.min_history:
            raise QuestionError(f"{self.manifest.title} needs at least one item in the history.")
        return events

    def queries(self, histories: Sequence[npt.NDArray[np.int64]]) -> Iterator[Float32]:
        """One query, float32 [dim], per history (already cut to max_length), computed in padded batches of bounded size."""
        longest = max((len(history) for history in histories), default=1)
        rows = max(1, min(_TOKENS // max(1, longest), _NUMBERS // self.manifest.encoder.dim))
        for start in range(0, len(histories), rows):
            yield from self._encoder.run(self._input(histories[start : start + rows]))

    def score(self, query: Float32) -> Float32:
        """query: float32 [dim] → float32 [items], finite."""
        scores = self.index.scores(query)
        self._finite(scores)
        return scores

    def _scores(self, events: npt.NDArray[np.int64]) -> Float32:
        return self.score(self._encoder.run(self._input([events[-self.manifest.encoder.max_length :]]))[0])

    def _finite(self, scores: Float32) -> None:
        if not np.isfinite(scores).all():
            raise self.folder.fault("index.npy", "its numbers are so large that scores exceed a float32")

    def _measure(self) -> Float32:
        return self.index.lengths()

    def _input(self, histories: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """int64 [batch, longest], padded on the left with n; at least one column, as graphs do not take none."""
        width = max(1, *(len(history) for history in histories))
        found = np.full((len(histories), width), self.manifest.num_items, np.int64)
        for row, history in enumerate(histories):
            found[row, width - len(history) :] = history
        return found

    def _table(self, file: str, columns: dict[str, Column]) -> Lazily[pa.Table | None]:
        expected = self.manifest.files.get(file)
        if expected is None:
            return Lazily(lambda: None)
        table: Lazily[pa.Table | None] = Lazily(lambda: self._read(file, columns))
        if self.folder.size(file, limit=TABLE_BYTES, expected=expected) <= EAGER_BYTES:
            table.value()
        return table

    def _read(self, file: str, columns: dict[str, Column]) -> pa.Table:
        table = read_table(self.folder, file, columns, expected=self.manifest.files[file])
        if file == "map.parquet" and len(np.unique(table["item"].to_numpy())) != table.num_rows:
            raise self.folder.fault(file, "an item stands on the map twice")
        return table


def _count(k: int) -> int:
    try:
        k = operator.index(k)
    except TypeError:
        raise QuestionError("k must be a whole number.") from None
    if k < 1:
        raise QuestionError(f"k must be 1 or more, not {k}.")
    return k
