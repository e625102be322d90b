"""What is wrong, collected in a database: every finding counted, the first of each problem (or all) written.

A finding is (file, line, column, value, problem, note). Of the problems of a row, the first by `ORDER` decides what it is left
out for. A file of some kilobytes can hold millions of findings, so no more than `EACH` of a problem are kept with their values;
of the others there is a number, and the line where it is one that is left out.
"""

import itertools
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import duckdb
import pyarrow as pa
from pydantic import Field

from engine.tabular.database import sql, value, write_parquet
from engine.tabular.problems import PROBLEMS, Kind
from engine.tabular.reading import Record
from engine.writing import count

VALUE = 100
"""Characters of a value that are kept."""
SHOWN = 100
_BUFFER = 10_000
EACH = 1_000
"""Findings of one problem in one file that are written: never 100,000 in all, as there are some fifty problems."""
DROPPED = ("row_again", "event_again", "rating_dropped", "quantity_negative", "event_repeated")
"""Warnings that leave rows out."""
ORDER = {problem: rank for rank, problem in enumerate(PROBLEMS)}
_KINDS = {"stop": 0, "bad": 1, "warning": 2}
_RANKS = {name: 1_000 * _KINDS[p.kind] + ORDER[name] for name, p in PROBLEMS.items()}
_NAMES = {rank: name for name, rank in _RANKS.items()}
_LEAVES_OUT = {name for name, p in PROBLEMS.items() if p.kind == "bad"} | set(DROPPED)
CSV_HEADER = "file,line,column,value,problem,note,what to do,kind\n"
"""First line of a CSV file of findings."""
FORMULA = r"^[ \x{00a0}\x{feff}]*[=+\-@\t\r\n＝＋－＠]"
"""What a spreadsheet would run, as `app.text.cell` has it."""


class Finding(Record):
    """One thing that is wrong."""

    file: str
    line: int | None
    """From 1, as an editor counts; the row number in a Parquet file."""
    column: str
    value: str
    """At most 100 characters, not escaped."""
    problem: str
    """A key of PROBLEMS."""
    note: str = ""
    """More about this one."""

    def __str__(self) -> str:
        parts = [
            self.file if self.line is None else f"{self.file}:{self.line}",
            self.column,
            PROBLEMS[self.problem].words,
        ]
        shown = f" ({json.dumps(self.value, ensure_ascii=False)})" if self.value else ""
        return ": ".join(part for part in parts if part) + shown

    @property
    def kind(self) -> Kind:
        return PROBLEMS[self.problem].kind


class Count(Record):
    """How often something is wrong."""

    file: str
    problem: str
    number: int
    """Of rows; of users or items where the problem is theirs."""
    note: str = ""

    @property
    def kind(self) -> Kind:
        return PROBLEMS[self.problem].kind


class LeftOut(Record):
    """Rows that the clean files lack. Every row is counted once, for the first thing that is wrong with it."""

    file: str
    problem: str
    rows: int


class HeldOut(Record):
    """What is special about the events that a leave-one-out split holds out for the test."""

    cases: int
    """How many they are."""
    counts: dict[str, int]
    """How many tie, repeat, are negative (engine/data/repeats.py), of the log as it would be used."""
    measured: dict[str, float]
    """How many events and held-out items repeat (engine/data/repeats.py), before repeats are left out."""
    repeats: Literal["count", "first"]
    """What becomes of repeats: what was chosen, else what was measured decides."""


class CheckResult(Record):
    """The answer of a check."""

    counts: tuple[Count, ...] = ()
    """Every problem there is, stops first, then bad rows, then warnings."""
    first: tuple[Finding, ...] = ()
    """The first hundred findings: stops, then bad rows, then warnings, by file and line."""
    findings: int = 0
    """How many there are in all."""
    listed: int = 0
    """How many of them findings.parquet and findings.csv have: the first of each problem."""
    read: dict[str, int] = Field(default_factory=dict)
    """File → rows in it."""
    kept: dict[str, int] = Field(default_factory=dict)
    """File → rows that the clean files have."""
    left_out: tuple[LeftOut, ...] = ()
    """Why the others are not in them. read - kept is their sum."""
    items: int = 0
    users: int = 0
    events: int = 0
    held_out: HeldOut | None = None
    """None where there is no log."""
    ratings: tuple[float, ...] = ()
    """Those that the log has, lowest first, below a minimum, too; none where its weights are no ratings."""
    fingerprint: str = ""
    """sha256 of the clean files; "" where there are none."""

    @property
    def stopped(self) -> bool:
        """Nothing can be used as it is."""
        return any(count.kind == "stop" for count in self.counts)

    @property
    def bad_rows(self) -> int:
        """Rows that are left out because they cannot be used."""
        return sum(entry.rows for entry in self.left_out if PROBLEMS[entry.problem].kind == "bad")


@dataclass
class _Number:
    """Of one problem in one file."""

    rows: int = 0
    """Or users, items, keys, where the problem is theirs."""
    findings: int = 0
    note: str = ""


