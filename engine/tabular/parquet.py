"""A Parquet file to the table `rows`, once its own description and a first pass say that it is not too much.

A few kilobytes of Parquet can hold gigabytes of text: a dictionary stores a long value once, however often it occurs, and the
sizes in the file's description do not tell. So rows and columns are looked at first, then the lengths of all texts are summed
without keeping any.
"""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import Refused
from engine.tabular.database import pictured, sql_path, trimmed
from engine.tabular.reading import MB, ONCE, ROLE_WORDS, Limits, Reading, column_names
from engine.tabular.text import too_many_rows

_LOOKED_AT = 2_000  # rows that tell whether a column that is not used is text


def describe(path: Path, limits: Limits) -> tuple[int, list[str]]:
    """(rows, what the columns are called, in their order), after the file's own description. Raises Refused."""
    try:
        file = pq.ParquetFile(path, thrift_string_size_limit=16 * MB, thrift_container_size_limit=1_000_000)
        rows, names = file.metadata.num_rows, file.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        raise Refused(_why(error))
    if not names:
        raise Refused("The file has no columns.")
    if len(names) > limits.columns:
        raise Refused(f"The file has {len(names):,} columns; at most {limits.columns:,} are taken here.")
    if rows > limits.rows:
        raise Refused(too_many_rows(rows, limits))
    if not rows:
        raise Refused("The file has columns but no rows.")
    return rows, column_names(names)


def read_parquet(
    con: duckdb.DuckDBPyConnection, path: Path, reading: Reading, limits: Limits, *, first: int | None = None
) -> tuple[int, list[str]]:
    """Makes the table `rows`. first: only so many rows. (rows of the file, names of columns whose bytes are no text)"""
    rows, names = describe(path, limits)
    if missing := [column.name for column in reading.columns if column.role != "skip" and column.name not in names]:
        raise Refused(f"The file has no column “{missing[0]}”.")
    table = _table(path, len(names))
    try:
        # By their places: names may differ only in case, or be those of DuckDB's own columns.
        kinds = [row[1] for row in con.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
        cells = {name: _cell(f"f{index}", kind) for index, (name, kind) in enumerate(zip(names, kinds, strict=True))}
        selected = [(index, column.name) for index, column in enumerate(reading.columns) if column.role != "skip"]
        some = f"(SELECT * FROM {table} LIMIT {_LOOKED_AT if first is None else first})"
        unused = {column.name for column in reading.columns if column.role == "skip"} & set(names)
        strange = [name for name in names if name in unused and not _is_text(con, cells[name], some)]
        source = table if first is None else some
        try:
            _make_rows(con, [(index, cells[name]) for index, name in selected], source, limits)
        except duckdb.InvalidInputException as error:
            broken = [name for _, name in selected if not _is_text(con, cells[name], source)]
            if not broken or _encrypted(error):
                raise Refused(_why(error))
            for column in reading.columns:
                if column.name in broken and column.role in ONCE:
                    raise Refused(
                        f"The column “{column.name}” holds bytes that are no text in UTF-8. Write it as text, or choose another "
                        f"column for the {ROLE_WORDS[column.role]}."
                    )
            strange += broken
            cells |= dict.fromkeys(broken, "NULL::VARCHAR")
            _make_rows(con, [(index, cells[name]) for index, name in selected], source, limits)
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise Refused(_why(error))
    return rows, strange


def _make_rows(con: duckdb.DuckDBPyConnection, cells: list[tuple[int, str]], source: str, limits: Limits) -> None:
    lengths = " + ".join(f"coalesce(sum(strlen({cell})), 0)" for _, cell in cells)
    total = con.execute(f"SELECT {lengths} FROM {source}").fetchall()[0][0]
    if total > limits.text:
        raise Refused(
            f"The file holds {total / MB:,.0f} MB of text once it is unpacked; at most {limits.text // MB:,} MB are taken here. "
            "Upload a part of it."
        )
    selected = "".join(f", {trimmed(pictured(cell))} AS c{index}" for index, cell in cells)
    numbered = f"SELECT row_number() OVER () AS line, * FROM {source}"
    con.execute(f"CREATE OR REPLACE TABLE rows AS SELECT line, line AS last{selected} FROM ({numbered})")


def _is_text(con: duckdb.DuckDBPyConnection, cell: str, source: str) -> bool:
    """Whether all values of a column can be read as text."""
    try:
        con.execute(f"SELECT max(length({cell})) FROM {source}").fetchall()
    except duckdb.InvalidInputException:
        return False
    return True


def _table(path: Path, columns: int) -> str:
    """SQL: the file, whose columns are called f0, f1, …"""
    names = ", ".join(f"f{index}" for index in range(columns))
    return f"read_parquet({sql_path(path)}, binary_as_string = true, hive_partitioning = false) AS file({names})"


def _cell(column: str, kind: str) -> str:
    """SQL: a value as text."""
    if kind in ("DOUBLE", "FLOAT"):  # pandas makes whole numbers so where one is missing
        whole = f"{column} = trunc({column}) AND abs({column}) < 9e15"
        text = f"CASE WHEN {whole} THEN try_cast({column} AS BIGINT)::VARCHAR ELSE {column}::VARCHAR END"
        # not isnan(): a file's statistics leave NaN out, and DuckDB asks no value where they say that there is none
        return f"nullif(nullif({text}, 'nan'), '-nan')"
    if kind.startswith("DECIMAL") and not kind.endswith(",0)"):
        return f"rtrim(rtrim({column}::VARCHAR, '0'), '.')"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "VARIANT")):
        return f"to_json({column})::VARCHAR"
    return f"{column}::VARCHAR"


def _why(error: BaseException) -> str:
    """Why a file cannot be read; what the libraries say names folders of this server."""
    if _encrypted(error):
        return "The file is encrypted Parquet. Write it without encryption."
    return "It cannot be read as Parquet. Was it cut off? Write it again."


def _encrypted(error: BaseException) -> bool:
    return "crypt" in str(error).casefold()
