"""The columns of a catalogue as people think of them: which hold several values, which is the series, what to call them.

Catalogues come as they are: "Horror, Mystery" in one, ["Horror", "Mystery"] in another. `tidied` makes lists of both.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.bundle.tables import is_text
from engine.tabular.columns import RESERVED

EXACT = 2**53
"""Whole numbers up to here are floats, and numbers of JavaScript, of their own."""

# Columns whose texts are lists whatever stands between the values; other texts are split at | alone.
_LISTS = {
    "actors", "artists", "authors", "cast", "categories", "countries", "director", "directors", "genre", "genres",
    "keywords", "languages", "moods", "performers", "styles", "subjects", "tags", "themes", "topics", "writers",
}  # fmt: skip
_SERIES = ("franchise", "series", "saga", "collection")
_PLACES = ("order", "index", "number", "part", "volume", "position")
PROSE = ("description", "summary", "overview", "synopsis", "plot", "abstract", "about")
_PART_OF_NAME = re.compile(r"(?i)(jr|sr|inc|ltd|co|ii|iii|iv|m\.?d|ph\.?d)\.?")
_LONGEST = 60  # characters of a value of a list; longer ones are prose


def tidied(items: pa.Table) -> pa.Table:
    """The same table with texts that are lists as lists: "Horror, Mystery" → ["Horror", "Mystery"]."""
    for index, field in enumerate(items.schema):
        if field.name in RESERVED or field.name in PROSE or not is_text(field.type):
            continue
        split = _split(items[field.name], field.name.casefold() in _LISTS)
        if split is not None:
            items = items.set_column(index, field.name, split)
    return items


def caption(name: str) -> str:
    """What to call a column: franchise_order → Franchise order. Underscores at its end stay: they tell it from another one."""
    bare = name.rstrip("_")
    words = bare.replace("_", " ").strip()
    return words[:1].upper() + words[1:] + name[len(bare) :] if words else name


def prose(items: pa.Table) -> str | None:
    """The column that describes an item in sentences."""
    return next((name for name in PROSE if name in items.column_names and is_text(items[name].type)), None)


def series(items: pa.Table) -> tuple[str, str | None] | None:
    """(column that names the series an item belongs to, column of its place there or None); None without such a column."""
    for name in _SERIES:
        if name in items.column_names and is_text(items[name].type):
            order = (f"{name}_{place}" for place in _PLACES)
            return name, next((column for column in order if column in items.column_names), None)
    return None


def numbers(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """A column of numbers, NaN where there is none. Whole ones beyond `EXACT`, such as ids of messages, are rounded."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def is_year(name: str, low: float, high: float) -> bool:
    """Whether a column of numbers holds years."""
    return (name.casefold() == "year" or name.casefold().endswith(("_year", " year"))) and 1000 <= low <= high <= 2500


def names_items(name: str) -> bool:
    """Whether a column only numbers or names the items: not worth a filter or a colour."""
    return name.casefold() in ("id", "asin", "isbn", "url", "link", "imdb", "tmdb") or name.casefold().endswith("_id")


def is_place(name: str) -> bool:
    """Whether a column numbers the items of a series."""
    return any(name == f"{of}_{place}" for of in _SERIES for place in _PLACES)


def _split(column: pa.ChunkedArray, is_list: bool) -> pa.ChunkedArray | None:
    """The values as lists; None where they are no lists."""
    for separator in ("|", ";", ",") if is_list else ("|",):
        if pc.any(pc.match_substring(column, separator)).as_py():
            break
    else:
        return None
    kind, chunks = pa.list_(pa.string()), []
    for chunk in column.chunks:  # a large catalogue has many: never all its values at once
        values = [_parts(value, separator) for value in chunk.to_pylist()]
        if any(len(part) > _LONGEST for parts in values for part in parts):
            return None
        chunks.append(pa.array(values, kind))
    return pa.chunked_array(chunks, kind)


def _parts(value: str | None, separator: str) -> list[str]:
    parts = [part.strip() for part in (value or "").split(separator)]
    if separator == "," and any(_PART_OF_NAME.fullmatch(part) for part in parts[1:]):
        return [value.strip()] if value else []
    return list(dict.fromkeys(part for part in parts if part))
