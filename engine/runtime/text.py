"""Models that know items by their text, without torch: they can be told of new items, and asked which words they looked at.

A text encoder that `seqscope embed --export` wrote, outside of any bundle (`TextEncoder`):

    words.json          what it is: `Words`
    tokenizer.json      read by the package tokenizers
    encoder.onnx        tokens int64 [batch, length], filled up with `pad` on the right → vectors float32 [batch, dim]

    encoder = TextEncoder.open("build/words/minilm")
    encoder.embed(["a lipstick", "립스틱"])               # float32 [2, dim], rows of unit length

A bundle whose items are vectors of such an encoder (`SentenceReader`) finds it in exports/<dataset>/words/<name>, then in the
folder that SEQSCOPE_WORDS names, else in build/words of this project. One with another digest is another encoder.

A bundle that reads words itself (`Reader`):

    item_encoder.onnx   tokens, kinds int64 [batch, length] (kinds: 1 of a key, 2 of a value, 0 where the text has ended) → rows
                        float32 [batch, dim], to be compared with a query as the rows of index.npy are
    tokenizer.json      read by the package tokenizers
    words.parquet       item, word, attribute, key, tokens: what is read of each item, word by word; `tokens` tokens each
    attention.onnx      a further output, words float32 [batch, layers, heads, length, longest]: what [CLS] gave to each token
                        of each item
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator

from engine.bundle.errors import BundleError, CapabilityError, QuestionError
from engine.bundle.files import Folder, Lazy, read_document
from engine.bundle.index import Float32
from engine.bundle.manifest import File, Manifest, Sentence, Sha256, Strict, Text
from engine.bundle.onnx_graph import INT64
from engine.bundle.tables import Column, read_matrix, read_table
from engine.data.words import TOKENIZER, ItemWords, parse, tokenize
from engine.errors import SeqscopeError
from engine.runtime.sessions import OPEN, Session
from engine.text.attributes import WORDS, joined, plain, shorten
from engine.text.attributes import Field as Attribute
from engine.text.tokenizer import batches, padded

TEXT_ENCODERS = "words"
"""The folder of a dataset's text encoders; no bundle is called so."""
ABOUT, TEXT_ENCODER, CENTRE = "words.json", "encoder.onnx", "centre.npy"
ITEM_WORDS, ITEM_ENCODER = "words.parquet", "item_encoder.onnx"
TOKENIZER_BYTES = 64 << 20
CHARACTERS = 20_000
"""Of one text, or of one attribute; what comes after is not read."""
ITEMS = 1_000
"""New items of one question."""


class Words(Strict):
    """words.json. Written by engine/export/text.py, believed by nobody until it is checked."""

    schema_version: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    title: str = Field(min_length=1, max_length=200)
    source: str = Field(max_length=2_000)
    """Where the weights come from, in a sentence."""
    licence: str = Field(max_length=2_000)
    """The terms of the weights, in a sentence."""
    dim: int = Field(ge=1, le=65_536)
    max_length: int = Field(ge=1, le=65_536)
    """Tokens read of one text."""
    pad: int = Field(ge=0)
    """The token that fills up shorter texts of a batch; the graph looks past it."""
    pooling: str = Field(max_length=200)
    """How one vector is made of the states of all tokens, in words; the graph does it."""
    digest: Sha256
    """Of the encoder that was exported: vectors with the same digest may be compared."""
    max_abs_difference: float = Field(ge=0)
    """The graph against PyTorch, on texts of several lengths and scripts."""
    created_by: str
    files: dict[str, File]

    @field_validator("files")
    @classmethod
    def _complete(cls, files: dict[str, File]) -> dict[str, File]:
        if set(files) != {TOKENIZER, TEXT_ENCODER}:
            raise ValueError(f"lists {', '.join(sorted(files)) or 'nothing'}, not {TOKENIZER} and {TEXT_ENCODER}")
        return files


