"""What was wrong with the files that were read: every row of it, counted by reason, none of it in memory for long."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from engine.errors import SeqscopeError

EXCERPT = 100
"""Characters of a bad value that are shown."""
_BUFFER = 10_000
_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("column", pa.string()),
        ("value", pa.string()),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class Problem:
    file: str
    line: int | None
    """From 1, as an editor counts; the row number in a Parquet file; None where a file has no lines."""
    column: str
    value: str
    """The beginning of the bad value."""
    reason: str

    def __str__(self) -> str:
        location = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{location}: {self.column}: {self.reason}" + (
            f" ({json.dumps(self.value, ensure_ascii=False)})" if self.value else ""
        )


class Problems:
    """The table `problems` of the import's database."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self.buffer: list[tuple[str, int | None, str, str, str]] = []
        con.execute(
            'CREATE TABLE problems (file VARCHAR, line BIGINT, "column" VARCHAR, value VARCHAR, reason VARCHAR)'
        )

    def add(self, file: Path | str, line: int | None, column: str, value: object, reason: str) -> None:
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        # A lone surrogate cannot be stored as UTF-8.
        shown = shown[:EXCERPT].encode("utf-8", "replace").decode("utf-8")
        self.buffer.append((Path(file).name, line, column, shown, reason))
        if len(self.buffer) >= _BUFFER:
            self._flush()

    def insert(self, query: str) -> None:
        """Add the rows (file, line, column, value, reason) that `query` selects."""
        self.con.execute(
            f'INSERT INTO problems SELECT file, line, "column", left(value, {EXCERPT}), reason FROM ({query})'
        )

    def counts(self) -> dict[str, int]:
        """Rows by reason, the commonest first."""
        self._flush()
        query = "SELECT reason, count(*) FROM problems GROUP BY reason ORDER BY count(*) DESC, reason"
        return dict(self.con.execute(query).fetchall())

    def first(self, limit: int) -> list[Problem]:
        self._flush()
        query = f'SELECT * FROM problems ORDER BY file, line, "column" LIMIT {limit}'
        return [Problem(*row) for row in self.con.execute(query).fetchall()]

    def write(self, path: Path) -> None:
        """Every problem as CSV. Values are JSON strings: control characters show, and no spreadsheet takes one for a formula."""
        self._flush()
        columns = 'file, line, "column", to_json(value)::VARCHAR AS value, reason'
        query = f'SELECT {columns} FROM problems ORDER BY file, line, "column"'
        target = str(path).replace("'", "''")
        try:
            self.con.execute(f"COPY ({query}) TO '{target}' (FORMAT csv, HEADER)")
        except duckdb.Error as error:
            raise SeqscopeError(f"the report {path} cannot be written ({error}). Choose another --report.")

    def _flush(self) -> None:
        if self.buffer:
            rows = [dict(zip(_SCHEMA.names, row, strict=True)) for row in self.buffer]
            self.con.register("more_problems", pa.Table.from_pylist(rows, _SCHEMA))
            self.con.execute("INSERT INTO problems SELECT * FROM more_problems")
            self.con.unregister("more_problems")
            self.buffer.clear()
