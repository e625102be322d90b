"""Records of item files: CSV, TSV, JSON lines (also Amazon's loose ones), one JSON document, Parquet."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.catalogue import Record
from engine.data.sources.base import Workshop, numbered_lines, packed
from engine.errors import SeqscopeError
from engine.tabular.limits import UNLIMITED
from engine.tabular.reading import Reading
from engine.tabular.rows import load_document, load_rows
from engine.tabular.text import named

Records = Callable[[], Iterator[tuple[int | None, Record]]]


def table_records(workshop: Workshop, path: Path, reading: Reading, lists: set[str]) -> Records:
    """The rows of a delimited file. It is read when its records are first asked for."""
    table = f"items_{abs(hash(path))}"
    loaded = False

    def records() -> Iterator[tuple[int | None, Record]]:
        nonlocal loaded
        con = workshop.con.cursor()  # the findings go another way meanwhile
        if not loaded:
            with named(path):
                load_rows(
                    workshop.con, workshop.folder, path, reading, path.name, workshop.findings, UNLIMITED, strict=True
                )
            workshop.con.execute(f"ALTER TABLE rows RENAME TO {table}")
            loaded = True
        cells = ", ".join(f"coalesce(c{index}, '')" for index in range(len(reading.columns)))
        con.execute(f"SELECT line, {cells} FROM {table} ORDER BY line")
        while batch := con.fetchmany(10_000):
            for line, *fields in batch:
                row: Record = {column.name: field for column, field in zip(reading.columns, fields, strict=True)}
                for name in lists:
                    row[name] = [part for part in row[name].split("|") if part]
                yield line, row

    return records


def json_records(workshop: Workshop, path: Path, encoding: str | None) -> Records:
    """Objects of JSON lines. Amazon's metadata of 2014 are Python literals instead; they are read as such."""
    reported = False

    def records() -> Iterator[tuple[int | None, Record]]:
        nonlocal reported
        for line, text in numbered_lines(workshop, path, encoding):
            record = parse_object(text)
            if record is not None:
                yield line, flat(record)
            elif not reported:
                workshop.findings.add_row(path.name, "not_json", line, "", text.strip())
        reported = True

    return records


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
    document = read_document(path, encoding)
    rows = document if isinstance(document, list) else []
    if isinstance(document, dict):
        rows = [_keyed(key, value) for key, value in document.items()]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise SeqscopeError(
            f"{path}: an item file in JSON is one object per line, a list of objects, or an object of objects by id."
        )
    for row in rows:
        yield None, flat(row)


def read_document(path: Path, encoding: str | None) -> Any:
    with named(path):
        return load_document(path, encoding or "utf-8", UNLIMITED, gzipped=packed(path))


def _keyed(key: str, value: Any) -> Record | None:
    """The row of an entry; a text is its title."""
    if isinstance(value, str):
        return {"id": key, "title": value}
    return {"id": key, **value} if isinstance(value, dict) else None


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
