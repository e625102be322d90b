"""A Parquet file to the table `rows`, once its own description and a first pass say that it is not too much.

A few kilobytes of Parquet can hold gigabytes of text: a dictionary stores a long value once, however often it occurs, and the
sizes in the file's description do not tell. So rows and columns are looked at first, then the lengths of all texts are summed
without keeping any.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from app.uploads.database import sql_path
from app.uploads.limits import MB, Limits
from app.uploads.plain import PICTURES, too_many_rows
from app.uploads.reading import Reading
from app.uploads.refusal import Refused
from app.uploads.rows import MAX_NAME, trimmed


def describe(path: Path, limits: Limits) -> tuple[int, list[str]]:
    """(rows, names of the columns), after the file's own description. Raises Refused."""
    try:
        found = pq.ParquetFile(path, thrift_string_size_limit=16 * MB, thrift_container_size_limit=1_000_000)
        rows, names = found.metadata.num_rows, found.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        raise Refused(f"It cannot be read as Parquet ({_first_line(error)}). Was it cut off? Write it again.")
    if not names:
        raise Refused("The file has no columns.")
    if len(names) > limits.columns:
        raise Refused(f"The file has {len(names):,} columns; at most {limits.columns:,} are taken here.")
    if rows > limits.rows:
        raise Refused(too_many_rows(rows, limits))
    if not rows:
        raise Refused("The file has columns but no rows.")
    if len(set(names)) < len(names) or any(len(name) > MAX_NAME for name in names):
        raise Refused("Two columns of the file have the same name, or a name is very long. Rename them.")
    return rows, [name for name in names if name]


def types(con: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    """Name → DuckDB's type of every column."""
    described = con.execute(f"DESCRIBE SELECT * FROM {_table(path)}").fetchall()
    return {row[0]: row[1] for row in described}


def read_parquet(
    con: duckdb.DuckDBPyConnection, path: Path, reading: Reading, limits: Limits, *, first: int | None = None
) -> int:
    """Makes the table `rows`. first: only so many rows. How many rows the file has."""
    rows, _ = describe(path, limits)
    try:
        known = types(con, path)
        wanted = [(place, column.name) for place, column in enumerate(reading.columns) if column.role != "skip"]
        if missing := [name for _, name in wanted if name not in known]:
            raise Refused(f"The file has no column “{missing[0]}”.")
        cells = {name: _cell(name, known[name]) for _, name in wanted}
        limit = "" if first is None else f" LIMIT {first}"
        if first is None:
            lengths = " + ".join(f"coalesce(sum(strlen({cell})), 0)" for cell in cells.values())
            total = con.execute(f"SELECT {lengths} FROM {_table(path)}").fetchall()[0][0]
            if total > limits.text:
                raise Refused(
                    f"The file holds {total / MB:,.0f} MB of text once it is unpacked; at most {limits.text // MB:,} MB are "
                    "taken here. Upload a part of it."
                )
        taken = "".join(f", {trimmed(_tidy(cells[name]))} AS c{place}" for place, name in wanted)
        con.execute(
            "CREATE OR REPLACE TABLE rows AS SELECT file_row_number + 1 AS line, file_row_number + 1 AS last"
            f"{taken} FROM {_table(path)}{limit}"
        )
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise Refused(f"It cannot be read as Parquet ({_first_line(error)}). Was it cut off? Write it again.")
    return rows


def _table(path: Path) -> str:
    return f"read_parquet({sql_path(path)}, file_row_number = true, binary_as_string = true)"


def _cell(name: str, kind: str) -> str:
    """SQL: a value as text."""
    column = '"' + name.replace('"', '""') + '"'
    if kind in ("DOUBLE", "FLOAT"):  # pandas makes whole numbers so where one is missing
        whole = f"{column} = trunc({column}) AND abs({column}) < 9e15"
        text = f"CASE WHEN {whole} THEN {column}::BIGINT::VARCHAR ELSE {column}::VARCHAR END"
        return f"CASE WHEN NOT isnan({column}) THEN {text} END"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "VARIANT")):
        return f"to_json({column})::VARCHAR"
    return f"{column}::VARCHAR"


def _tidy(cell: str) -> str:
    return f"translate({cell}, chr(0) || chr(1), '{PICTURES}')"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:150].rstrip(". ") if lines else type(error).__name__