class Cell(NamedTuple):
    """A rule for one column of the table `rows`."""

    column: str
    """What the file calls it."""
    cell: str
    """SQL: the value."""
    bad: str
    """SQL: whether something is wrong with it."""


class Findings:
    """The tables `findings` (of each problem the first) and `left` (all lines that are left out)."""

    def __init__(self, con: duckdb.DuckDBPyConnection, each: int | None = EACH) -> None:
        """each: how many findings of one problem in one file are written; None: all."""
        self.con = con
        self.each = sys.maxsize if each is None else each
        self._first = "" if each is None else f"ORDER BY line LIMIT {each}"
        self._files: dict[str, int] = {}
        self._lineless = itertools.count(-1, -1)  # rows of files without lines are told apart by negative ones
        self._pending: defaultdict[tuple[str, str, str], list[tuple[int | None, str]]] = defaultdict(list)
        """Of Python: (file, problem, column) → (line, value)."""
        self._numbers: dict[tuple[str, str], _Number] = {}
        con.execute(
            'CREATE TABLE findings (file VARCHAR, line BIGINT, "column" VARCHAR, value VARCHAR, problem VARCHAR, note VARCHAR)'
        )
        con.execute('CREATE TABLE "left" (file USMALLINT, rank USMALLINT, line BIGINT)')
        con.execute(
            "CREATE TABLE problems (problem VARCHAR, kind UTINYINT, place UTINYINT, words VARCHAR, fix VARCHAR)"
        )
        rows = (
            f"({sql(name)}, {_KINDS[p.kind]}, {ORDER[name]}, {sql(p.words)}, {sql(p.fix)})"
            for name, p in PROBLEMS.items()
        )
        con.execute(f"INSERT INTO problems VALUES {', '.join(rows)}")

    def add(self, file: str, problem: str, column: str = "", note: str = "") -> None:
        """A finding of the file as a whole."""
        self._count(file, problem, 1, 1, note)
        self.con.execute("INSERT INTO findings VALUES (?, NULL, ?, '', ?, ?)", [file, column[:VALUE], problem, note])

    def insert(
        self, file: str, problem: str, query: str, column: str = "", note: str = "", *, rows: int | None = None
    ) -> int:
        """A finding for every row that `query` selects: line, value. It is carried out twice. How many they are.

        rows: how many rows of the file these are, where one may have several of them.
        """
        if problem in _LEAVES_OUT:
            left = f'INSERT INTO "left" SELECT {self._number(file)}, {_RANKS[problem]}, line FROM ({query})'
            number = value(self.con, left)
        else:
            number = value(self.con, f"SELECT count(*) FROM ({query})")
        if number:
            self._count(file, problem, number if rows is None else rows, number, note)
            self._keep(file, problem, query, column, note)
        return number

    def insert_cells(self, problem: str, cells: Sequence[Cell], note: str = "") -> None:
        """A finding for every cell of the catalogue that breaks its rule; a row counts once, however many of its cells do.
        For problems that leave no row out."""
        assert problem not in _LEAVES_OUT
        self.con.execute("CREATE OR REPLACE TEMP TABLE counted (line BIGINT)")
        for rule in cells:  # one by one: two hundred regular expressions at once would take gigabytes
            self.con.execute(f"CREATE OR REPLACE TEMP TABLE hit AS SELECT line FROM rows WHERE {rule.bad}")
            number = value(self.con, "SELECT count(*) FROM hit")
            if number:
                rows = value(self.con, "INSERT INTO counted SELECT line FROM hit ANTI JOIN counted USING (line)")
                self._count("catalogue", problem, rows, number, note)
                first = f"SELECT line FROM hit {self._first}"
                query = f"SELECT line, {rule.cell} AS value FROM rows SEMI JOIN ({first}) USING (line)"
                self._keep("catalogue", problem, query, rule.column, note)
        self.con.execute("DROP TABLE counted; DROP TABLE IF EXISTS hit")

    def add_row(self, file: str, problem: str, line: int | None, column: str, given: object) -> None:
        """A finding that Python made, of one row. line: None where the file has no lines."""
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        # A lone surrogate cannot be stored as UTF-8.
        rows = self._pending[file, problem, column]
        rows.append((line, text[:VALUE].encode("utf-8", "replace").decode("utf-8")))
        if len(rows) >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending = self._pending, defaultdict(list)
        for (file, problem, column), rows in pending.items():
            lines = pa.array([next(self._lineless) if line is None else line for line, _ in rows], pa.int64())
            self.con.register(
                "found", pa.table([lines, pa.array([text for _, text in rows], pa.string())], ["line", "value"])
            )
            self.insert(file, problem, "SELECT * FROM found", column)
            self.con.unregister("found")

    def _number(self, file: str) -> int:
        return self._files.setdefault(file, len(self._files))

    def _count(self, file: str, problem: str, rows: int, findings: int, note: str) -> None:
        number = self._numbers.setdefault((file, problem), _Number())
        number.rows += rows
        number.findings += findings
        number.note = max(number.note, note)

    def _keep(self, file: str, problem: str, query: str, column: str, note: str) -> None:
        self.con.execute(
            f"INSERT INTO findings SELECT {sql(file)}, CASE WHEN line > 0 THEN line END, {sql(column[:VALUE])}, "
            f"left(coalesce(value, ''), {VALUE}), "
            f"{sql(problem)}, {sql(note)} FROM ({query}) {self._first}"
        )

    # --- answers

    def lines(self, file: str, *problems: str) -> str:
        """SQL: the lines that these problems leave out."""
        ranks = ", ".join(str(_RANKS[problem]) for problem in problems)
        return f'SELECT line FROM "left" WHERE file = {self._number(file)} AND rank IN ({ranks})'

    def bad_lines(self, file: str) -> str:
        """SQL: the lines of rows that cannot be used."""
        return self.lines(file, *(name for name, p in PROBLEMS.items() if p.kind == "bad"))

    def rows(self, file: str, *problems: str) -> int:
        """How many rows have one of these problems, which no row has two of."""
        return sum(self._numbers[file, name].rows for name in problems if (file, name) in self._numbers)

    def left_out(self, file: str) -> list[LeftOut]:
        """Rows that are left out, by the first thing that is wrong."""
        self._flush()
        counts = self.con.execute(
            f'SELECT rank, count(*) FROM (SELECT line, min(rank) AS rank FROM "left" WHERE file = {self._number(file)} '
            "GROUP BY line) "
            "GROUP BY rank"
        ).fetchall()
        entries = [LeftOut(file=file, problem=_NAMES[rank], rows=rows) for rank, rows in counts]
        return sorted(entries, key=lambda entry: (-entry.rows, entry.problem))

    def bad_rows(self) -> dict[str, int]:
        """The words of a problem → rows of all files that it leaves out, the commonest first; a row counts once."""
        self._flush()
        rows = Counter[str]()
        for file in self._files:
            rows.update({PROBLEMS[entry.problem].words: entry.rows for entry in self.left_out(file)})
        return dict(sorted(rows.items(), key=lambda pair: (-pair[1], pair[0])))

    def counts(self) -> tuple[Count, ...]:
        """A row counts once for each problem, however many of its columns have it."""
        counts = [
            Count(file=file, problem=problem, number=number.rows, note=number.note)
            for (file, problem), number in self._numbers.items()
        ]
        return tuple(sorted(counts, key=lambda count: (_KINDS[count.kind], -count.number, count.file, count.problem)))

    def first(self, limit: int = SHOWN, *, by_line: bool = False) -> tuple[Finding, ...]:
        """by_line: not the worst first."""
        self._flush()
        rows = self.con.execute(
            'SELECT file, line, "column", value, problem, note FROM findings JOIN problems USING (problem) '
            f'ORDER BY {"" if by_line else "kind, "}file, line NULLS FIRST, place, "column", value LIMIT {limit}'
        ).fetchall()
        return tuple(
            Finding(file=file, line=line, column=column, value=value, problem=problem, note=note or "")
            for file, line, column, value, problem, note in rows
        )

    @property
    def stopped(self) -> bool:
        """Nothing can be used as it is."""
        return any(PROBLEMS[problem].kind == "stop" for _, problem in self._numbers)

    def total(self) -> int:
        return sum(number.findings for number in self._numbers.values())

    def listed(self) -> int:
        """How many findings the files have."""
        return sum(min(self.each, number.findings) for number in self._numbers.values())

    def write(self, parquet: Path, csv: Path) -> None:
        """The first findings of each problem, and a row that says how many more of it there are. No spreadsheet takes a cell of
        the CSV file for a formula."""
        self._flush()
        rest = [
            {
                "file": file,
                "problem": problem,
                "note": count(number.findings - self.each, "more of these is", "more of these are") + " not listed.",
            }
            for (file, problem), number in self._numbers.items()
            if number.findings > self.each
        ]
        texts = pa.schema([(name, pa.string()) for name in ("file", "problem", "note")])
        self.con.register("rest", pa.Table.from_pylist(rest, texts))
        kinds = "CASE kind WHEN 0 THEN 'stops' WHEN 1 THEN 'bad row' ELSE 'warning' END"
        query = (
            f'SELECT file, line, "column", value, words AS problem, note, fix AS "what to do", {kinds} AS kind '
            "FROM (SELECT * FROM findings QUALIFY row_number() OVER "
            f'(PARTITION BY file, problem ORDER BY line NULLS FIRST, "column", value) <= {self.each} '
            "UNION ALL SELECT file, NULL, '', '', problem, note FROM rest) JOIN problems USING (problem) "
            'ORDER BY file, line NULLS FIRST, place, "column", value'
        )
        write_parquet(self.con, query, parquet)
        self.con.unregister("rest")
        names = ("column", "value", "problem", "note", "what to do")
        safe = ", ".join(
            f'CASE WHEN regexp_matches("{name}", {sql(FORMULA)}) THEN \'\'\'\' || "{name}" ELSE "{name}" END AS "{name}"'
            for name in names
        )
        self.con.execute(
            f"COPY (SELECT * REPLACE ({safe}) FROM read_parquet({sql(str(parquet))})) TO {sql(str(csv))} (FORMAT csv, HEADER)"
        )
