"""A dataset's items in a small database: searched, filtered, counted and paged. Safe to ask from many threads at once.

    catalogue = Catalogue(zoo.items)
    for hit in catalogue.search("emprie strikes"):
        print(hit.title)
    page = catalogue.page("star", {"genres": Among(("Sci-Fi",)), "year": Between(1970, 1990)}, sort="year", limit=20)

The database lives in memory and is locked: it reads no files, loads no extensions, and its settings cannot be changed. Values
are bound; names of columns come from the table alone. One connection, a cursor per question: DuckDB answers wrongly, without
an error, where threads share a connection.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import duckdb
import pyarrow as pa

MAX_QUERY = 200  # characters of a search
MAX_TOKENS = 8
MAX_LIMIT = 1_000
MAX_VALUES = 1_000  # distinct values of an attribute that can be filtered by
_OWN = ("item", "item_id", "title", "popularity")
_WORD = re.compile(r"[^\W_]+")
_LIKENESS = 0.86  # Jaro–Winkler similarity from which two words are taken for the same, mistyped


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


class Hit(NamedTuple):
    """An item that a search found."""

    item: int
    item_id: str
    title: str
    how: Literal["prefix", "word", "inside", "words", "similar"]
    """How it matches: the title begins so, a word does, it stands inside, all words are there, or similar ones."""


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


class Page(NamedTuple):
    """Some of the items that match."""

    rows: pa.Table
    """item, item_id, title, popularity, then the attributes."""
    total: int
    """How many match in all."""


class Catalogue:
    """See the module. `facets`: one per attribute, in the order of the columns."""

    def __init__(self, items: pa.Table) -> None:
        self._con = _connect()
        self.columns = tuple(items.column_names)
        titles = items["title"].to_pylist()
        folded = [fold(title) for title in titles]
        extra = {"folded": pa.array(folded), "words": pa.array([" " + " ".join(_WORD.findall(text)) for text in folded])}
        table = items.rename_columns([_column(name) for name in items.column_names])
        for name, values in extra.items():
            table = table.append_column(f"_{name}", values)
        self._load(table)
        self.facets = tuple(self._facet(field) for field in items.schema if field.name not in _OWN)
        self._kinds = {facet.name: facet.kind for facet in self.facets}
        _lock(self._con)

    def close(self) -> None:
        self._con.close()

    # --- searching

    def search(self, text: str, limit: int = 20, exclude: Sequence[int] = ()) -> list[Hit]:
        """The best matches: what begins with the text, has a word that does, holds it, has all its words, then similar ones.

        Upper case, accents and apostrophes do not matter; within one kind of match the more popular item is first.
        """
        found = self._matches(text)
        if found is None:
            return []
        sql, values = found
        rows = self._ask(
            f"""with matches as ({sql})
            select c_item, c_item_id, c_title, kind from matches join catalogue using (c_item)
            where not list_contains($exclude::int[], c_item)
            order by kind, likeness desc, c_popularity desc, length(_folded), c_item limit $limit""",
            {**values, "exclude": list(exclude), "limit": _bounded(limit)},
        ).fetchall()
        kinds: tuple[Literal["prefix", "word", "inside", "words", "similar"], ...]
        kinds = ("prefix", "word", "inside", "words", "similar")
        return [Hit(item, item_id, title, kinds[kind]) for item, item_id, title, kind in rows]

    def page(
        self,
        text: str = "",
        filters: Filters | None = None,
        *,
        sort: str = "relevance",
        descending: bool = True,
        limit: int = 20,
        offset: int = 0,
    ) -> Page:
        """Items that match the text and every filter. sort: "relevance" (popularity where there is no text) or a column."""
        source, where, values = self._where(text, filters or {})
        if sort == "relevance":
            order = "kind, likeness desc, c_popularity desc" if source else "c_popularity desc"
        elif sort in self.columns and self._kinds.get(sort) != "tags":
            order = f"{_quoted(sort)} {'desc' if descending else 'asc'} nulls last"
        else:
            raise ValueError(f"cannot sort by {sort!r}")
        join = f"with matches as ({source}) select * from matches join catalogue using (c_item)" if source else "from catalogue"
        shown = ", ".join(_quoted(name) for name in self.columns)
        with self._con.cursor() as cursor:
            total = cursor.execute(f"select count(*) from ({join}) where {where}", values).fetchone()
            rows = cursor.execute(
                f"select {shown} from ({join}) where {where} order by {order}, c_item limit $limit offset $offset",
                {**values, "limit": _bounded(limit), "offset": max(0, int(offset))},
            ).to_arrow_table()
        return Page(rows.rename_columns(list(self.columns)), int(total[0]) if total else 0)

    def counts(self, name: str, text: str = "", filters: Filters | None = None) -> list[tuple[str, int]]:
        """(value, items) of one attribute among the items that match, the most frequent first.

        A filter on the attribute itself does not count, so that its other values can be seen.
        """
        kind = self._kinds.get(name)
        if kind not in ("tags", "category"):
            raise ValueError(f"{name!r} has no values to count")
        source, where, values = self._where(text, {key: one for key, one in (filters or {}).items() if key != name})
        join = f"with matches as ({source}) select * from matches join catalogue using (c_item)" if source else "from catalogue"
        value = f"unnest({_quoted(name)})" if kind == "tags" else _quoted(name)
        rows = self._ask(
            f"""select value, count(*) as items from (select {value}::varchar as value from ({join}) where {where})
            where value is not null group by value order by items desc, value limit {MAX_VALUES}""",
            values,
        ).fetchall()
        return [(value, items) for value, items in rows]

    # --- inside

    def _ask(self, sql: str, values: Mapping[str, Any] | None = None) -> _Answer:
        with self._con.cursor() as cursor:
            return _Answer(cursor.execute(sql, dict(values or {})).fetchall())

    def _where(self, text: str, filters: Filters) -> tuple[str, str, dict[str, Any]]:
        """(a select of matches, or "" where there is no text; the filters as a condition; the values of both)"""
        found = self._matches(text)
        source, values = found if found else ("", {})
        if found is None and text.strip():
            return "", "false", {}
        conditions = ["true"]
        for place, (name, wanted) in enumerate(filters.items()):
            kind = self._kinds.get(name, "range" if name == "popularity" else None)
            column, value = _quoted(name), f"f{place}"
            if isinstance(wanted, Between) and kind == "range":
                for sign, end in ((">=", wanted.low), ("<=", wanted.high)):
                    if end is not None:
                        key = value + ("low" if sign == ">=" else "high")
                        conditions.append(f"{column} {sign} ${key}")
                        values[key] = end
            elif isinstance(wanted, Among) and kind in ("tags", "category"):
                if wanted.values:
                    has = f"list_has_any({column}::varchar[], ${value}::varchar[])"
                    one = f"list_contains(${value}::varchar[], {column}::varchar)"
                    conditions.append(has if kind == "tags" else one)
                    values[value] = list(wanted.values)
            else:
                raise ValueError(f"cannot filter {name!r} by {type(wanted).__name__}")
        return source, " and ".join(conditions), values

    def _matches(self, text: str) -> tuple[str, dict[str, Any]] | None:
        """(a select of c_item, kind (0 is best), likeness; its values); None where there is nothing to look for."""
        whole = fold(text[:MAX_QUERY])
        tokens = list(dict.fromkeys(_WORD.findall(whole)))[:MAX_TOKENS]
        if not whole:
            return None
        whole_sql = """
            select c_item, case when starts_with(_folded, $whole) then 0
                                when contains(_words, ' ' || $words) then 1 else 2 end as kind, 1.0 as likeness
            from catalogue where contains(_folded, $whole) or contains(_words, ' ' || $words)"""
        values: dict[str, Any] = {"whole": whole, "words": " ".join(tokens) or whole}
        if not tokens:  # signs alone
            return whole_sql, values
        # Each word of the search against each word that any title has, then the titles that have a match for all of them.
        values.update(tokens=tokens, likeness=_LIKENESS)
        return (
            f"""
            with asked as (select unnest($tokens::varchar[]) as token),
            close as (
                select token, word_id, starts_with(word, token) as exact,
                       case when word = token then 1.0 when starts_with(word, token) then 0.97
                            else jaro_winkler_similarity(word, token)
                       end as likeness
                from asked join vocabulary on
                    starts_with(word, token)
                    or (length(token) > 2 and abs(length(word) - length(token)) <= 2 and (
                        jaro_winkler_similarity(word, token, $likeness) >= $likeness
                        or (length(token) > 3 and damerau_levenshtein(word, token) <= 1)))
            ),
            per_token as (
                select c_item, token, max(exact) as exact, max(likeness) as likeness
                from close join postings using (word_id) group by all
            ),
            loose as (
                select c_item, case when bool_and(exact) then 3 else 4 end as kind, avg(likeness) as likeness
                from per_token group by c_item having count(*) = len($tokens)
            ),
            whole as ({whole_sql})
            select c_item, min(kind) as kind, max(likeness) as likeness
            from (from whole union all by name from loose) group by c_item""",
            values,
        )

    def _load(self, table: pa.Table) -> None:
        with self._con.cursor() as cursor:
            cursor.register("incoming", table)
            cursor.execute("create table catalogue as select * from incoming order by c_item")
            cursor.unregister("incoming")
            cursor.execute(
                """create table vocabulary as
                select row_number() over () as word_id, word
                from (select distinct unnest(string_split(trim(_words), ' ')) as word from catalogue) where word != '';
                create table postings as
                select distinct word_id, c_item from (select c_item, unnest(string_split(trim(_words), ' ')) as word from catalogue)
                join vocabulary using (word)"""
            )

    def _facet(self, field: pa.Field) -> Facet:
        name, column, kind = field.name, _quoted(field.name), field.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            empty = f"{column} is null or len({column}) = 0"
            return self._valued(name, "tags", f"unnest({column})", empty)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            found = self._ask(f"select min({column}), max({column}), count(*) - count({column}) from catalogue").first
            low, high, missing = found
            if low is None:
                return Facet(name, "none", missing=missing, reason="No item has a value.")
            return Facet(name, "range", low=low, high=high, missing=missing)
        return self._valued(name, "category", column, f"{column} is null or {column}::varchar = ''")

    def _valued(self, name: str, kind: Literal["tags", "category"], value: str, empty: str) -> Facet:
        rows = self._ask(
            f"""select value, count(*) as items from (select {value}::varchar as value from catalogue)
            where value is not null and value != '' group by value order by items desc, value"""
        ).fetchall()
        missing = self._ask(f"select count(*) from catalogue where {empty}").first[0]
        if not rows:
            return Facet(name, "none", missing=missing, reason="No item has a value.")
        if len(rows) > MAX_VALUES:
            reason = f"{len(rows):,} distinct values; at most {MAX_VALUES:,} can be chosen from. Search for them instead."
            return Facet(name, "none", missing=missing, reason=reason)
        return Facet(name, kind, values=tuple((value, items) for value, items in rows), missing=missing)


class _Answer(NamedTuple):
    """Rows, fetched whole: the cursor is closed by the time they are read."""

    rows: list[tuple[Any, ...]]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows

    @property
    def first(self) -> tuple[Any, ...]:
        return self.rows[0]


def fold(text: str) -> str:
    """Text as it is compared: lower case, without accents, apostrophes and double spaces, in any script."""
    apart = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(c for c in apart if not unicodedata.combining(c) and c not in "'’‘`´")
    return " ".join(unicodedata.normalize("NFC", plain).split())


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        ":memory:",
        config={
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": "",
            "memory_limit": "512MB",
            "threads": "2",
        },
    )


def _lock(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("set allowed_directories = []; set enable_external_access = false")
    con.execute("set python_enable_replacements = false")
    con.execute("set lock_configuration = true")


def _column(name: str) -> str:
    return f"c_{name}"  # the table's own columns (_folded, kind, …) are thus never an attribute's


def _quoted(name: str) -> str:
    return '"' + _column(name).replace('"', '""') + '"'


def _bounded(limit: int) -> int:
    return min(max(0, int(limit)), MAX_LIMIT)
