"""What is wrong, collected in the child's database: every finding once, counted, shown in part, written whole.

A finding is (file, line, column, value, problem, note). Of the findings of a row, the first by `ORDER` decides what it is left
out for.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from app.uploads.database import sql
from app.uploads.problems import PROBLEMS
from app.uploads.reading import Count, Finding, LeftOut, What

VALUE = 100
"""Characters of a value that are kept."""
SHOWN = 100
DROPPED = ("row_again", "event_again", "rating_dropped", "quantity_negative", "event_repeated")
"""Warnings that leave rows out."""
ORDER = {problem: place for place, problem in enumerate(PROBLEMS)}
_KINDS = {"stop": 0, "bad": 1, "warning": 2}
_FORMULA = r"^[ \x{00a0}\x{feff}]*[=+\-@\t\r\n＝＋－＠]"  # as app.text.cell


class Findings:
    """The table `findings`."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        con.execute(
            'CREATE TABLE findings (file VARCHAR, line BIGINT, "column" VARCHAR, value VARCHAR, problem VARCHAR, note VARCHAR)'
        )
        con.execute(
            "CREATE TABLE problems (problem VARCHAR, kind UTINYINT, place UTINYINT, words VARCHAR, fix VARCHAR)"
        )
        rows = (
            f"({sql(name)}, {_KINDS[p.kind]}, {ORDER[name]}, {sql(p.words)}, {sql(p.fix)})"
            for name, p in PROBLEMS.items()
        )
        con.execute(f"INSERT INTO problems VALUES {', '.join(rows)}")

    def add(
        self, file: What, problem: str, line: int | None = None, column: str = "", value: str = "", note: str = ""
    ) -> None:
        self.con.execute(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?)", [file, line, column[:VALUE], value[:VALUE], problem, note]
        )

    def insert(self, file: What, problem: str, query: str, column: str = "", note: str = "") -> int:
        """A finding for every row that `query` selects: line, value. How many they are."""
        assert problem in PROBLEMS
        selected = (
            f"SELECT {sql(file)}, line, {sql(column[:VALUE])}, left(coalesce(value, ''), {VALUE}), {sql(problem)}, "
            f"{sql(note)} FROM ({query})"
        )
        return int(self.con.execute(f"INSERT INTO findings {selected}").fetchall()[0][0])

    # --- answers

    def bad_lines(self, file: What) -> str:
        """SQL: the lines of rows that cannot be used."""
        return (
            "SELECT line FROM findings JOIN problems USING (problem) "
            f"WHERE file = {sql(file)} AND kind = 1 AND line IS NOT NULL"
        )

    def left_out(self, file: What) -> list[LeftOut]:
        """Rows that are left out, by the first thing that is wrong."""
        wanted = ", ".join(map(sql, DROPPED))
        found = self.con.execute(
            "SELECT problem, count(*) FROM (SELECT line, arg_min(problem, kind::INTEGER * 1000 + place) AS problem "
            f"FROM findings JOIN problems USING (problem) WHERE file = {sql(file)} AND line IS NOT NULL "
            f"AND (kind = 1 OR problem IN ({wanted})) GROUP BY line) GROUP BY problem ORDER BY count(*) DESC, problem"
        ).fetchall()
        return [LeftOut(file=file, problem=problem, rows=rows) for problem, rows in found]

    def counts(self) -> tuple[Count, ...]:
        """A row counts once for each problem, however many of its columns have it."""
        found = self.con.execute(
            "SELECT file, problem, count(DISTINCT coalesce(line, -1)), max(note) FROM findings JOIN problems USING (problem) "
            "GROUP BY file, problem, kind ORDER BY kind, count(*) DESC, file, problem"
        ).fetchall()
        return tuple(Count(file=file, problem=problem, number=n, note=note or "") for file, problem, n, note in found)

    def first(self) -> tuple[Finding, ...]:
        found = self.con.execute(
            'SELECT file, line, "column", value, problem, note FROM findings JOIN problems USING (problem) '
            f'ORDER BY kind, file, line NULLS FIRST, place, "column", value LIMIT {SHOWN}'
        ).fetchall()
        return tuple(
            Finding(file=file, line=line, column=column, value=value, problem=problem, note=note or "")
            for file, line, column, value, problem, note in found
        )

    def total(self) -> int:
        return int(self.con.execute("SELECT count(*) FROM findings").fetchall()[0][0])

    def write(self, parquet: Path, csv: Path) -> None:
        """All findings. No spreadsheet takes a cell of the CSV file for a formula."""
        kinds = "CASE kind WHEN 0 THEN 'stops' WHEN 1 THEN 'bad row' ELSE 'warning' END"
        query = (
            f'SELECT file, line, "column", value, words AS problem, note, fix AS "what to do", {kinds} AS kind '
            "FROM findings JOIN problems USING (problem) "
            'ORDER BY file, line NULLS FIRST, place, "column", value'
        )
        self.con.execute(f"COPY ({query}) TO {sql(str(parquet))} (FORMAT parquet, COMPRESSION zstd)")
        texts = ("column", "value", "problem", "note", "what to do")
        safe = ", ".join(
            f'CASE WHEN regexp_matches("{name}", {sql(_FORMULA)}) THEN \'\'\'\' || "{name}" ELSE "{name}" END AS "{name}"'
            for name in texts
        )
        self.con.execute(
            f"COPY (SELECT * REPLACE ({safe}) FROM read_parquet({sql(str(parquet))})) TO {sql(str(csv))} (FORMAT csv, HEADER)"
        )
