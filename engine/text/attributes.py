"""The words of an item: its attributes as key and value, and as one text.

    attributes(items)[17]    [("title", "Biotin B-Complex Conditioner"), ("categories", "Beauty, Hair Care")]
    texts(items)[17]         "Biotin B-Complex Conditioner; categories: Beauty, Hair Care"

A field is a column of items.parquet, or "column:words" where another number of words than `WORDS` is to be kept. Columns may be
called as they like, `genre:token_seq` and `ratio 1:2` among them: only what `Field.read` takes for a number of words is one.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from engine.errors import UsageError

WORDS = 32
"""Words kept of one attribute (Recformer keeps 32 tokens)."""
MOST_WORDS = 100_000
MOST_FIELDS = 100
"""Columns that are read; a bundle lists no more."""
CHARACTERS = 256
"""Characters kept of one attribute: scripts without spaces have no words to count."""
SEPARATOR = "; "

# What names an item, and what counts its events, says nothing about it.
_NOT_WORDS = {"item", "item_id", "id", "asin", "parent_asin", "isbn", "url", "link", "imdb", "tmdb", "popularity"}
_FIRST = ("title", "name", "brand", "artist", "author", "director", "categor", "genre")
_LAST = ("description", "plot", "summary", "review")
_NUMBERS = ("year", "price")


@dataclass(frozen=True)
class Field:
    """One attribute of an item: a column, and how many of its words are kept."""

    column: str
    words: int = WORDS

    @property
    def key(self) -> str:
        """What people call it: release_year → release year."""
        return self.column.replace("_", " ").strip()

    def __str__(self) -> str:
        return self.column if self.words == WORDS and ":" not in self.column else f"{self.column}:{self.words}"

    @classmethod
    def read(cls, text: str, columns: Collection[str] | None = None) -> Field:
        """The field that `str` wrote, or a person. columns: those that there are, which decide where a name ends in a number.

        Raises UsageError for a number of words that is none from 1.
        """
        column, colon, words = text.rpartition(":")
        if columns is not None and column not in columns and text in columns:
            return cls(text)
        if colon and words.isascii() and words.isdigit():
            if not 1 <= int(words[:9]) <= MOST_WORDS:
                raise UsageError(f"field {text!r}: after the colon comes how many words are kept, such as title:16")
            return cls(column, int(words))
        if colon and columns is not None and text not in columns and column in columns:
            raise UsageError(f"field {text!r}: after the colon comes how many words are kept, such as title:16")
        return cls(text)


Fields = Sequence[str | Field] | None


def choose_fields(schema: pa.Schema, fields: Fields = None) -> tuple[Field, ...]:
    """The fields given, or else every column of words (`MOST_FIELDS` at most), title, brand, category first, descriptions last.

    Raises UsageError for a column that is not there, for a limit that is no number from 1, and for more fields than are read.
    """
    if fields is None:
        names = _order([name for name in schema.names if _speaks(schema.field(name))])
        return tuple(map(Field, names[:MOST_FIELDS]))
    if len(fields) > MOST_FIELDS:
        raise UsageError(f"{len(fields)} fields are named; at most {MOST_FIELDS} are read")
    chosen = []
    for field in fields:
        if isinstance(field, str):
            field = Field.read(field if field in schema.names else field.strip(), schema.names)
        if field.column not in schema.names:
            raise UsageError(
                f"there is no column {field.column!r} in the catalogue, which has {', '.join(schema.names)}"
            )
        chosen.append(field)
    if len({field.column for field in chosen}) < len(chosen):
        raise UsageError("name each field once")
    return tuple(chosen)


def fields_elsewhere(schema: pa.Schema, named: Sequence[str], count: int) -> tuple[Field, ...]:
    """The fields that a model reads of a catalogue that it is not for: those `named`, where it has them all, else as many of its
    own as are read at most."""
    if named and {Field.read(field, schema.names).column for field in named} <= set(schema.names):
        return choose_fields(schema, named)
    return choose_fields(schema)[:count]


def attributes(items: pa.Table, fields: Fields = None) -> list[list[tuple[str, str]]]:
    """Key and value of every attribute that an item has, in the order of the fields; one list per row of `items`.

    A title that is the item's id stands in for one that is not there, and says nothing."""
    chosen = choose_fields(items.schema, fields)
    ids = items["item_id"].to_pylist() if "item_id" in items.schema.names else [None] * items.num_rows
    pairs: list[list[tuple[str, str]]] = [[] for _ in range(items.num_rows)]
    for field in chosen:
        for row, value, item_id in zip(pairs, items[field.column].to_pylist(), ids, strict=True):
            text = shorten(plain(value), field.words)
            if text and not (field.column == "title" and value == item_id):
                row.append((field.key, text))
    return pairs


def keys_of(attributes: Sequence[Sequence[tuple[str, str]]], fields: Collection[str]) -> list[str]:
    """The keys of the attributes that `fields`, names of columns, have; of all where these are none. attributes: of every item.
    Raises ValueError where no item has one of them."""
    there = dict.fromkeys(key for pairs in attributes for key, _ in pairs)
    keys = [Field(field).key for field in fields]
    for missing in set(keys) - there.keys():
        raise ValueError(f"model.fields: no item has an attribute {missing!r}")
    return keys or list(there)


def texts(items: pa.Table, fields: Fields = None) -> list[str]:
    """One text per row of `items`: the first field bare, the others as "key: value"; "" for an item without any words."""
    chosen = choose_fields(items.schema, fields)
    first = chosen[0].key if chosen else ""
    return [joined(pairs, first) for pairs in attributes(items, chosen)]


def joined(pairs: Iterable[tuple[str, str]], first: str) -> str:
    """Attributes as one text: the one whose key is `first` bare, the others as "key: value"."""
    return SEPARATOR.join(value if key == first else f"{key}: {value}" for key, value in pairs)


def plain(value: Any) -> str:
    """A value as one line of text: lists joined by commas, without control characters, in Unicode's composed form (NFC)."""
    if value is None or value != value:  # null, NaN
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(plain, value)))
    if isinstance(value, dict):
        return ", ".join(filter(None, (plain(part) for part in value.values())))
    if isinstance(value, bytes):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime.datetime | datetime.date):
        value = value.isoformat()
    text = unicodedata.normalize("NFC", str(value))
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text).split())


def shorten(text: str, words: int) -> str:
    """The first `words` words of a line, in at most 8 characters a word and never cut within a word that has spaces around it."""
    matches = list(re.finditer(r"\S+", text))
    if len(matches) > words:
        text = text[: matches[words - 1].end()]
    limit = max(1, words * CHARACTERS // WORDS)
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", 0, limit + 1)
    return text[: cut if cut > limit // 2 else limit].rstrip()


def _speaks(field: pa.Field) -> bool:
    kind = field.type
    if field.name.lower() in _NOT_WORDS:
        return False
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind)) and field.name.lower() in _NUMBERS


def _order(names: list[str]) -> list[str]:
    def rank(name: str) -> int:
        low = name.lower()
        if any(low.startswith(word) for word in _LAST):
            return len(_FIRST) + 1
        return next((place for place, word in enumerate(_FIRST) if low.startswith(word)), len(_FIRST))

    return sorted(names, key=rank)
