"""Files to rows: one SQL query per file that yields ``line, user_id, item_id, time, rating, quantity`` as text, or says
why a row is none.

Line numbers are physical lines from 1 (row numbers in Parquet), also where quoted fields contain line ends. Lines are cut by
DuckDB where that is exact (`Text.plain`, no quoted fields), else by Python, which writes them to a Parquet file first.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.problems import EXCERPT, Problems
from engine.data.text import MAX_LINE, Text, inspect
from engine.errors import SeqscopeError

WORDS = " "
"""The delimiter that stands for any run of blanks."""
BLANKS = "' ' || chr(9) || chr(10) || chr(13)"
_MAX_RECORD_LINES = 1_000
_SELECTED = {"user": "user_id", "item": "item_id", "time": "time", "rating": "rating", "quantity": "quantity"}
"""Field of a `Mapping` → column of the query."""
_BATCH = 100_000


@dataclass(frozen=True)
class Layout:
    """How a file holds rows."""

    kind: Literal["delimited", "lists", "jsonl", "parquet"]
    """"lists": a user, then all of their items, on one line."""
    delimiter: str = ","
    header: bool = False
    """delimited: the first row names the columns."""
    fields: int = 0
    """delimited without header: how many fields every row must have."""
    quoting: bool = True
    """delimited: fields may stand in double quotes."""
    encoding: str | None = None


@dataclass(frozen=True)
class Mapping:
    """Which columns are user, item, time, rating and quantity: names, or positions from 0 where there is no header."""

    user: str | int
    item: str | int
    time: str | int | None = None
    rating: str | int | None = None
    quantity: str | int | None = None


def sql(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_path(path: Path) -> str:
    """`path` as an SQL string literal that means this file, whatever wildcards its name contains."""
    return sql(re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", str(path)))


def rows_query(
    con: duckdb.DuckDBPyConnection, path: Path, layout: Layout, mapping: Mapping, work: Path, problems: Problems
) -> str:
    """SQL that selects line (BIGINT) and, as text, user_id, item_id, time, rating, quantity, misshapen, excerpt of every row of
    `path`.

    misshapen says why a row is none (and excerpt how it begins); it is NULL for the others. What cannot even be cut is added
    to `problems` at once. `work` takes intermediate files.
    """
    if layout.kind == "parquet":
        return _parquet(con, path, mapping)
    text = inspect(path, layout.encoding)
    if layout.kind == "jsonl":
        return _json_lines(text, mapping, work, problems)
    return _delimited(text, layout, mapping, work, problems)


def _delimited(text: Text, layout: Layout, mapping: Mapping, work: Path, problems: Problems) -> str:
    names, header_end = header(text, layout) if layout.header else ([], 0)
    width = len(names) or layout.fields

    def column(which: str | int | None) -> str:
        if which is None:
            return "NULL"
        if isinstance(which, str) and which not in names:
            raise SeqscopeError(
                f"{text.path} has no column {which!r}; it has {', '.join(names)}. Name the format with --source."
            )
        position = which if isinstance(which, int) else names.index(which)
        return f"trim(fields[{position + 1}], {BLANKS})"

    delimiter = "chr(9)" if layout.delimiter == "\t" else sql(layout.delimiter)
    if text.plain and not (layout.quoting and text.quotes):
        fields = f"string_split(text, {delimiter})"
        if layout.delimiter == WORDS:
            # Nearly all rows have one blank; the regular expression costs many times as much.
            bare, runs = f"trim(text, {BLANKS})", f"string_split_regex(trim(text, {BLANKS}), '[ \\t]+')"
            fields = f"CASE WHEN regexp_matches({bare}, '\\t|  ') THEN {runs} ELSE string_split({bare}, ' ') END"
        raw = f"SELECT line, {fields} AS fields FROM ({_lines(text)}) WHERE trim(text, {BLANKS}) <> ''"
    else:
        target = work / f"{text.path.name}.rows.parquet"
        _write_batches(target, pa.list_(pa.string()), _good_records(text, layout, width, problems))
        raw = f"SELECT line, value AS fields FROM read_parquet({sql_path(target)})"
    raw = f"SELECT * FROM ({raw}) WHERE line > {header_end}"
    if layout.kind == "lists":
        items = "CASE WHEN len(fields) > 1 THEN list_slice(fields, 2, len(fields)) ELSE [NULL] END"
        empty = "CASE WHEN len(fields) < 2 THEN 'user without items' END"
        return (
            f"SELECT line, fields[1] AS user_id, unnest({items}) AS item_id, NULL AS time, NULL AS rating, NULL AS quantity, "
            f"{empty} AS misshapen, CASE WHEN len(fields) < 2 THEN left(fields[1], {EXCERPT}) END AS excerpt FROM ({raw})"
        )
    reason = (
        f"CASE WHEN len(fields) < {width} THEN 'too few fields' WHEN len(fields) > {width} THEN 'too many fields' END"
    )
    selected = ", ".join(f"{column(getattr(mapping, name))} AS {alias}" for name, alias in _SELECTED.items())
    excerpt = f"CASE WHEN misshapen IS NOT NULL THEN left(array_to_string(fields, {delimiter}), {EXCERPT}) END"
    return f"SELECT line, {selected}, {reason} AS misshapen, {excerpt} AS excerpt FROM ({raw})"


def _json_lines(text: Text, mapping: Mapping, work: Path, problems: Problems) -> str:
    if text.plain:
        raw = f"SELECT line, text FROM ({_lines(text)}) WHERE trim(text, {BLANKS}) <> ''"
    else:
        target = work / f"{text.path.name}.lines.parquet"
        _write_batches(target, pa.string(), _good_lines(text, problems))
        raw = f"SELECT line, value AS text FROM read_parquet({sql_path(target)})"
    raw = f"SELECT line, text, CASE WHEN json_valid(text) THEN json_type(text) = 'OBJECT' END AS object FROM ({raw})"
    reason = "CASE WHEN object IS NULL THEN 'not valid JSON' WHEN NOT object THEN 'not a JSON object' END"

    def key(which: str | int | None) -> str:
        if which is None:
            return "NULL"
        pointer = "/" + str(which).replace("~", "~0").replace("/", "~1")
        return f"CASE WHEN object THEN trim(json_extract_string(text, {sql(pointer)}), {BLANKS}) END"

    selected = ", ".join(f"{key(getattr(mapping, name))} AS {alias}" for name, alias in _SELECTED.items())
    return (
        f"SELECT line, {selected}, {reason} AS misshapen, "
        f"CASE WHEN misshapen IS NOT NULL THEN left(text, {EXCERPT}) END AS excerpt FROM ({raw})"
    )


def _parquet(con: duckdb.DuckDBPyConnection, path: Path, mapping: Mapping) -> str:
    types = parquet_columns(con, path)

    def column(which: str | int | None) -> str:
        if which is None:
            return "NULL"
        name = '"' + str(which).replace('"', '""') + '"'
        if types[str(which)] in ("DOUBLE", "FLOAT"):  # pandas makes whole numbers so where one is missing
            whole = f"{name} = trunc({name}) AND abs({name}) < 9e15"
            name = f"CASE WHEN {whole} THEN {name}::BIGINT::VARCHAR ELSE {name}::VARCHAR END"
        return f"trim({name}::VARCHAR, {BLANKS})"

    selected = ", ".join(f"{column(getattr(mapping, name))} AS {alias}" for name, alias in _SELECTED.items())
    return (
        f"SELECT file_row_number + 1 AS line, {selected}, NULL AS misshapen, NULL AS excerpt "
        f"FROM read_parquet({sql_path(path)}, file_row_number = true, binary_as_string = true)"
    )


def parquet_columns(con: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    """Names and DuckDB types of the columns of a Parquet file."""
    try:
        described = con.execute(
            f"DESCRIBE SELECT * FROM read_parquet({sql_path(path)}, binary_as_string = true)"
        ).fetchall()
    except duckdb.Error as error:
        raise SeqscopeError(
            f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}). Is it cut off? Get it again."
        )
    return {row[0]: row[1] for row in described}


def header(text: Text, layout: Layout) -> tuple[list[str], int]:
    """The names in the first row, and the last physical line of that row."""
    line, names, last = first_row(text, layout)
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SeqscopeError(
            f"{text.path} line {line}: the header has {', '.join(map(repr, twice))} more than once. Rename one."
        )
    return names, last


def first_row(text: Text, layout: Layout) -> tuple[int, list[str], int]:
    """(first line, fields, last line) of the first row that is not blank."""
    for line, fields, last in records(text, layout, width=0):
        if isinstance(fields, str):
            raise SeqscopeError(f"{text.path} line {line}: the first row cannot be read: {fields}.")
        return line, [field.strip() for field in fields], last
    raise SeqscopeError(f"{text.path} holds no rows.")


def records(text: Text, layout: Layout, width: int) -> Iterator[tuple[int, list[str] | str, int]]:
    """(first line, fields, last line) of every row that is not blank; a str in place of the fields says what is wrong.

    A quoted field may contain line ends. Where a quote that is never closed would swallow the rows below it, or where a row of
    several lines has not `width` fields, only its first line is given up. `width` 0 accepts any number.
    """
    csv.field_size_limit(2 * MAX_LINE)
    source = text.lines()
    waiting: deque[tuple[int, str | None]] = deque()
    while True:
        line, part = waiting.popleft() if waiting else next(source, (0, ""))
        if line == 0:
            return
        if part is None:
            yield line, "line of more than a million characters", line
            continue
        if not part.strip():
            continue
        lines: list[tuple[int, str | None]] = [(line, part)]
        fields = _split(part, layout)
        while fields is None and len(lines) < _MAX_RECORD_LINES:
            more = waiting.popleft() if waiting else next(source, None)
            if more is None:
                break
            lines.append(more)
            if more[1] is None:
                break
            part += more[1]
            fields = _split(part, layout)
        if fields is None or (len(lines) > 1 and (isinstance(fields, str) or (width and len(fields) != width))):
            waiting.extendleft(reversed(lines[1:]))
            yield line, "quote that is never closed", line
        else:
            yield line, fields, lines[-1][0]


def _split(row: str, layout: Layout) -> list[str] | str | None:
    """The fields of `row`; a str where it is malformed; None where it ends inside a quoted field."""
    row = row.rstrip("\r\n")
    if layout.delimiter == WORDS:
        return row.split()
    if not layout.quoting or len(layout.delimiter) > 1:
        return row.split(layout.delimiter)
    try:
        # Quoted line ends belong to the field, so the row is handed over as one "line".
        return next(csv.reader([row], delimiter=layout.delimiter, strict=True))
    except csv.Error as error:
        return None if "unexpected end of data" in str(error) else "text after a closing quote"


def _good_records(text: Text, layout: Layout, width: int, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    for line, fields, _ in records(text, layout, width):
        if isinstance(fields, str):
            problems.add(text.path, line, "row", "", fields)
        else:
            yield line, fields


def _good_lines(text: Text, problems: Problems) -> Iterator[tuple[int, str]]:
    for line, content in text.lines():
        if content is None:
            problems.add(text.path, line, "row", "", "line of more than a million characters")
        elif content.strip():
            yield line, content.rstrip("\r\n")


def _write_batches(
    path: Path, kind: pa.DataType, rows: Iterator[tuple[int, list[str]]] | Iterator[tuple[int, str]]
) -> None:
    schema = pa.schema([("line", pa.int64()), ("value", kind)])
    with pq.ParquetWriter(path, schema) as writer:
        while True:
            batch = list(islice(rows, _BATCH))
            if not batch:
                return
            lines, values = zip(*batch, strict=True)
            writer.write_table(pa.table([pa.array(lines, pa.int64()), pa.array(values, kind)], schema=schema))


def _lines(text: Text) -> str:
    """SQL that selects line and text of every physical line of a plain text."""
    # One column, cut by a byte that does not occur: then a row is a line, blank ones included, and the row number its number.
    return (
        f"SELECT row_number() OVER () AS line, text FROM read_csv({sql_path(text.path)}, auto_detect = false, header = false, "
        f"columns = {{'text': 'VARCHAR'}}, delim = chr(1), quote = '', escape = '', comment = '', "
        f"compression = '{'gzip' if text.gzipped else 'none'}', max_line_size = {4 * MAX_LINE})"
    )
