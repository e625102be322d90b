"""Item files in any of the common forms: CSV, TSV, JSON lines (also Amazon's loose ones), one JSON document, Parquet."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.catalogue import Record
from engine.data.problems import Problems
from engine.data.rows import Layout, header, records
from engine.data.text import Text, inspect, open_bytes
from engine.errors import SeqscopeError

LIST_COLUMNS = ("genres", "categories", "tags")
"""Columns of delimited files that hold several values with | between them."""


def delimited_records(
    path: Path, layout: Layout, list_columns: tuple[str, ...], problems: Problems
) -> Iterator[tuple[int, Record]]:
    text = inspect(path, layout.encoding)
    names, header_end = header(text, layout)
    lists = {name for name in names if name.lower() in LIST_COLUMNS or name in list_columns}
    for line, fields, _ in records(text, layout, len(names)):
        if line <= header_end:
            continue
        if isinstance(fields, str):
            problems.add(path, line, "row", "", fields)
        elif len(fields) != len(names):
            fault = "too few fields" if len(fields) < len(names) else "too many fields"
            problems.add(path, line, "row", layout.delimiter.join(fields), fault)
        else:
            row: Record = dict(zip(names, fields, strict=True))
            for name in lists:
                row[name] = [part for part in row[name].split("|") if part]
            yield line, row


def json_records(path: Path, encoding: str | None, problems: Problems | None) -> Iterator[tuple[int, Record]]:
    """Objects of JSON lines. Amazon's metadata of 2014 are Python literals instead; they are read as such."""
    for line, content in inspect(path, encoding).lines():
        if content is not None and not content.strip():
            continue
        record = None if content is None else parse_object(content)
        if record is not None:
            yield line, flat(record)
        elif problems is not None:
            fault = "line of more than a million characters" if content is None else "not a JSON object"
            problems.add(path, line, "row", (content or "").strip(), fault)


def parse_object(line: str) -> Record | None:
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(line)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(parsed, dict):
            return {str(key): value for key, value in parsed.items()}
    return None


def document_records(path: Path, encoding: str | None) -> Iterator[tuple[None, Record]]:
    """One JSON document: a list of objects, or an object by id, whose keys become the column "id" (LETTER's item files)."""
    document = load_document(inspect(path, encoding))
    rows = document if isinstance(document, list) else []
    if isinstance(document, dict):
        rows = [_keyed(key, value) for key, value in document.items()]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise SeqscopeError(
            f"{path}: an item file in JSON is one object per line, a list of objects, or an object of objects by id."
        )
    for row in rows:
        yield None, flat(row)


def _keyed(key: str, value: Any) -> Record | None:
    """The row of an entry; a text is its title."""
    if isinstance(value, str):
        return {"id": key, "title": value}
    return {"id": key, **value} if isinstance(value, dict) else None


def load_document(text: Text) -> Any:
    """The one JSON document in a file."""
    with open_bytes(text.path, text.gzipped) as file:
        content = file.read().decode(text.encoding)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise SeqscopeError(f"{text.path} line {error.lineno} column {error.colno}: not valid JSON: {error.msg}.")
    except RecursionError:
        raise SeqscopeError(f"{text.path}: JSON nested too deeply to be a log.")


def parquet_records(path: Path) -> Iterator[tuple[int, Record]]:
    try:
        row = 0
        for batch in pq.ParquetFile(path).iter_batches(batch_size=10_000):
            for record in batch.to_pylist():
                row += 1
                yield row, flat(record)
    except (pa.ArrowException, OSError) as error:
        raise SeqscopeError(f"{path} cannot be read as Parquet ({error}). Is it cut off? Get it again.")


def flat(record: Record) -> Record:
    """Lists of lists, as in Amazon's category paths, become one list without repetitions."""
    for key, value in record.items():
        if isinstance(value, list) and any(isinstance(part, list) for part in value):
            parts = [part for inner in value for part in (inner if isinstance(inner, list) else [inner])]
            record[key] = list(dict.fromkeys(part for part in parts if isinstance(part, (str, int, float))))
    return record
