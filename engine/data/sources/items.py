"""``--items FILE``: find out what the file is, and which of its columns are id and title."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from engine.data.catalogue import ItemFile, Record
from engine.data.options import ImportOptions
from engine.data.rows import Layout, header
from engine.data.sources.base import Workshop
from engine.data.sources.movielens import movies_dat, u_item
from engine.data.sources.records import delimited_records, document_records, json_records, parquet_records, parse_object
from engine.data.sources.table import find_delimiter
from engine.data.text import inspect, kind_by_content
from engine.errors import UsageError
from engine.tabular.columns import NAMES, called


def open_items(path: Path, options: ImportOptions, workshop: Workshop) -> ItemFile:
    """The catalogue in `path`: MovieLens' movies.dat or u.item by name, else a table, JSON or Parquet by content."""
    if path.name == "movies.dat":
        return movies_dat(path, options.encoding, workshop.problems)
    if path.name == "u.item":
        return u_item(path, options.encoding, workshop.problems)
    encoding, problems = options.encoding, workshop.problems
    if kind_by_content(path) == "parquet":
        source = partial(parquet_records, path)
        names = list(next(islice(source(), 1), (0, {}))[1])
        return _columns(path, source, names, options, workshop)
    text = inspect(path, encoding)
    first, *more = [*islice((line.strip() for _, line in text.lines() if line and line.strip()), 2), ""]
    if first.startswith(("{", "[")):
        row = parse_object(first)
        texts = not any(more) and all(isinstance(value, str) for value in (row or {}).values())
        titles = texts and not called(NAMES["item_id"], row or {})
        if row is None or all(isinstance(value, dict) for value in row.values()) or titles:
            document = partial(document_records, path, encoding)
            return _columns(path, document, list(next(document())[1]), options, workshop)
        lines = partial(json_records, path, encoding, problems)
        # Optional keys may be missing from the first line.
        names = list(dict.fromkeys(key for _, row in islice(json_records(path, encoding, None), 100) for key in row))
        return _columns(path, lines, names, options, workshop)
    layout = Layout("delimited", find_delimiter(text, workshop), header=True, encoding=encoding)
    table = partial(delimited_records, path, layout, options.list_columns, problems)
    return _columns(path, table, header(text, layout)[0], options, workshop)


def _columns(
    path: Path,
    source: Callable[[], Iterator[tuple[int | None, Record]]],
    names: list[str],
    options: ImportOptions,
    workshop: Workshop,
) -> ItemFile:
    for flag, name in (("item-id", options.columns.item_id), ("title", options.columns.title)):
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