class TextEncoder:
    """Made by `open`; answers from any thread.

    Attributes: about, what words.json says; path, the folder.
    """

    def __init__(self, folder: Folder, about: Words) -> None:
        self.path, self.about = folder.path, about
        self._network = Session(
            folder, TEXT_ENCODER, about.files, {"tokens": (INT64, (OPEN, OPEN))}, {"vectors": (None, about.dim)}
        )
        folder.size(TOKENIZER, limit=TOKENIZER_BYTES, expected=about.files[TOKENIZER])
        self._tokenizer = Lazy(lambda: read_tokenizer(folder, about.files[TOKENIZER], about.max_length))

    @classmethod
    def open(cls, path: Path | str) -> TextEncoder:
        """Raises BundleError where a file of the folder is missing, damaged, or not what words.json says of it."""
        folder = Folder(Path(path), Path(path).name)
        return cls(folder, read_document(folder, ABOUT, Words, 1))

    def embed(self, texts: Sequence[str]) -> Float32:
        """float32 [texts, dim], row i for text i; texts of like length share a batch.

        Raises QuestionError for anything but text, BundleError where tokenizer or graph fail.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise QuestionError("a text encoder is asked with a list of texts")
        tokenizer = self._tokenizer.value()
        readable = [text[:CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        tokens = [encoding.ids[: self.about.max_length] for encoding in tokenizer.encode_batch(readable)]
        vectors = np.empty((len(tokens), self.about.dim), np.float32)
        for rows in batches([len(row) for row in tokens]):
            batch = padded([tokens[row] for row in rows], self.about.pad)
            (answer,) = self._network.call(["vectors"], {"tokens": batch})
            vectors[rows] = self._network.checked(answer, (len(rows), self.about.dim))
        return vectors


def read_tokenizer(folder: Folder, expected: File, max_length: int | None = None) -> Any:
    """tokenizer.json, of the package tokenizers; it cuts texts to `max_length` tokens. Raises BundleError."""
    content = folder.read(TOKENIZER, limit=TOKENIZER_BYTES, expected=expected)
    try:
        tokenizer = parse(content.decode("utf-8"))
        if max_length is not None:
            tokenizer.no_padding()
            tokenizer.enable_truncation(max_length)
    except SeqscopeError as error:
        raise folder.fault(TOKENIZER, str(error)) from None
    except Exception as error:  # not UTF-8; and the package raises no class of its own
        raise folder.fault(TOKENIZER, "not a tokenizer that can be read", error) from None
    return tokenizer


def check_new_items(items: Sequence[Mapping[str, str]], attributes: Collection[str]) -> None:
    """Raises QuestionError where these are too many, or not texts by attributes that the model reads."""
    if len(items) > ITEMS:
        raise QuestionError(f"{len(items):,} new items at once; ask for at most {ITEMS:,}.")
    for item in items:
        if not isinstance(item, Mapping) or not all(isinstance(value, str) for value in item.values()):
            raise QuestionError("A new item is said as texts by attribute, such as {'title': '…'}.")
        if unknown := [key for key in item if key not in attributes]:
            raise QuestionError(f"This model does not read {unknown[0]!r}; it reads {', '.join(attributes)}.")


class SentenceReader:
    """Encodes items that the catalogue does not have."""

    def __init__(self, folder: Folder, manifest: Manifest, sentence: Sentence) -> None:
        self.folder, self.manifest, self.sentence = folder, manifest, sentence
        shape = (1, manifest.encoder.dim)
        self._centre = Lazy(lambda: read_matrix(folder, CENTRE, manifest.files[CENTRE], shape)[0])
        self._encoder: TextEncoder | None = None
        self._opening = threading.Lock()
        self.fields = [Attribute.read(text) for text in sentence.fields]

    def cannot(self) -> str | None:
        """None where new items can be encoded, else why not, in a sentence."""
        if self._open() is not None:
            return None
        return (
            f"Its text encoder, {self.sentence.title}, is not installed here "
            f"(seqscope embed --encoder {self.sentence.encoder} --export build/words)."
        )

    def encode(self, items: Sequence[Mapping[str, str]]) -> Float32:
        """The rows of items that the catalogue does not have, float32 [items, dim]; zeros for one without words."""
        check_new_items(items, [field.key for field in self.fields])
        texts = [self._text(item) for item in items]
        encoder = self._open()
        if encoder is None:
            raise CapabilityError(self.cannot() or "")
        vectors = np.zeros((len(texts), self.manifest.encoder.dim), np.float32)
        with_words = [row for row, text in enumerate(texts) if text]
        if with_words:
            apart = encoder.embed([texts[row] for row in with_words]) - self._centre.value()
            lengths = np.linalg.norm(apart, axis=1, keepdims=True)
            vectors[with_words] = apart / np.maximum(lengths, 1e-12)
        return vectors

    def _text(self, item: Mapping[str, str]) -> str:
        pairs = ((field.key, shorten(plain(item.get(field.key)), field.words)) for field in self.fields)
        return joined(((key, text) for key, text in pairs if text), self.fields[0].key)

    def _open(self) -> TextEncoder | None:
        """Looked for again while there is none: `make run` exports it while the app serves already."""
        if self._encoder is None:
            with self._opening:
                self._encoder = self._encoder or self._find()
        return self._encoder

    def _find(self) -> TextEncoder | None:
        default = Path(__file__).resolve().parents[2] / "build" / "words"
        roots = [self.folder.path.parent / TEXT_ENCODERS, Path(os.environ.get("SEQSCOPE_WORDS") or default)]
        for root in roots:
            if not (root / self.sentence.encoder).is_dir():
                continue
            try:
                encoder = TextEncoder.open(root / self.sentence.encoder)
            except BundleError:
                continue  # a damaged encoder is none
            if encoder.about.digest == self.sentence.digest and encoder.about.dim == self.manifest.encoder.dim:
                return encoder
        return None


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


class Reader:
    """The files above."""

    def __init__(self, folder: Folder, manifest: Manifest, text: Text) -> None:
        self.folder, self.manifest, self.text = folder, manifest, text
        named = map(Attribute.read, map(str, manifest.training.recipe.get("model", {}).get("fields") or ()))
        limits = {field.key: field.words for field in named}
        # a catalogue that lacks some of these was read by its own
        self._limits = limits if set(limits) == set(text.fields) else dict.fromkeys(text.fields, WORDS)
        files, shape = manifest.files, (OPEN, OPEN)
        self._network = Session(
            folder, ITEM_ENCODER, files, {"tokens": (INT64, shape), "kinds": (INT64, shape)},
            {"rows": (None, manifest.encoder.dim)},
        )  # fmt: skip
        self._tokenizer = Lazy(lambda: read_tokenizer(folder, files[TOKENIZER]))
        self._words: Lazy[pa.Table] = Lazy(self._read_words)

    def encode(self, items: Sequence[Mapping[str, str]]) -> Float32:
        """The rows of items that the catalogue does not have, float32 [items, dim]."""
        check_new_items(items, self.text.fields)
        if not items:
            return np.empty((0, self.manifest.encoder.dim), np.float32)
        return self.rows(
            tokenize([self._pairs(item) for item in items], self.tokenizer, self.text.fields, self.text.limit)
        )

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
        vectors = np.empty((len(words), self.manifest.encoder.dim), np.float32)
        lengths = np.minimum(words.lengths, longest).tolist()
        for part in batches(lengths):
            width = lengths[part[-1]]
            (answer,) = self._network.call(["rows"], {"tokens": tokens[part, :width], "kinds": kinds[part, :width]})
            vectors[part] = self._network.checked(answer, vectors[part].shape)
        return vectors

    def attention(
        self,
        graph: Session,
        items: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
        history: npt.NDArray[np.int64],
    ) -> WordAttention:
        """items: int64 [1, length] as the graph is asked; places, history: int64 [read], the events read and their items."""
        shape, table = self.manifest.attention, self._words.value()
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
            shares = raw[:, :, column - len(places), : counts.sum()]
            weights.append(np.add.reduceat(shares, np.cumsum(counts) - counts, axis=2))
            for word, attribute, key in zip(*(rows[n].to_pylist() for n in ("word", "attribute", "key")), strict=True):
                words.append(Word(place, item, word, self.text.fields[attribute], bool(key)))
        return WordAttention(tuple(words), np.concatenate(weights, 2).astype(np.float32))

    def _pairs(self, item: Mapping[str, str]) -> list[tuple[str, str]]:
        texts = ((key, shorten(plain(value[:CHARACTERS]), self._limits[key])) for key, value in item.items())
        return [(key, text) for key, text in texts if text]

    def _read_words(self) -> pa.Table:
        small = pa.int32()
        columns = {
            "item": Column(small, 0, self.manifest.num_items - 1),
            "word": Column(pa.string()),
            "attribute": Column(small, 0, len(self.text.fields) - 1),
            "key": Column(small, 0, 1),
            "tokens": Column(small, 1, self.text.longest),
        }
        table = read_table(self.folder, ITEM_WORDS, columns, expected=self.manifest.files[ITEM_WORDS])
        item = table["item"].to_numpy()
        if (np.diff(item) < 0).any() or len(np.unique(item)) != self.manifest.num_items:
            raise self.folder.fault(ITEM_WORDS, "every item must have words, items one after the other")
        if np.bincount(item, table["tokens"].to_numpy()).max() > self.text.longest:
            raise self.folder.fault(ITEM_WORDS, f"an item has more than the {self.text.longest} tokens of the manifest")
        return table
