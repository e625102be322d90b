"""The words of all items as tokens: what models that read text are given, and what their bundles take along.

    words.safetensors     flat arrays, one run of tokens per item
    tokenizer.json        of the package tokenizers

An item is its attributes one after the other, each the tokens of its key and then of its value (Li et al., Recformer, KDD 2023,
2.1.1): "title a lipstick color red". An item without any words is one token of padding, so that it has a place.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.data.ragged import offsets_of, spread
from engine.errors import SeqscopeError, first_line
from engine.files import replacing

TABLE, TOKENIZER = "words.safetensors", "tokenizer.json"
CLASS, KEY, VALUE = range(3)
"""What a token is: [CLS], of an attribute's name, of what it says."""
_SPECIAL = {"pad": ("[PAD]", "<pad>"), "first": ("[CLS]", "<s>"), "mask": ("[MASK]", "<mask>")}

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class ItemWords:
    """Item i has the tokens offsets[i] … offsets[i + 1] − 1, at least one. All arrays but offsets are [tokens of all items]."""

    tokens: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.int8]
    """KEY or VALUE."""
    attributes: npt.NDArray[np.int8]
    """Which of `fields`."""
    words: npt.NDArray[np.int32]
    """Which word of its item: the pieces of one word have one number."""
    offsets: npt.NDArray[np.int64]
    """[items + 1]"""
    fields: tuple[str, ...]
    """The keys of the attributes, in the order in which they are read."""
    limit: int
    """Tokens kept of one attribute, its key among them."""
    tokenizer: str
    """tokenizer.json"""
    vocabulary: int
    pad: int
    first: int
    """[CLS]"""
    mask: int
    """[MASK]"""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each item, int64 [items]."""
        return np.diff(self.offsets)

    def table(self, values: npt.NDArray[Any], fill: int) -> npt.NDArray[np.int64]:
        """One of the flat arrays as int64 [items, longest], `fill` on the right."""
        column = self.offsets[:-1, None] + np.arange(int(self.lengths.max(initial=1)))
        real = column < self.offsets[1:, None]
        table = np.full(column.shape, fill, np.int64)
        table[real] = values[column[real]]
        return table

    def take(self, rows: npt.NDArray[Any], longest: int | None = None) -> ItemWords:
        """The items `rows` alone, of each its first `longest` tokens (all where None)."""
        lengths = self.lengths[rows]
        if longest is not None:
            lengths = np.minimum(lengths, longest)
        source = spread(self.offsets[:-1][rows], lengths)
        parts = {name: getattr(self, name)[source] for name in ("tokens", "kinds", "attributes", "words")}
        return dataclasses.replace(self, offsets=offsets_of(lengths), **parts)

    def digest(self) -> str:
        """sha256 of all that a model sees of it."""
        hasher = hashlib.sha256(json.dumps(self._about).encode() + self.tokenizer.encode())
        for array in self._arrays.values():
            hasher.update(np.ascontiguousarray(array).tobytes())
        return hasher.hexdigest()

    def write(self, folder: Path) -> None:
        from safetensors.numpy import save_file  # here, because the runtime reads words without safetensors

        with replacing(folder / TOKENIZER) as staged:
            staged.write_text(self.tokenizer, "utf-8")
        with replacing(folder / TABLE) as staged:
            save_file(self._arrays, staged, metadata={"about": json.dumps(self._about)})

    @classmethod
    def read(cls, folder: Path) -> ItemWords:
        """Raises SeqscopeError where the two files are missing or damaged."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(folder / TABLE, "np") as file:
                about = json.loads((file.metadata() or {})["about"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            about["fields"] = tuple(about["fields"])
            return cls(**arrays, **about, tokenizer=(folder / TOKENIZER).read_text("utf-8"))
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise SeqscopeError(
                f"{folder} holds no words of items that can be read ({first_line(error)[:200]}). Train again."
            )

    def by_word(self) -> pa.Table:
        """words.parquet of bundles, items one after the other. `tokens` says of how many tokens a word is made."""
        from tokenizers.decoders import ByteLevel

        tokenizer = parse(self.tokenizer)
        if tokenizer.decoder is None:  # of byte pairs, which stand for bytes
            tokenizer.decoder = ByteLevel()
        item = np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)
        new = np.ones(len(item), bool)
        new[1:] = (item[1:] != item[:-1]) | (self.words[1:] != self.words[:-1])
        first = np.flatnonzero(new)
        pieces = np.split(self.tokens, first[1:])
        texts = tokenizer.decode_batch([piece.tolist() for piece in pieces], skip_special_tokens=True)
        return pa.table(
            {
                "item": item[first],
                # the limit may cut a letter
                "word": pa.array([text.rstrip("\ufffd").strip() for text in texts], pa.string()),
                "attribute": self.attributes[first].astype(np.int32),
                "key": (self.kinds[first] == KEY).astype(np.int32),
                "tokens": np.diff(np.append(first, len(item))).astype(np.int32),
            }
        )

    @property
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        names = ("tokens", "kinds", "attributes", "words", "offsets")
        return {name: getattr(self, name) for name in names}

    @property
    def _about(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("fields", "limit", "vocabulary", "pad", "first", "mask")}


def tokenize(items: Iterable[Pairs], tokenizer: Any, fields: Sequence[str], limit: int) -> ItemWords:
    """The words of `items`, each a list of (key, value); keys that are no `fields` are left out.

    tokenizer: of the package tokenizers; limit: tokens of one attribute, its key among them.
    """
    special = {name: _number(tokenizer, name) for name in _SPECIAL}
    order = {key: position for position, key in enumerate(fields)}
    rows = [sorted(((order[k], v) for k, v in pairs if k in order), key=lambda pair: pair[0]) for pairs in items]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # each text once, whatever number of items have it
    texts = list(dict.fromkeys([*fields, *(value for row in rows for _, value in row)]))
    pieces = dict(zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True))
    columns: list[list[int]] = [[], [], [], []]
    offsets = [0]
    for row in rows:
        word = 0
        for position, value in row:
            left = limit
            for kind, text in ((KEY, fields[position]), (VALUE, value)):
                encoding = pieces[text]
                ids, numbers = encoding.ids[:left], [n or 0 for n in encoding.word_ids[:left]]
                columns[0] += ids
                columns[1] += [kind] * len(ids)
                columns[2] += [position] * len(ids)
                columns[3] += [word + number for number in numbers]
                word, left = word + max(numbers, default=-1) + 1, left - len(ids)
        if len(columns[0]) == offsets[-1]:
            for column, entry in zip(columns, (special["pad"], VALUE, 0, 0), strict=True):
                column.append(entry)
        offsets.append(len(columns[0]))
    tokens, kinds, attributes, words = columns
    return ItemWords(
        np.array(tokens, np.int32), np.array(kinds, np.int8), np.array(attributes, np.int8), np.array(words, np.int32),
        np.array(offsets, np.int64), tuple(fields), limit, tokenizer.to_str(), tokenizer.get_vocab_size(), **special,
    )  # fmt: skip


def parse(text: str) -> Any:
    """A tokenizer from its JSON, which takes no word for a special token. Raises SeqscopeError where it is none, or where the
    package is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise SeqscopeError("the package tokenizers is not installed, so it cannot be read")
    try:
        tokenizer = Tokenizer.from_str(text)
        tokenizer.encode_special_tokens = True
        return tokenizer
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # what Rust panics with is no Exception
        raise SeqscopeError(f"not a tokenizer that can be read ({first_line(error)[:200]})")


def _number(tokenizer: Any, name: str) -> int:
    numbers = (tokenizer.token_to_id(token) for token in _SPECIAL[name])
    number = next((number for number in numbers if number is not None), None)
    if number is None:
        raise SeqscopeError(f"this tokenizer has no token {_SPECIAL[name][0]}; choose another text encoder")
    return int(number)
