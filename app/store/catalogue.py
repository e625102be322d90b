"""A dataset's items in a small database: searched, filtered, counted and paged. Safe to ask from many threads at once.

    catalogue = Catalogue(zoo.items)
    for hit in catalogue.search("empire strikes"):  # in titles; everywhere=True: in attributes, too
        print(hit.title)
    catalogue.meant("kubrik")  # "kubrick": nothing matches the other to the letter
    page = catalogue.page("kubrick space", {"genres": Among(("Sci-Fi",)), "year": Between(1970, 1990)}, sort="year", limit=20)

The database of few items lives in memory, that of many in a file (`write`, `open`). It is locked: it reads no other files, loads
no extensions, and its settings cannot be changed. Values are bound; names of columns come from the table alone. One connection,
a cursor per question: DuckDB answers wrongly, without an error, where threads share a connection.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import duckdb
import pyarrow as pa

from app.store.attributes import EXACT, PROSE, is_year, names_items, tidied
from app.text import MAX_QUERY, WORD, fold, spaced, title_words, words_and_numbers, words_of
from engine.bundle.items import mapped, rows
from engine.errors import SeqscopeError

MAX_LIMIT = 1_000
MAX_VALUES = 1_000  # distinct values of an attribute that can be filtered by
_OWN = ("item", "item_id", "title", "popularity")
_NEAR = 4  # words that a mistyped one is taken for
_READINGS = 8  # of a mistyped text that are tried
_READ = 4_000  # characters of an attribute that are searched
_HELD = 8  # times the bytes of the items: as they are, folded, and as words
_PART = 1 << 14  # items whose texts are folded at a time
DATABASE, LISTS, FACETS, SPILL = "search.duckdb", "lists.arrow", "facets.json", "spill"
"""Files of a database on the disk."""
BUFFERS = 64 << 20
"""Bytes of such a database that are held in memory."""


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
How = Literal["prefix", "word", "inside", "words", "facts", "prose"]
_KINDS: tuple[How, ...] = ("prefix", "word", "inside", "words", "facts", "prose")


class Hit(NamedTuple):
    """An item that a search found."""

    item: int
    item_id: str
    title: str
    how: How
    """How it matches: the title begins so, a word does, it stands inside, all words are there; with short attributes, or with
    prose, they are."""


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
    """See the module. `facets`: one per attribute, in the order of the columns. `searched`: the attributes that `page` reads.
    `items`: the table with lists in place of texts that are lists. `memory`: bytes that it takes at most, about. `damaged`: its
    file turned out to be damaged and was deleted; every question fails."""

    def __init__(self, items: pa.Table) -> None:
        """In memory."""
        items = tidied(items)
        con = _connect(":memory:", "")
        _fill(con, items)
        self._become(con, items, _facets(con, items), _HELD * items.nbytes)

    @classmethod
    def write(cls, items: pa.Table, folder: Path) -> None:
        """Writes the database of many items into a folder, for `open`. It takes up to half a gigabyte of memory."""
        tidy = tidied(items)
        con = _connect(str(folder / DATABASE), str(folder / SPILL))
        try:
            _fill(con, tidy)
            facets = _facets(con, tidy)
        finally:
            con.close()
        lists = tidy.select([name for name in tidy.column_names if tidy[name].type != items[name].type])
        with pa.ipc.new_file(folder / LISTS, lists.schema) as writer:
            writer.write_table(lists)
        (folder / FACETS).write_text(json.dumps([vars(facet) for facet in facets]), "utf-8")

    @classmethod
    def open(cls, items: pa.Table, folder: Path) -> Catalogue:
        """The database that `write` wrote, read as it is needed, with little memory. items: the same table.

        Raises duckdb.Error, OSError, ValueError or TypeError (KeyError and pa.ArrowException are such) where it is damaged.
        """
        facets = [
            Facet(**fields | {"values": tuple(map(tuple, fields["values"]))})
            for fields in json.loads((folder / FACETS).read_text("utf-8"))
        ]
        lists = mapped(folder / LISTS)
        for name in lists.column_names:
            items = items.set_column(items.column_names.index(name), name, lists[name])
        # DuckDB makes this folder when it needs it, and takes it away at the end
        spill = str(folder / f"{SPILL}-{secrets.token_hex(8)}")
        con = _connect(str(folder / DATABASE), spill, read_only=True)
        catalogue = cls.__new__(cls)
        catalogue._become(con, items, facets, 2 * BUFFERS + 20 * len(items), folder / DATABASE)
        if catalogue._ask("select count(*) from catalogue") != [(len(items),)]:
            raise ValueError(f"{DATABASE} has not the {len(items):,} items")
        return catalogue

    def _become(
        self,
        con: duckdb.DuckDBPyConnection,
        items: pa.Table,
        facets: Sequence[Facet],
        memory: int,
        file: Path | None = None,
    ) -> None:
        _lock(con)
        self._file, self.memory, self.damaged = file, memory, False
        self._con, self.items, self.facets = con, items, tuple(facets)
        self.columns = tuple(items.column_names)
        self.searched = searched(items)
        self._kinds = {facet.name: facet.kind for facet in facets}

    # --- searching

    def search(self, text: str, limit: int = 20, exclude: Sequence[int] = (), *, everywhere: bool = False) -> list[Hit]:
        """The best titles: what begins with the text, has a word that does, holds it, then what has all its words.

        Upper case, accents and apostrophes do not matter, numbers are the same as words, digits and Roman numerals, and a title's
        year counts as a word of it; within one kind of match the more popular item is first. everywhere: items whose attributes
        have the words come after all titles that do.
        """
        query = _Query.read(text)
        if query is None:
            return []
        limit = _bounded(limit)
        rows = self._matches(query, query.title, exclude, limit)
        if everywhere and len(rows) < limit:  # a title or two letters of it are the rule, and found sooner alone
            rows += self._matches(query, f"{query.anything} and not {query.title}", exclude, limit - len(rows))
        return [Hit(item, item_id, title, _KINDS[kind]) for item, item_id, title, kind in rows]

    def meant(self, text: str) -> str:
        """The text itself where an item matches it to the letter, or none matches anything near it; else the nearest text that
        one matches: with blanks elsewhere, or with words that are a letter or two from these, in a title rather than in an
        attribute."""
        query = _Query.read(text)
        if query is None or self._match(query) is not None:
            return text
        return self._spaced_otherwise("".join(query.tokens)) or self._corrected(query.tokens) or text

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
        """Items that match the text and every filter. sort: "relevance" (popularity where there is no text) or a column.

        Every word of the text begins one of the title or of an attribute (`searched`): the best titles come first, as in
        `search`, then what matches by short attributes, then by prose.
        """
        where, values, kind = self._where(text, filters or {})
        if sort == "relevance":
            order = "c_popularity desc" if kind == "0" else f"{kind}, c_popularity desc"
        elif sort in self.columns and self._kinds.get(sort) != "tags":
            order = f"{_quoted(sort)} {'desc' if descending else 'asc'} nulls last"
        else:
            raise ValueError(f"cannot sort by {sort!r}")
        bounds = {"limit": _bounded(limit), "offset": max(0, int(offset))}
        # the numbers alone: sorting whole rows, with their texts, would take much memory where there are many
        sql = f"select c_item from catalogue where {where} order by {order}, c_item limit $limit offset $offset"
        chosen = [item for (item,) in self._ask(sql, {**values, **bounds})]
        total = self._ask(f"select count(*) from catalogue where {where}", values)[0][0]
        return Page(self.rows(chosen), int(total))

    def counts(self, name: str, text: str = "", filters: Filters | None = None) -> list[tuple[str, int]]:
        """(value, items) of one attribute among the items that match, the most frequent first.

        A filter on the attribute itself does not count, so that its other values can be seen.
        """
        kind = self._kinds.get(name)
        if kind not in ("tags", "category"):
            raise ValueError(f"{name!r} has no values to count")
        where, values, _ = self._where(text, {key: filter_ for key, filter_ in (filters or {}).items() if key != name})
        value = f"unnest({_quoted(name)})" if kind == "tags" else _quoted(name)
        rows = self._ask(
            f"""select value, count(*) as items from (select {value}::varchar as value from catalogue where {where})
            where value is not null and value != '' group by value order by items desc, value limit {MAX_VALUES}""",
            values,
        )
        return [(value, items) for value, items in rows]

    def steps(self, name: str, width: float, text: str = "", filters: Filters | None = None) -> list[tuple[float, int]]:
        """(start, items) of every step of that width that holds items, ascending: decades of a year, say.

        As with `counts`, a filter on the attribute itself does not count.
        """
        if self._kinds.get(name) != "range" or not width > 0:
            raise ValueError(f"{name!r} has no steps of {width}")
        where, values, _ = self._where(text, {key: filter_ for key, filter_ in (filters or {}).items() if key != name})
        rows = self._ask(
            f"""select floor({_quoted(name)} / $width) * $width as step, count(*) from catalogue
            where {where} and {_quoted(name)} is not null group by step order by step""",
            {**values, "width": width},
        )
        return [(float(step), items) for step, items in rows]

    def rows(self, items: Sequence[int]) -> pa.Table:
        """The items of these numbers, in their order."""
        return rows(self.items, items)

    # --- inside

    def _matches(self, query: _Query, condition: str, exclude: Sequence[int], limit: int) -> list[tuple[Any, ...]]:
        """(item, item_id, title, place in `_KINDS`) of the best."""
        return self._ask(
            f"""select c_item, c_item_id, c_title, {query.kind} as kind from catalogue
            where {condition} and not list_contains($exclude::int[], c_item)
            order by kind, c_popularity desc, length(folded), c_item limit $limit""",
            {**query.values, "exclude": list(exclude), "limit": limit},
        )

    def _ask(self, sql: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        try:
            with self._con.cursor() as cursor:
                return cursor.execute(sql, values or {}).fetchall()
        except duckdb.Error as error:  # DuckDB compares a block's checksum when it reads the block
            if self._file is None or "Corrupt database" not in str(error):
                raise
            self.damaged = True
            self._file.unlink(missing_ok=True)
            self._con.close()
            raise SeqscopeError(
                "What was prepared of the catalogue is damaged. Open the page again: it is made anew."
            ) from error

    def _where(self, text: str, filters: Filters) -> tuple[str, Values, str]:
        """(condition, its values, an expression that sorts the better matches first)"""
        conditions, kind = ["true"], "0"
        values: Values = {}
        query = _Query.read(text)
        if query is not None:
            conditions, values, kind = [query.anything], dict(query.values), query.kind
        for number, (name, filter_) in enumerate(filters.items()):
            column, value = _quoted(name), f"f{number}"
            allowed = self._kinds.get(name, "range" if name == "popularity" else "none")
            if isinstance(filter_, Between) and allowed == "range":
                for sign, end in ((">=", filter_.low), ("<=", filter_.high)):
                    if end is not None:
                        key = f"{value}_{len(conditions)}"
                        conditions.append(f"{column} {sign} ${key}")
                        values[key] = end
            elif isinstance(filter_, Among) and allowed in ("tags", "category"):
                if filter_.values:
                    some = f"list_has_any({column}::varchar[], ${value}::varchar[])"
                    single = f"list_contains(${value}::varchar[], {column}::varchar)"
                    conditions.append(some if allowed == "tags" else single)
                    values[value] = list(filter_.values)
            else:
                raise ValueError(f"cannot filter {name!r} by {type(filter_).__name__}")
        return " and ".join(conditions), values, kind

    def _match(self, query: _Query) -> Literal["title", "attributes"] | None:
        """By what an item matches, by its title where one does."""
        for condition, by in ((query.title, "title"), (query.anything, "attributes")):
            if self._ask(f"select 1 from catalogue where {condition} limit 1", query.values):
                return by  # type: ignore[return-value]
        return None

    def _spaced_otherwise(self, letters: str) -> str | None:
        """The beginning of a title, or of some of its words, that has these letters: "star wars"."""
        if len(letters) < 5:
            return None
        titles = self._ask(
            """select words from catalogue where contains(replace(words, ' ', ''), $letters)
            order by c_popularity desc, c_item limit 20""",
            {"letters": letters},
        )
        for (title,) in titles:
            words = title.split()
            for first in range(len(words)):
                for end in range(first + 1, len(words) + 1):
                    if "".join(words[first:end]).startswith(letters):
                        return " ".join(words[first:end])
        return None

    def _corrected(self, tokens: Sequence[str]) -> str | None:
        """The text with its mistyped words replaced."""
        near = [self._ask(_NEAR_WORDS, {"token": token, "wrong": min(2, len(token) // 3)}) for token in tokens]
        readings = sorted(product(*near), key=lambda words: sum(distance for _, distance in words))
        of_attributes: tuple[int, str] | None = None
        for words in readings[:_READINGS]:
            wrong, text = sum(distance for _, distance in words), " ".join(word for word, _ in words)
            if of_attributes is not None and wrong > of_attributes[0]:
                break
            query = _Query.read(text)
            by = self._match(query) if wrong and query is not None else None
            if by == "title":
                return text
            if by is not None and of_attributes is None:
                of_attributes = wrong, text
        return of_attributes[1] if of_attributes is not None else None


def _fill(con: duckdb.DuckDBPyConnection, items: pa.Table) -> None:
    """Makes the tables: catalogue, with the texts that are searched beside the columns; vocabulary, the words of those texts."""
    parts = (_texts(part) for part in items.to_batches(max_chunksize=_PART))
    schema = _texts(pa.RecordBatch.from_pylist([], items.schema)).schema
    with con.cursor() as cursor:
        cursor.register("incoming", pa.RecordBatchReader.from_batches(schema, parts))
        cursor.execute("create table catalogue as select * from incoming")
        cursor.unregister("incoming")
        cursor.execute(
            """create table vocabulary as select word, count(*) filter (in_title) as titles, count(*) as times from (
                select unnest(string_split(words, ' ')) as word, true as in_title from catalogue union all
                select unnest(string_split(facts || prose, ' ')), false from catalogue)
            where word != '' group by word order by word"""
        )


def _texts(part: pa.RecordBatch) -> pa.RecordBatch:
    """The columns as the database calls them, then folded, words (of the title), facts, prose (of attributes)."""
    names = searched(part)
    folded = [fold(title) for title in part["title"].to_pylist()]
    years = part["year"].to_pylist() if "year" in part.schema.names else [None] * len(folded)
    texts = {
        "folded": folded,
        "words": [title_words(title, year) for title, year in zip(folded, years, strict=True)],
        "facts": _words(part, [name for name in names if name not in PROSE], words_and_numbers),
        "prose": _words(part, [name for name in names if name in PROSE], spaced),
    }
    part = part.rename_columns([_column(name) for name in part.schema.names])
    for name, values in texts.items():
        part = part.append_column(name, pa.array(values, pa.string()))
    return part


def _facets(con: duckdb.DuckDBPyConnection, items: pa.Table) -> list[Facet]:
    return [_facet(con, field) for field in items.schema if field.name not in _OWN]


def _facet(con: duckdb.DuckDBPyConnection, field: pa.Field) -> Facet:
    name, column, kind = field.name, _quoted(field.name), field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _valued(con, name, "tags", f"unnest({column})", f"{column} is null or len({column}) = 0")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
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


# A word that others begin with stands for itself; words that are as near are told apart by how many titles have them.
_NEAR_WORDS = f"""
    select case when starts_with(word, $token) then $token else word end as near,
           min(case when starts_with(word, $token) then 0 else damerau_levenshtein(word, $token) end)::int as distance
    from vocabulary
    where starts_with(word, $token)
       or (abs(length(word) - length($token)) <= $wrong and damerau_levenshtein(word, $token) <= $wrong)
    group by near order by distance, sum(titles) desc, sum(times) desc, near limit {_NEAR}"""


@dataclass(frozen=True)
class _Query:
    """A search, as SQL: what matches to the letter, and how well."""

    title: str
    anything: str
    """The title, or every word in the title or an attribute."""
    kind: str
    """0 to 3: of the title, a place in `_KINDS`; 4 and 5: by its facts, or by its prose."""
    values: Values
    tokens: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> _Query | None:
        """None where there is nothing to look for."""
        whole = fold(text[:MAX_QUERY])
        tokens = words_of(text)
        if not whole:
            return None
        values: Values = {"whole": whole, "phrase": f" {' '.join(WORD.findall(whole)) or whole}"}
        values.update({f"t{number}": f" {token}" for number, token in enumerate(tokens)})

        def every(*columns: str) -> str:
            conditions = (
                " or ".join(f"contains({column}, $t{number})" for column in columns) for number in range(len(tokens))
            )
            return " and ".join(f"({words})" for words in conditions) or "false"

        kind = f"""case when starts_with(folded, $whole) then 0 when contains(words, $phrase) then 1
                   when contains(folded, $whole) then 2 when {every("words")} then 3
                   when {every("words", "facts")} then 4 else 5 end"""
        title = f"contains(folded, $whole) or contains(words, $phrase) or ({every('words')})"
        return cls(f"({title})", f"({title} or ({every('words', 'facts', 'prose')}))", kind, values, tokens)


def searched(items: pa.Table | pa.RecordBatch) -> list[str]:
    """The attributes that a search looks into: texts, lists of texts and years, but for ids and links."""
    return [
        field.name
        for field in items.schema
        if field.name not in _OWN and not names_items(field.name) and _is_words(field.type, field.name)
    ]


def _is_words(kind: pa.DataType, name: str) -> bool:
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner)) or (
        pa.types.is_integer(kind) and is_year(name, 1_000, 1_000)
    )


def _words(items: pa.RecordBatch, names: Sequence[str], words_in: Callable[[str], str]) -> list[str]:
    """Per item the words of these attributes, each with a blank before it."""
    words = [""] * len(items)
    for name in names:
        for item, value in enumerate(items[name].to_pylist()):
            if value:
                words[item] += words_in((" ".join(map(str, value)) if isinstance(value, list) else str(value))[:_READ])
    return words


def _connect(database: str, spill: str, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """spill: a folder of its own for what does not fit into memory; "": there is none."""
    return duckdb.connect(
        database,
        read_only=read_only,
        config={
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": spill,
            "max_temp_directory_size": "4GB",
            "memory_limit": f"{BUFFERS >> 20}MB" if read_only else "512MB",
            "threads": "2",
        },
    )


def _lock(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("set allowed_directories = []; set enable_external_access = false")
    con.execute("set python_enable_replacements = false")
    con.execute("set lock_configuration = true")


def _column(name: str) -> str:
    return f"c_{name}"  # the table's own columns (folded, words) are thus never an attribute's


def _quoted(name: str) -> str:
    return '"' + _column(name).replace('"', '""') + '"'


def _bounded(limit: int) -> int:
    return min(max(0, int(limit)), MAX_LIMIT)
