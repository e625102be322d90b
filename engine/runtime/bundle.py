"""One exported model: what it says of itself, and its answers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.bundle.curve import STILL_IMPROVING, unsettled
from engine.bundle.errors import CapabilityError, QuestionError
from engine.bundle.files import EAGER_BYTES, Catalogue, Folder, Lazy, read_about
from engine.bundle.index import Float32, Int32, ItemIndex, Neighbours, nearest, ranks_among
from engine.bundle.manifest import SCHEMA_VERSION, Manifest
from engine.bundle.onnx_graph import WEIGHTS
from engine.bundle.tables import ARRAY_BYTES, TABLE_BYTES, Column, read_places, read_table, side_tables
from engine.cards import Kind, kind_of
from engine.cards import place as place_in_lists
from engine.data.identifiers import Identifiers
from engine.evaluation import protocols
from engine.runtime import time_limit
from engine.runtime.attention import AttentionMap, no_rollout, read_map
from engine.runtime.beam_search import Agreement, CrossAttention, Trace
from engine.runtime.capabilities import cannot
from engine.runtime.generator import Generated
from engine.runtime.graph_paths import InteractionGraph, Paths, SideBySide, read_graph, read_layers, read_paths
from engine.runtime.leave_one_out import LeaveOneOut, leave_one_out
from engine.runtime.retrieval import Answerer, Contributions, Indexed, Ranked, Recommendations, padded
from engine.runtime.sessions import ITEMS, Session
from engine.runtime.text import Reader, SentenceReader, WordAttention

History = Sequence[int] | npt.NDArray[np.integer]

_WEIGHTS = 1 << 26  # of one attention map: 256 MiB, far beyond what a page can draw


class Bundle:
    """A model to ask. All methods may be called from many threads at once.

    Attributes: name, the folder's name; manifest (`Manifest`); digest, hex, changes with any content of the bundle (for cache
    keys); kind, what it goes by, and order, its place in lists (engine/cards.py); protocol, the name of the one that its
    dataset's models are judged by; excludes_history, whether items of the history are left out of answers: they are, except where
    the dataset's repeats count.

    Items are numbers 0..n−1; a history is their sequence, oldest first, of any length: the model reads the latest
    `manifest.encoder.max_length` of it (`used`), and excluded is all of it. Every method that asks the model
    raises QuestionError where a number is no item, where the history is empty though the model needs one, or where k < 1, and
    BundleError where a file read on first use is damaged or the model answers nonsense.
    """

    def __init__(
        self, folder: Folder, manifest: Manifest, digest: str, repeats: str | None = None, split: str | None = None
    ) -> None:
        self.folder, self.manifest = folder, manifest
        self._check_protocols("manifest.json", manifest.metrics)
        self._tables = {file: self._table(file, columns) for file, columns in side_tables(manifest.num_items).items()}
        self.name = manifest.name
        self.kind: Kind = kind_of(
            manifest.family,
            writes=manifest.generator is not None,
            reads=manifest.text is not None or manifest.sentence is not None,
            ordered=manifest.capabilities.reads_order,
        )
        self.order = place_in_lists(self.kind, manifest.order)
        self.digest = digest
        self.protocol = protocols.main(repeats, split, manifest.refitted)
        self.excludes_history = protocols.history_excluded(repeats)
        self.check_ends()
        files = manifest.files
        if WEIGHTS in files and folder.size(WEIGHTS, limit=ARRAY_BYTES, expected=files[WEIGHTS]) <= EAGER_BYTES:
            folder.read(WEIGHTS, limit=ARRAY_BYTES, expected=files[WEIGHTS])
        self._writer = Generated(folder, manifest) if manifest.generator is not None else None
        self._reader = Reader(folder, manifest, manifest.text) if manifest.text is not None else None
        asks = manifest.sentence
        self._sentences = SentenceReader(folder, manifest, asks) if asks is not None else None
        self._answers: Answerer = self._writer or Indexed(folder, manifest)
        self._centre = Lazy(self._middle)
        self._graph = Lazy(lambda: read_graph(folder, manifest))
        self._paths = Lazy(lambda: read_paths(folder, manifest, self.graph))
        self._layers = Lazy(lambda: read_layers(folder, manifest, self.index, self._query))
        self._attention: Session | None = None
        shape = manifest.attention
        if shape is not None and "attention.onnx" in files:
            sizes = (None, shape.layers, shape.heads, None, None)
            self._attention = Session(
                folder, "attention.onnx", files, ITEMS, {"attention": sizes}, manifest.encoder.max_length
            )

    @classmethod
    def open(cls, path: Path, catalogue: Catalogue) -> Bundle:
        """Raises BundleError where any file is missing or not what it should be; those above 16 MiB are checked on first use."""
        folder = Folder(path, path.name)
        manifest, digest = read_about(
            folder, "manifest.json", Manifest, SCHEMA_VERSION, catalogue, "model", "train and export it again"
        )
        return cls(folder, manifest, digest, catalogue.repeats, catalogue.split)

    def __repr__(self) -> str:
        return f"Bundle({self.name!r}, {self.manifest.title!r})"

    def warm(self) -> None:
        """Loads what is read on first use, makes the sessions and asks them once, so that the first person does not wait."""
        self._answers.warm()

    @property
    def index(self) -> ItemIndex:
        """Item rows and biases. Raises CapabilityError where the model has none."""
        return self._indexed().index

    @property
    def provider(self) -> str:
        """ONNX Runtime's execution provider that the model really runs on, or numpy."""
        return self._answers.provider

    # --- what it can do

    def cannot(self, capability: str) -> str | None:
        """None where the model can, else why not, in a sentence a page can show.

        capability: "attention", "rollout" (of attention through the layers), "neighbours", "map", "unseen_items",
        "trained_users", "reads_order" (of a history), "identifiers" (write them, and show the beam), "cross_attention", "words"
        (read them, and show which it looked at), "paths" (show those through people and items that lead to an item), "layers"
        (say what each layer of its graph adds to a score: `layers`), "contributions" (say what each event, or each part of the
        model, gives to a score), "gates" (show how far items are let through), "filters" (show what the latest items are weighed
        with), "matches" (show which of them in a row filters match), "probability" (say how likely each item is to be the next),
        or "distinct_items" (tell every item from every other); KeyError for any other.
        """
        if capability == "distinct_items":
            alike = 0 if self._writer is None else self._writer.tied()
            if not alike:
                return None
            return f"{alike:,} of its {self.manifest.num_items:,} items share a semantic ID with another; they score alike."
        if capability == "unseen_items" and self._sentences is not None:
            return self._sentences.cannot()
        return cannot(self.manifest, capability)

    def used(self, history: History) -> range:
        """The places of the history that the model reads: its latest `max_length` events."""
        return range(max(0, len(history) - self.manifest.encoder.max_length), len(history))

    # --- recommending

    def recommend_one(self, history: History, k: int) -> Ranked:
        """The k best items after a history, equal scores in the order of item numbers; fewer where the catalogue is used up.

        Items of the history are left out where `excludes_history`. A history is encoded alone, without padding.

        A generator searches with a beam (`manifest.generator.beam` wide, or k where that is more), which may miss items that
        `scores` would place among the first; from small trees of identifiers the answer is exact. See `agreement`.
        """
        k = min(_count(k), self.manifest.num_items)
        events = self.check_history(history)
        return Ranked(*self._answers.recommend(events, k, self._left_out(events)))

    def beam(self, k: int) -> int | None:
        """How many prefixes the search for a list of k keeps at each step, so that places in the list need not be `ranks`; None
        where lists are exact, as of every model that is no generator."""
        return None if self._writer is None else self._writer.beam(_count(k))

    def recommend_many(self, histories: Sequence[History], k: int) -> Recommendations:
        """As `recommend_one`, for thousands of histories: encoded and matched in batches of bounded memory; a generator answers
        them one by one. k may exceed the catalogue; the answer is then as wide as the catalogue.

        Scores agree with those of `recommend_one` but for rounding (float32), so items that score alike that closely may change
        places. Histories that the model cannot answer for (empty ones, where it needs one item) get no items: `valid` is 0.
        """
        k = min(_count(k), self.manifest.num_items)
        checked = [self.check_items(history) for history in histories]
        able = [row for row, events in enumerate(checked) if len(events) >= self.manifest.encoder.min_history]
        items = np.full((len(checked), k), -1, np.int32)
        scores = np.full((len(checked), k), -np.inf, np.float32)
        valid = np.zeros(len(checked), np.int64)
        left_out = [self._left_out(checked[row]) for row in able]
        for place, best_items, best_scores in self._answers.recommend_many([checked[row] for row in able], k, left_out):
            row, count = able[place], len(best_items)
            valid[row], items[row, :count], scores[row, :count] = count, best_items, best_scores
        return Recommendations(items, scores, valid)

    def scores(self, history: History) -> Float32:
        """The score of every item, float32 [items], those of the history included.

        Of a generator: exact log-probabilities, by walking the whole tree of identifiers, which may take seconds. Items that
        share an identifier score alike to the last bit.
        """
        return self._answers.scores(self.check_history(history))

    def candidates(self, history: History) -> npt.NDArray[np.bool_]:
        """bool [items]: what may be recommended after a history, all items but its own where `excludes_history`."""
        events = self.check_items(history)
        candidates = np.ones(self.manifest.num_items, bool)
        if self.excludes_history:
            candidates[events] = False
        return candidates

    def ranks(self, history: History, items: Iterable[int]) -> npt.NDArray[np.float64]:
        """The rank of each of `items` after the history, float64 [items], 1 is best, ties at their mean.

        Among the `candidates`; an item that is asked for is always one.
        """
        targets = self.check_items(items)
        events = self.check_history(history)
        (scores,) = self.scores_near([events], targets)
        candidates = self.candidates(events)
        return ranks_among(scores[candidates], scores[targets]) - candidates[targets] / 2  # not level with itself

    # --- explaining

    def attention(self, history: History) -> AttentionMap:
        """What the model looked at while reading the history. Raises CapabilityError where it does not attend."""
        self._require("attention")
        described = self.manifest.attention
        assert described is not None and self._attention is not None
        events = self.check_history(history)
        places = list(self.used(events))[-described.window :]
        span = self._writer.shape.levels if self._writer is not None and described.unit == "codes" else 1
        size = len(places) * span + described.next_token
        if described.layers * described.heads * size**2 > _WEIGHTS:
            raise QuestionError(f"A map of {size:,} positions is too large to show; shorten the history.")
        raw = self._attention.run(padded([events], self.manifest.encoder.max_length, self.manifest.num_items))[0]
        codes = None
        if self._writer is not None and described.unit == "codes":
            codes = self._writer.filled(events[places])
        shown = read_map(self.folder, raw, described, np.array(places, np.int64), events[places], codes)
        return replace(shown, no_rollout=no_rollout(self.manifest))

    def leave_one_out(self, history: History, item: int) -> LeaveOneOut:
        """What each event of the history does to the rank of `item`; beside that, to its log-probability and score.

        Removed is the event, not the item: one that stands twice is removed once. Where the history is longer than the model
        reads, the shorter history is cut anew, so an earlier event slides in; events that are not read change nothing. Where
        nothing is left that the model could read, the answers are NaN. With and without an event the candidates are the same:
        the `candidates` of the whole history, and `item` itself.

        Exact. Costs one encoder batch and one pass over the index per event read. A generator has no index: it walks, once per
        event read, all prefixes at least as probable as the item's identifier, so an item far down costs up to the whole tree.
        """
        return leave_one_out(self, history, item)

    def contributions(self, history: History, item: int) -> Contributions:
        """What each event of the history, or each part of the model, gives to the score of `item`, and what the item has anyway:
        these add up to it.

        Raises CapabilityError where scores are no such sums.
        """
        self._require("contributions")
        events = self.check_history(history)
        self.check_items([item])
        return self._indexed().contributions(events, item)

    def gates(self, history: History) -> dict[int, float]:
        """Place in the history → how far its gate is open, 0 to 1, oldest first. Raises CapabilityError where there are none."""
        events = self.check_history(history)
        self._require("gates")
        gates = self._indexed().gates(events).tolist()
        return dict(zip(range(len(events) - len(gates), len(events)), gates, strict=True))

    def matches(self, history: History) -> list[Float32]:
        """How well filters over 1, 2, … of the latest items in a row match: of each height float32 [rows, filters], 0 or more,
        the latest row last. Raises CapabilityError where no filters slide."""
        events = self.check_history(history)
        self._require("matches")
        return self._indexed().matches(events)

    @property
    def graph(self) -> InteractionGraph:
        """Who has what in training. Raises CapabilityError where the bundle does not carry it."""
        self._require("paths")
        return self._graph.value()

    @property
    def paths(self) -> Paths | None:
        """Scores taken apart into paths; None where they are no sum over paths. As `graph`."""
        self._require("paths")
        shape = self.manifest.graph
        return None if shape is None or shape.dim is None else self._paths.value()

    @property
    def layers(self) -> Paths | SideBySide | None:
        """Scores taken apart into layers; None where they are no sum over layers, or where a bundle of before does not say which
        numbers are which layer's. As `graph`."""
        shape = self.manifest.graph
        return self._layers.value() if shape is not None and shape.layer_dim is not None else self.paths

    def neighbours(self, item: int, k: int) -> Neighbours:
        """The k items nearest to `item` in the model's own space, by exact comparison with all; fewer where there are fewer.

        Raises CapabilityError where the item rows carry no meaning to compare, QuestionError where the item's is one of zeros.
        """
        self._require("neighbours")
        (item,) = self.check_items([item])
        return nearest(self._rows, int(item), _count(k), self.manifest.index.geometry, self._centre.value())

    @property
    def vectors(self) -> Float32:
        """What `neighbours` compares and the map shows, float32 [items, dim]: item rows (less their mean where that is how they
        are compared), or what the tokenizer quantised. Raises CapabilityError as `neighbours`."""
        self._require("neighbours")
        centre = self._centre.value()
        return self._rows if centre is None else self._rows - centre

    # --- writing identifiers: CapabilityError where the model does not (`cannot("identifiers")`)

    @property
    def identifiers(self) -> Identifiers:
        """The identifier of every item."""
        return self._writes().identifiers

    @property
    def codebooks(self) -> Float32 | None:
        """The vector of every code, float32 [levels, codes, dim], meaningless beyond the codes of a level; None where the bundle
        does not carry them."""
        return self._writes().codebooks

    @property
    def latents(self) -> Float32 | None:
        """What the tokenizer quantised, float32 [items, dim]; None where the bundle does not carry it."""
        return self._writes().latents

    def items_with(self, prefix: Sequence[int]) -> Int32:
        """The items whose identifiers begin with these codes, by number; a last −1 asks for those that end there."""
        return self._writes().items_with(prefix)

    def siblings(self, item: int) -> tuple[Int32, ...]:
        """For each code of the item's identifier, the other items that share it and all codes before it; the last are ties."""
        (item,) = self.check_items([item])
        return self._writes().siblings(item)

    def trace(
        self,
        history: History,
        width: int | None = None,
        *,
        constrained: bool = True,
        dropped: int = 20,
        temperature: float = 1.0,
    ) -> Trace:
        """The tree of codes that a beam of `width` (1 to 1,024; None: the model's own) considers, step by step.

        constrained: only identifiers of items are written, and every step's softmax runs over those that can still follow;
        prefixes that lead to nothing but items left out are not followed. Unconstrained: any token may follow, the softmax runs
        over all of them, nothing is left out, and what is written may be no item's identifier. dropped: how many prefixes per
        step to list that were not followed. temperature: 0.01 to 100; 1 is the model's own
        (`engine.runtime.beam_search.search`).
        """
        writer, events = self._writes(), self.check_history(history)
        width = writer.shape.beam if width is None else width
        return writer.trace(events, width, self._left_out(events), constrained, dropped, temperature)

    def agreement(
        self, histories: Sequence[History], widths: Sequence[int], k: int = 10, *, temperature: float = 1.0
    ) -> list[Agreement]:
        """For each width of a beam, how well its first k items agree with exact scores. Walks the whole tree per history."""
        writer = self._writes()
        checked = [self.check_history(history) for history in histories]
        return writer.agreement(checked, widths, _count(k), self.excludes_history, temperature)

    def cross_attention(self, history: History, item: int) -> CrossAttention:
        """What each step of writing `item`'s identifier looks at. Raises CapabilityError where the bundle does not carry it."""
        self._require("cross_attention")
        (item,) = self.check_items([item])
        return self._writes().cross_attention(self.check_history(history), item)

    # --- reading words: CapabilityError where the model does not (`cannot("unseen_items")`, `cannot("words")`)

    def encode(self, items: Sequence[Mapping[str, str]]) -> Float32:
        """The vectors of items that the catalogue does not have, float32 [items, dim], as the rows of `index`.

        An item is its attributes, such as {"title": "…", "genres": "…"}. QuestionError for keys that the model does not read
        (`manifest.text.fields`, or those of `manifest.sentence`).
        """
        return self._sentences.encode(items) if self._sentences is not None else self._reads().encode(items)

    def score_new(self, history: History, items: Sequence[Mapping[str, str]]) -> Float32:
        """The scores of such items after the history, float32 [items], comparable with those of `scores`."""
        return self.encode(items) @ self._query(history)

    @property
    def reader(self) -> Reader:
        """What reads the words. CapabilityError where the model knows items by their numbers."""
        return self._reads()

    def word_attention(self, history: History) -> WordAttention:
        """Which words of the history the query came from. Raises CapabilityError where the model does not attend to words."""
        self._require("words")
        assert self._attention is not None
        events = self.check_history(history)
        places = np.array(self.used(events), np.int64)
        items = padded([events], self.manifest.encoder.max_length, self.manifest.num_items)
        return self._reads().attention(self._attention, items, places, events[places])

    # --- what lies beside the model: tables, None where the bundle does not have them; those above 16 MiB are read on first use

    def ranks_table(self) -> pa.Table | None:
        """Evaluation: user int32, target int32, history_length int32, protocol string, rank float64 (mean under ties)."""
        return self._tables["ranks.parquet"].value()

    def seeds_table(self) -> pa.Table | None:
        """Full rankings of the same training with other seeds: as `ranks_table`, and seed int64."""
        return self._tables["seeds.parquet"].value()

    def exposure_table(self) -> pa.Table | None:
        """How often each item was recommended: protocol string, k int32, item int32, count int64."""
        return self._tables["exposure.parquet"].value()

    def map_table(self) -> pa.Table | None:
        """Item rows on a plane: item int32 (each once), x float32, y float32, without units."""
        return self._tables["map.parquet"].value()

    def curve_table(self) -> pa.Table | None:
        """Training: step int64, epoch float64, seconds float64, loss float64, valid_ndcg float64 (the last two may be null)."""
        return self._tables["curve.parquet"].value()

    @property
    def unsettled(self) -> str | None:
        """`STILL_IMPROVING` or `NOT_SETTLED` where training ended before validation had settled, as curve and recipe tell;
        without a curve, what the manifest says. None where it had, and where nothing was validated."""
        made, curve = self.manifest.training, self.curve_table()
        if curve is None:
            return STILL_IMPROVING if made.improving else None
        checked = curve.filter(curve["valid_ndcg"].is_valid())
        validated = dict(zip(checked["epoch"].to_pylist(), checked["step"].to_pylist(), strict=True))
        return unsettled(made.best_epoch, validated, made.recipe)

    # --- for this package

    @property
    def _rows(self) -> Float32:
        rows = self.index.rows if self._writer is None else self._writer.latents
        assert rows is not None  # of a generator: a manifest that claims neighbours describes them
        return rows

    def _middle(self) -> Float32 | None:
        """What is taken from every row before rows are compared, float32 [dim]; None where they are compared as they are."""
        return self._rows.mean(0, dtype=np.float64).astype(np.float32) if self.manifest.index.centred else None

    def _query(self, history: History) -> Float32:
        """What the encoder makes of a history, float32 [dim]."""
        return self._indexed().query(self.check_history(history))

    def _table(self, file: str, columns: dict[str, Column]) -> Lazy[pa.Table | None]:
        expected = self.manifest.files.get(file)
        if expected is None:
            return Lazy(lambda: None)
        table: Lazy[pa.Table | None] = Lazy(lambda: self._read(file, columns))
        if self.folder.size(file, limit=TABLE_BYTES, expected=expected) <= EAGER_BYTES:
            table.value()
        return table

    def _read(self, file: str, columns: dict[str, Column]) -> pa.Table:
        expected = self.manifest.files[file]
        if file == "map.parquet":
            return read_places(self.folder, file, expected, self.manifest.num_items)
        table = read_table(self.folder, file, columns, expected=expected)
        if "protocol" in columns:
            self._check_protocols(file, table["protocol"].unique().to_pylist())
        return table

    def _check_protocols(self, file: str, names: Iterable[str]) -> None:
        """Raises BundleError where figures of a refit could be taken for others, or others for those of a refit."""
        for name in names:
            if protocols.parse(name).refit != self.manifest.refitted:
                reason = f"figures under “{name[:80]}” of a model that was fitted on {self.manifest.training.fitted_on} events"
                raise self.folder.fault(file, reason)

    def check_ends(self) -> None:
        """Raises BundleError where one of its graphs did not end when it was run in this process (`runs`)."""
        for file, expected in self.manifest.files.items():
            try:
                time_limit.check(expected.sha256)
            except time_limit.Endless as error:
                raise self.folder.fault(file, str(error)) from None

    def check_items(self, items: Iterable[int]) -> npt.NDArray[np.int64]:
        """int64 [items]; raises QuestionError where one is no item of the catalogue."""
        numbers = np.asarray(items if isinstance(items, np.ndarray) else list(items))
        if numbers.size == 0:
            return np.empty(0, np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise QuestionError("Items are asked for by their whole numbers, one after the other.")
        wrong = numbers[(numbers < 0) | (numbers >= self.manifest.num_items)]
        if len(wrong):
            raise QuestionError(
                f"There is no item number {wrong[0]}: this catalogue has 0 to {self.manifest.num_items - 1}."
            )
        return numbers.astype(np.int64)

    def check_history(self, history: History) -> npt.NDArray[np.int64]:
        """As `check_items`, and QuestionError for an empty history where the model needs one."""
        events = self.check_items(history)
        if len(events) < self.manifest.encoder.min_history:
            raise QuestionError(f"{self.manifest.title} needs at least one item in the history.")
        return events

    def scores_near(
        self, histories: Sequence[npt.NDArray[np.int64]], items: npt.NDArray[np.int64]
    ) -> Iterator[Float32]:
        """One float32 [items] per history (checked before); those that score lower than all of `items` may stand at −inf."""
        return self._answers.scores_near(histories, items)

    def _require(self, capability: str) -> None:
        """Raises CapabilityError where the model does not have it."""
        if (reason := self.cannot(capability)) is not None:
            raise CapabilityError(reason)

    def _indexed(self) -> Indexed:
        if not isinstance(self._answers, Indexed):
            raise CapabilityError(f"{self.manifest.title} writes identifiers; it has no index of item vectors.")
        return self._answers

    def _writes(self) -> Generated:
        if self._writer is None:
            raise CapabilityError(self.cannot("identifiers") or "")
        return self._writer

    def _reads(self) -> Reader:
        if self._reader is None:
            raise CapabilityError(self.cannot("words") or self.cannot("unseen_items") or "")
        return self._reader

    def _left_out(self, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return events if self.excludes_history else events[:0]


def _count(k: int) -> int:
    try:
        k = operator.index(k)
    except TypeError:
        raise QuestionError("k must be a whole number.") from None
    if k < 1:
        raise QuestionError(f"k must be 1 or more, not {k}.")
    return k
