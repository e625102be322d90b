"""Attributes to filter by: their values, or their range, and filters as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import pyarrow as pa

from app.store.attributes import EXACT
from engine.bundle.tables import is_list, is_number
from engine.tabular.columns import RESERVED

MAX_VALUES = 1_000  # distinct values of an attribute that can be filtered by


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
    if distinct > MAX_VALUES:
        reason = f"{distinct:,} distinct values; at most {MAX_VALUES:,} can be chosen from. Search for them instead."
        return Facet(name, "none", missing=missing, reason=reason)
    rows = con.execute(f"select value, count(*) as items {some} group by value order by items desc, value").fetchall()
    return Facet(name, kind, values=tuple((value, items) for value, items in rows), missing=missing)


def column(name: str) -> str:
    return f"c_{name}"  # the table's own columns (folded, words) are thus never an attribute's


def quoted(name: str) -> str:
    return '"' + column(name).replace('"', '""') + '"'
