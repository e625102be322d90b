"""The columns of a catalogue as people think of them: which hold several values, which is the series, what to call them, and by
which of them, and how, items are filtered.

Catalogues come as they are: "Horror, Mystery" in one, ["Horror", "Mystery"] in another. `tidied` makes lists of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.bundle.tables import is_list, is_number, is_text
from engine.tabular.columns import RESERVED

if TYPE_CHECKING:
    import duckdb

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


# --- to filter by: their values, or their range; filters as SQL


MAX_DISTINCT = 1_000  # distinct values of an attribute that can be filtered by


@dataclass(frozen=True)
class Among:
    """Items that have at least one of these values."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Between:
    """Items whose number lies in this range, its ends included; None: open."""

    low: float | None = None
    high: float | None = None


Filters = Mapping[str, Among | Between]
Values = dict[str, Any]
"""Of the parameters of a question to the database, by their names."""


@dataclass(frozen=True)
class Facet:
    """An attribute to filter by."""

    name: str
    kind: Literal["tags", "category", "range", "none"]
    """tags: several values per item; category: one; range: a number; none: cannot be filtered by, `reason` says why."""
    values: tuple[tuple[str, int], ...] = ()
    """(value, items), the most frequent first; for tags and category."""
    low: float | None = None
    high: float | None = None
    missing: int = 0
    """Items without a value."""
    reason: str | None = None


def conditions(filters: Filters, kinds: Mapping[str, str]) -> tuple[list[str], Values]:
    """Conditions that items match which pass every filter, and their values. kinds: attribute → kind of its facet."""
    clauses: list[str] = []
    values: Values = {}
    for number, (name, filter_) in enumerate(filters.items()):
        column, value = quoted(name), f"f{number}"
        allowed = kinds.get(name, "range" if name == "popularity" else "none")
        if isinstance(filter_, Between) and allowed == "range":
            for sign, end in ((">=", filter_.low), ("<=", filter_.high)):
                if end is not None:
                    key = f"{value}_{len(clauses)}"
                    clauses.append(f"{column} {sign} ${key}")
                    values[key] = end
        elif isinstance(filter_, Among) and allowed in ("tags", "category"):
            if filter_.values:
                some = f"list_has_any({column}::varchar[], ${value}::varchar[])"
                single = f"list_contains(${value}::varchar[], {column}::varchar)"
                clauses.append(some if allowed == "tags" else single)
                values[value] = list(filter_.values)
        else:
            raise ValueError(f"cannot filter {name!r} by {type(filter_).__name__}")
    return clauses, values


def facets_of(con: duckdb.DuckDBPyConnection, items: pa.Table) -> list[Facet]:
    return [_facet(con, field) for field in items.schema if field.name not in RESERVED]


def _facet(con: duckdb.DuckDBPyConnection, field: pa.Field) -> Facet:
    name, column, kind = field.name, quoted(field.name), field.type
    if is_list(kind):
        return _valued(con, name, "tags", f"unnest(list_distinct({column}))", f"{column} is null or len({column}) = 0")
    if is_number(kind):
        ((low, high, missing),) = con.execute(
            f"select min({column}), max({column}), count(*) - count({column}) from catalogue"
        ).fetchall()
        if low is None:
            return Facet(name, "none", missing=missing, reason="No item has a value.")
        if max(abs(low), abs(high)) > EXACT:
            reason = f"Its numbers go beyond {EXACT:,}, as ids do. Write them as texts to choose from them."
            return Facet(name, "none", missing=missing, reason=reason)
        return Facet(name, "range", low=low, high=high, missing=missing)
    return _valued(con, name, "category", column, f"{column} is null or {column}::varchar = ''")


def _valued(
    con: duckdb.DuckDBPyConnection, name: str, kind: Literal["tags", "category"], value: str, empty: str
) -> Facet:
    some = f"from (select {value}::varchar as value from catalogue) where value is not null and value != ''"
    ((distinct,),) = con.execute(f"select count(distinct value) {some}").fetchall()
    ((missing,),) = con.execute(f"select count(*) from catalogue where {empty}").fetchall()
    if not distinct:
        return Facet(name, "none", missing=missing, reason="No item has a value.")
    if distinct > MAX_DISTINCT:
        reason = f"{distinct:,} distinct values; at most {MAX_DISTINCT:,} can be chosen from. Search for them instead."
        return Facet(name, "none", missing=missing, reason=reason)
    rows = con.execute(f"select value, count(*) as items {some} group by value order by items desc, value").fetchall()
    return Facet(name, kind, values=tuple((value, items) for value, items in rows), missing=missing)


def column(name: str) -> str:
    return f"c_{name}"  # the table's own columns (folded, words) are thus never an attribute's


def quoted(name: str) -> str:
    return '"' + column(name).replace('"', '""') + '"'
