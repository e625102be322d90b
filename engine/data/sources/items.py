"""``--items FILE``: find out what the file is, and which of its columns are id and title."""

from functools import partial
from itertools import islice
from pathlib import Path

from engine.data.catalogue import ItemFile
from engine.data.options import ImportOptions
from engine.data.sources.base import (
    Records,
    Workshop,
    document_records,
    first_lines,
    json_records,
    parquet_records,
    table_records,
)
from engine.data.sources.movielens import movies_dat, u_item
from engine.data.sources.table import delimited_reading
from engine.errors import UsageError
from engine.tabular.columns import NAMES, called
from engine.tabular.dialect import parse_object
from engine.tabular.text import content_kind, named

LIST_COLUMNS = ("genres", "categories", "tags")
"""Columns of delimited files that hold several values with | between them."""


def open_items(path: Path, options: ImportOptions, workshop: Workshop) -> ItemFile:
    """The catalogue in `path`: MovieLens' movies.dat or u.item by name, else a table, JSON or Parquet by content."""
    if path.name == "movies.dat":
        return movies_dat(path, options.encoding, workshop)
    if path.name == "u.item":
        return u_item(path, options.encoding, workshop)
    with named(path):
        parquet = content_kind(path) == "parquet"
    if parquet:
        source = partial(parquet_records, path)
        return _columns(path, source, list(next(islice(source(), 1), (0, {}))[1]), options, workshop)
    first, *more = [line.strip() for line in first_lines(path, options.encoding)]
    if first.startswith(("{", "[")):
        row = parse_object(first)
        texts = not more and all(isinstance(value, str) for value in (row or {}).values())
        titles = texts and not called(NAMES["item_id"], row or {})
        if row is None or all(isinstance(value, dict) for value in row.values()) or titles:
            document = partial(document_records, path, options.encoding)
            return _columns(path, document, list(next(document())[1]), options, workshop)
        # Optional keys may be missing from the first line.
        names = list(dict.fromkeys(key for line in (first, *more[:99]) for key in parse_object(line) or ()))
        return _columns(path, json_records(workshop, path, options.encoding), names, options, workshop)
    reading = delimited_reading(path, options, workshop)
    names = [column.name for column in reading.columns]
    lists = {name for name in names if name.lower() in LIST_COLUMNS or name in options.list_columns}
    return _columns(path, table_records(workshop, path, reading, lists), names, options, workshop)


def _columns(path: Path, source: Records, names: list[str], options: ImportOptions, workshop: Workshop) -> ItemFile:
    lists = [("list", name) for name in options.list_columns]
    for flag, name in (("item-id", options.columns.item_id), ("title", options.columns.title), *lists):
        if name is not None and name not in names:
            raise UsageError(f"{path.name} has no column {name!r} for --{flag}-column; it has {', '.join(names)}")
    ids = (options.columns.item_id,) if options.columns.item_id else tuple(called(NAMES["item_id"], names))
    if not ids:
        raise UsageError(
            f"{path.name}: which column is the item's id? Name it with --item-id-column; there are {', '.join(names)}"
        )
    rest = [name for name in names if name not in ids]
    title = options.columns.title or next(iter(called(NAMES["title"], rest)), None)
    if title is None:
        workshop.say(f"{path.name}: no title column, so ids stand in for titles (--title-column names one)")
    return ItemFile(path, source, ids, title)
