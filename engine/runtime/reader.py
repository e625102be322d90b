"""A model that knows items by their words: it can be told of new items, and asked which words it looked at.

item_encoder.onnx   tokens, kinds int64 [batch, length] (kinds: 1 of a key, 2 of a value, 0 where the text has ended) → rows
                    float32 [batch, dim], to be compared with a query as the rows of index.npy are
tokenizer.json      read by the package tokenizers
words.parquet       item, word, attribute, key, tokens: what is read of each item, word by word; `tokens` tokens each
attention.onnx      a further output, words float32 [batch, layers, heads, length, longest]: what [CLS] gave to each token of
                    each item
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.bundle.manifest import Manifest, Text
from engine.data.words import TOKENIZER, ItemWords, parse, tokenize
from engine.errors import SeqscopeError
from engine.runtime.faults import QuestionError
from engine.runtime.files import Folder
from engine.runtime.graphs import INT64
from engine.runtime.index import Float32
from engine.runtime.lazily import Lazily
from engine.runtime.sessions import OPEN, Graph, Network
from engine.runtime.tables import Column, read_table

WORDS, GRAPH = "words.parquet", "item_encoder.onnx"
TOKENIZER_BYTES = 64 << 20
CHARACTERS = 20_000
"""Of one attribute; what comes after is not read."""
ITEMS = 1_000
"""New items of one question."""
BATCH = 64


@dataclass(frozen=True)
class Word:
    """One word of one event of a history, as the model reads it."""

    position: int
    """The place of its item in the history."""
    item: int
    word: str
    attribute: str
    """What the word is said of: title, brand, …"""
    key: bool
    """The word names the attribute."""


@dataclass(frozen=True)
class WordAttention:
    """What [CLS], from whose state the query is read, looked at in a history; oldest event first."""

    words: tuple[Word, ...]
    weights: Float32
    """[layers, heads, words]; what is missing from 1 it gave to itself. A word of several tokens has the sum of theirs."""

    def by_attribute(self, layer: int = -1) -> dict[str, float]:
        """The weight of each attribute over the whole history, mean over heads."""
        row = self.weights[layer].mean(0)
        found: dict[str, float] = {}
        for word, weight in zip(self.words, row.tolist(), strict=True):
            found[word.attribute] = found.get(word.attribute, 0.0) + weight
        return found


class Reader:
    """The files above."""

    def __init__(self, folder: Folder, manifest: Manifest, text: Text) -> None:
        self.folder, self.manifest, self.text = folder, manifest, text
        files, shape = manifest.files, (OPEN, OPEN)
        self._network = Network(
            folder, GRAPH, files, {"tokens": (INT64, shape), "kinds": (INT64, shape)},
            {"rows": (None, manifest.encoder.dim)},
        )  # fmt: skip
        folder.size(TOKENIZER, limit=TOKENIZER_BYTES, expected=files[TOKENIZER])
        self._tokenizer: Lazily[Any] = Lazily(self._read_tokenizer)
        self._said: Lazily[pa.Table] = Lazily(self._read_words)

    def encode(self, items: Sequence[Mapping[str, str]]) -> Float32:
        """The rows of items that the catalogue does not have, float32 [items, dim]."""
        asked = [self._pairs(item) for item in items]
        if len(asked) > ITEMS:
            raise QuestionError(f"{len(asked):,} new items at once; ask for at most {ITEMS:,}.")
        if not asked:
            return np.empty((0, self.manifest.encoder.dim), np.float32)
        return self.rows(tokenize(asked, self.tokenizer, self.text.fields, self.text.limit))

    @property
    def tokenizer(self) -> Any:
        """Of the package tokenizers."""
        return self._tokenizer.value()

    def rows(self, words: ItemWords) -> Float32:
        """float32 [items, dim]: the rows of items by their words, however many."""
        longest = self.text.max_tokens - 1
        tokens, kinds = (words.table(v, 0)[:, :longest] for v in (words.tokens, words.kinds))
        if tokens.max(initial=0) >= self.text.vocabulary:
            raise self.folder.fault(TOKENIZER, f"it has more than the {self.text.vocabulary:,} tokens of the model")
        found = np.empty((len(words), self.manifest.encoder.dim), np.float32)
        order = np.argsort(words.lengths, kind="stable")  # like lengths share a batch
        for start in range(0, len(words), BATCH):
            part = order[start : start + BATCH]
            width = min(longest, int(words.lengths[part[-1]]))
            (answer,) = self._network.call(["rows"], {"tokens": tokens[part, :width], "kinds": kinds[part, :width]})
            found[part] = self._network.checked(answer, found[part].shape)
        return found

    def attention(
        self, graph: Graph, items: npt.NDArray[np.int64], places: npt.NDArray[np.int64], history: npt.NDArray[np.int64]
    ) -> WordAttention:
        """items: int64 [1, length] as the graph is asked; places, history: int64 [read], the events read and their items."""
        shape, table = self.manifest.attention, self._said.value()
        assert shape is not None
        (answer,) = graph.call(["words"], {"items": items})
        raw = graph.checked(answer, (1, shape.layers, shape.heads, items.shape[1], self.text.longest))[0]
        if (raw < 0).any() or (raw.sum((-1, -2)) > 1.001).any():
            raise self.folder.fault("attention.onnx", "the weights of words are no shares")
        ends = np.searchsorted(table["item"].to_numpy(), np.arange(self.manifest.num_items + 1))
        words, weights = [], []
        for column, (place, item) in enumerate(zip(places.tolist(), history.tolist(), strict=True)):
            rows = table.slice(ends[item], ends[item + 1] - ends[item])
            counts = rows["tokens"].to_numpy()
            own = raw[:, :, column - len(places), : counts.sum()]
            weights.append(np.add.reduceat(own, np.cumsum(counts) - counts, axis=2))
            for word, attribute, key in zip(*(rows[n].to_pylist() for n in ("word", "attribute", "key")), strict=True):
                words.append(Word(place, item, word, self.text.fields[attribute], bool(key)))
        return WordAttention(tuple(words), np.concatenate(weights, 2).astype(np.float32))

    def _pairs(self, item: Mapping[str, str]) -> list[tuple[str, str]]:
        if not isinstance(item, Mapping) or not all(isinstance(value, str) for value in item.values()):
            raise QuestionError("A new item is said as texts by attribute, such as {'title': '…'}.")
        if unknown := [key for key in item if key not in self.text.fields]:
            raise QuestionError(f"This model does not read {unknown[0]!r}; it reads {', '.join(self.text.fields)}.")
        clean = ((key, value[:CHARACTERS].encode("utf-8", "replace").decode().strip()) for key, value in item.items())
        return [(key, value) for key, value in clean if value]

    def _read_words(self) -> pa.Table:
        small = pa.int32()
        columns = {
            "item": Column(small, 0, self.manifest.num_items - 1),
            "word": Column(pa.string()),
            "attribute": Column(small, 0, len(self.text.fields) - 1),
            "key": Column(small, 0, 1),
            "tokens": Column(small, 1, self.text.longest),
        }
        table = read_table(self.folder, WORDS, columns, expected=self.manifest.files[WORDS])
        item = table["item"].to_numpy()
        if (np.diff(item) < 0).any() or len(np.unique(item)) != self.manifest.num_items:
            raise self.folder.fault(WORDS, "every item must have words, items one after the other")
        if np.bincount(item, table["tokens"].to_numpy()).max() > self.text.longest:
            raise self.folder.fault(WORDS, f"an item has more than the {self.text.longest} tokens of the manifest")
        return table

    def _read_tokenizer(self) -> Any:
        content = self.folder.read(TOKENIZER, limit=TOKENIZER_BYTES, expected=self.manifest.files[TOKENIZER])
        try:
            return parse(content.decode("utf-8"))
        except SeqscopeError as error:
            raise self.folder.fault(TOKENIZER, str(error)) from None
        except UnicodeDecodeError as error:
            raise self.folder.fault(TOKENIZER, "not UTF-8", error) from None
