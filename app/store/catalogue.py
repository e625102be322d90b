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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from app.store.attributes import MAX_DISTINCT, Facet, Filters, Values, conditions, facets_of, quoted, tidied
from app.store.search import KINDS, Hit, Query, meant, searched, texts
from engine.bundle.items import mapped, rows
from engine.errors import SeqscopeError
from engine.tabular.database import settings

MAX_LIMIT = 1_000
_HELD = 8  # times the bytes of the items: as they are, folded, and as words
_PART = 1 << 14  # items whose texts are folded at a time
DATABASE, LISTS, FACETS, SPILL = "search.duckdb", "lists.arrow", "facets.json", "spill"
"""Files of a database on the disk."""
BUFFERS = 64 << 20
"""Bytes of such a database that are held in memory."""


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
        con = _connect(":memory:", None)
        _fill(con, items)
        self._become(con, items, facets_of(con, items), _HELD * items.nbytes)

    @classmethod
    def write(cls, items: pa.Table, folder: Path) -> None:
        """Writes the database of many items into a folder, for `open`. It takes up to half a gigabyte of memory."""
        tidy = tidied(items)
        con = _connect(str(folder / DATABASE), folder / SPILL)
        try:
            _fill(con, tidy)
            facets = facets_of(con, tidy)
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
        spill = folder / f"{SPILL}-{secrets.token_hex(8)}"
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
        con.execute("set allowed_directories = []; set enable_external_access = false; set lock_configuration = true")
        self._file, self.memory, self.damaged = file, memory, False
        self._con, self.items, self.facets = con, items, tuple(facets)
        self.columns = tuple(items.column_names)
        self.searched = searched(items)
        self._kinds = {facet.name: facet.kind for facet in facets}

    # --- searching

    def search(self, text: str, limit: int = 20, exclude: Sequence[int] = (), *, everywhere: bool = False) -> list[Hit]:
        """The best titles: what begins with the text, the item whose id it is, what has a word that begins so, holds it, then
        what has all its words.

        Upper case, accents and apostrophes do not matter, numbers are the same as words, digits and Roman numerals, and a title's
        year counts as a word of it; within one kind of match the title that is the text itself is first, then the more popular
        item. everywhere: items whose attributes have the words come after all titles that do.
        """
        query = Query.read(text)
        if query is None:
            return []
        limit = _bounded(limit)
        rows = self._matches(query, query.title, exclude, limit)
        if everywhere and len(rows) < limit:  # a title or two letters of it are the rule, and found sooner alone
            rows += self._matches(query, f"{query.anything} and not {query.title}", exclude, limit - len(rows))
        return [Hit(item, item_id, title, KINDS[kind]) for item, item_id, title, kind in rows]

    def meant(self, text: str) -> str:
        """The text itself where an item matches it to the letter, or none matches anything near it; else the nearest text that
        one matches: with blanks elsewhere, or with words that are a letter or two from these, in a title rather than in an
        attribute."""
        return meant(text, self._ask)

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
        where, values, better = self._where(text, filters or {})
        if sort == "relevance":
            order = "c_popularity desc" if better == "0" else f"{better}, c_popularity desc"
        elif sort in self.columns and self._kinds.get(sort) != "tags":
            way = "desc" if descending else "asc"
            order = f"folded {way}, c_title {way}" if sort == "title" else f"{quoted(sort)} {way} nulls last"
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
        value = f"unnest(list_distinct({quoted(name)}))" if kind == "tags" else quoted(name)
        rows = self._ask(
            f"""select value, count(*) as items from (select {value}::varchar as value from catalogue where {where})
            where value is not null and value != '' group by value order by items desc, value limit {MAX_DISTINCT}""",
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
            f"""select floor({quoted(name)} / $width) * $width as step, count(*) from catalogue
            where {where} and {quoted(name)} is not null group by step order by step""",
            {**values, "width": width},
        )
        return [(float(step), items) for step, items in rows]

    def rows(self, items: Sequence[int]) -> pa.Table:
        """The items of these numbers, in their order."""
        return rows(self.items, items)

    # --- inside

    def _matches(self, query: Query, condition: str, exclude: Sequence[int], limit: int) -> list[tuple[Any, ...]]:
        """(item, item_id, title, place in `KINDS`) of the best."""
        return self._ask(
            f"""select c_item, c_item_id, c_title, {query.kind} as kind from catalogue
            where {condition} and not list_contains($exclude::int[], c_item)
            order by {query.order}, c_popularity desc, length(folded), c_item limit $limit""",
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
        some, values = conditions(filters, self._kinds)
        query = Query.read(text)
        if query is None:
            return " and ".join(["true", *some]), values, "0"
        return " and ".join([query.anything, *some]), {**query.values, **values}, query.order


def _fill(con: duckdb.DuckDBPyConnection, items: pa.Table) -> None:
    """Makes the tables: catalogue, with the texts that are searched beside the columns; vocabulary, the words of those texts."""
    parts = (texts(part) for part in items.to_batches(max_chunksize=_PART))
    schema = texts(pa.RecordBatch.from_pylist([], items.schema)).schema
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


def _connect(database: str, spill: Path | None, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """spill: a folder of its own for what does not fit into memory; None: there is none."""
    config = settings(f"{BUFFERS >> 20}MB" if read_only else "512MB", 2, spill) | {"max_temp_directory_size": "4GB"}
    return duckdb.connect(database, read_only=read_only, config=config)


def _bounded(limit: int) -> int:
    return min(max(0, int(limit)), MAX_LIMIT)
