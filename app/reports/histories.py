"""Many histories from a file, or the people of a dataset, a chunk at a time: memory does not grow with their number.

    with histories.reading(Path("histories.csv"), models, work) as found:
        for chunk in found.chunks(4_096):      # found.total histories in all
            …                                  # chunk.names, chunk.events, chunk.unknown

.csv, .tsv (also .gz), .parquet    one event per row: user, item and, where there is one, time; else the order of the rows counts
                                   or one history per row: user, items (a list, or a text such as [1, 2] or a|b)
.jsonl                             the same as objects: {"user": …, "items": […]}; or lists alone: […]
.txt                               one history per line: item_ids with blanks between them
PEOPLE                             those of the dataset itself, users.parquet

engine/tabular reads the files, as it does uploads and imports; columns.py tells which column holds what.

Of somebody else's file a batch may ask as much as an upload may, and so many answers (`Bounds`); without bounds (None) everything
passes: the command line reads one's own files.
"""

import contextlib
import itertools
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from app.reports.columns import LOOKED_AT, Columns, choose, list_of, match
from app.text import short
from app.uploads.limits import UploadLimits
from engine.errors import Refused, SeqscopeError
from engine.files import expect_file
from engine.runtime import Zoo
from engine.tabular import dialect, times
from engine.tabular.database import BLANKS, connect, first_line, number, value
from engine.tabular.findings import Findings
from engine.tabular.parquet import describe, read_parquet
from engine.tabular.problems import PROBLEMS
from engine.tabular.reading import DELIMITERS, MB, UNLIMITED, Limits, Reading, texts
from engine.tabular.rows import load_rows, read_lines, read_text, with_keys
from engine.tabular.text import blocks, content_kind, guess_encoding, scan, write_plain
from engine.writing import count

PART = "Divide it, and take a part at a time."
PEOPLE = "people"
_BATCH = 100_000  # events read from the database at a time
One = tuple[str, npt.NDArray[np.int64], int]
"""A history's name, its item numbers, and how many of its events are of unknown items."""


class TooMuch(SeqscopeError):
    """A bound was reached. The message names it and says what to do."""


class Bounds(UploadLimits):
    """rows: events of all histories together; disk: that sorting may take; seconds: to read and sort."""

    answers: int = 20_000_000
    """Histories times models times items of a list."""
    output: int = 1024 * MB
    """Bytes of what comes out."""


def too_many_answers(histories: int, models: int, k: int, bounds: Bounds | None) -> None:
    """Raises TooMuch."""
    if bounds is not None and histories * models * k > bounds.answers:
        raise TooMuch(
            f"{count(histories, 'history', 'histories')}, {count(models, 'model')} and {count(k, 'item')} each would be "
            f"{histories * models * k:,} rows; at most "
            f"{bounds.answers:,} are made here. Choose fewer models, shorter lists or fewer histories."
        )


def too_large(size: int, bounds: Bounds | None) -> None:
    """Of what comes out. Raises TooMuch."""
    if bounds is not None and size > bounds.output:
        raise TooMuch(
            f"The lists take more than {bounds.output // MB:,} MB, which is the most that is made here. Choose Parquet, no "
            "titles, fewer models, shorter lists or fewer histories."
        )


class Chunk(NamedTuple):
    names: list[str]
    events: list[npt.NDArray[np.int64]]
    """Item numbers, oldest first."""
    unknown: int
    """Events of items that the catalogue does not have; they are left out."""


@dataclass(frozen=True)
class Histories:
    total: int
    about: str
    """How the file was read: what a row is, and which column holds what."""
    _source: Callable[[], Iterator[One]]

    def chunks(self, size: int) -> Iterator[Chunk]:
        """The same histories in the same order, every time."""
        names: list[str] = []
        histories: list[npt.NDArray[np.int64]] = []
        unknown = 0
        for name, items, missing in self._source():
            names.append(name)
            histories.append(items)
            unknown += missing
            if len(names) == size:
                yield Chunk(names, histories, unknown)
                names, histories, unknown = [], [], 0
        if names:
            yield Chunk(names, histories, unknown)


@contextlib.contextmanager
def reading(
    source: Path | str,
    models: Zoo,
    work: Path,
    columns: Mapping[str, str] | None = None,
    bounds: Bounds | None = None,
) -> Iterator[Histories]:
    """work: a folder for what does not fit into memory. columns: role → name, where the usual names (columns.py) do not do.

    Raises SeqscopeError where the file cannot be read as histories, or is beyond the bounds.
    """
    if source == PEOPLE:
        if not models.users.num_rows:
            raise SeqscopeError(
                f"{models.info.name} was exported without its users, so it has no histories of its own."
            )
        yield Histories(models.users.num_rows, f"the histories of {people_words(models)}", lambda: _people(models))
        return
    path, folder = Path(source).resolve(), work.resolve() / "reading"
    expect_file(path)
    folder.mkdir()
    try:
        with connect(folder, bounds or UNLIMITED, readable=[path]) as con:
            with _in_time(con, path, bounds):
                histories = _load(con, folder, path, models, columns or {}, bounds or UNLIMITED)
            yield histories
    except Refused as refused:
        raise SeqscopeError(f"{path.name}: {refused}") from None
    except duckdb.Error as error:
        raise SeqscopeError(f"{path.name} cannot be read: {short(first_line(error), 200)}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def people_words(models: Zoo) -> str:
    """Whose histories the export has: the 4 users of this dataset; 2,000 of the 4,500 users of this dataset."""
    many, everybody = models.users.num_rows, models.info.counts.get("users", 0)
    some = f"{many:,} of the {count(everybody, 'user')}" if many < everybody else f"the {count(many, 'user')}"
    return f"{some} of this dataset"


class Look(BaseModel):
    """What a file seems to hold, from its first rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Columns | None
    """None: the lines are histories of item ids, without columns; or it cannot be told."""
    samples: dict[str, str]
    """Column → some of its values, shortened; empty without columns."""
    fault: str = ""
    """Why it cannot be told which column holds what; "" where it can."""


def look(work: Path, path: Path, named: Mapping[str, str], limits: Limits) -> Look:
    """named: role → column, where somebody said so. Raises Refused where the file cannot be read at all."""
    form, head = _form(work, path, limits)
    samples = {name: " · ".join(short(text, 40) for text in values[:3]) for name, values in head.items()}
    try:
        return Look(columns=choose(path, head, named) if form.columns else None, samples=samples)
    except SeqscopeError as error:
        return Look(columns=None, samples=samples, fault=str(error))


@contextlib.contextmanager
def _in_time(con: duckdb.DuckDBPyConnection, path: Path, bounds: Bounds | None) -> Iterator[None]:
    """Ends the statement that runs when the time is over. Raises TooMuch."""
    if bounds is None:
        yield
        return
    late = TooMuch(f"Reading {path.name} took longer than {count(bounds.seconds, 'second')} and was ended. {PART}")
    end = time.monotonic() + bounds.seconds
    clock = threading.Timer(bounds.seconds, con.interrupt)
    clock.daemon = True
    clock.start()
    try:
        yield
    except (duckdb.Error, Refused):
        if time.monotonic() < end:
            raise
    finally:
        clock.cancel()
    if time.monotonic() >= end:
        raise late


# --- how a file holds rows


def _form(work: Path, path: Path, limits: Limits) -> tuple[Reading, dict[str, list[str]]]:
    """(how it is read, all columns as texts; column → its values in the first rows). Both are empty where the lines are histories
    and nothing else. Raises Refused."""
    content = content_kind(path)
    if content == "parquet":
        form = Reading(format="parquet", columns=texts(describe(path, limits)[1]))
        with connect(work, limits, readable=[path.resolve()]) as con:
            read_parquet(con, path.resolve(), form, limits, first=LOOKED_AT)
            return form, _head(con, form)
    gzipped = content == "gzip"
    encoding = guess_encoding(scan(blocks(path, gzipped, limits)))
    if encoding.sure != "certain":
        raise Refused(f"{encoding.why} Save it as UTF-8.")
    form = Reading(format="delimited", gzip=gzipped, encoding=encoding.value)
    plain = write_plain(path, work / "head.txt", form.encoding, limits, gzipped=gzipped, quote='"', lines=4 * LOOKED_AT)
    lines = [line for line in plain.path.read_text("utf-8").split("\n") if line.strip(BLANKS)]
    if not lines:
        raise Refused("The file is empty: there is nothing but blanks in it.")
    if path.name.lower().removesuffix(".gz").endswith(".txt") and not _is_header(lines[0]):
        return form, {}
    if _is_one_document(lines):
        raise Refused('It is one JSON document. Write one history per line, {"user": …, "items": […]} or […].')
    if lines[0].startswith("["):
        return form.model_copy(update={"format": "jsonl"}), {}
    with connect(work, limits) as con:
        if dialect.is_json_lines(lines):
            form = with_keys(con, plain.path, form.model_copy(update={"format": "jsonl"}), limits)
        else:
            # A delimiter stands in the header, too; what only the rows have is within their lists.
            signs = [sign for sign in DELIMITERS if sign in lines[0] and sign != " "]
            form, _ = dialect.delimited(lines, form, limits, dialect.delimiter(lines, signs or [","]))
        read_text(con, plain, form, path.name, Findings(con), limits, keys=False)
        return form, _head(con, form)


def _is_header(line: str) -> bool:
    """Names a user and items, as the first line of a table that a spreadsheet wrote as .txt."""
    names = [[name.strip(' "') for name in line.split(sign)] for sign in DELIMITERS if sign in line]
    return any(match(some, "user") and (match(some, "item") or match(some, "items")) for some in names)


def _is_one_document(lines: list[str]) -> bool:
    """Lists alone, and one history alone under a usual name, are lines as well."""
    if lines[0].startswith("["):
        return lines[0][1:].lstrip()[:1] in ("", "{", "[")  # a list of lists: of histories, not of items
    return dialect.is_json_document(lines) and (len(lines) > 1 or match(list(json.loads(lines[0])), "items") is None)


def _head(con: duckdb.DuckDBPyConnection, form: Reading) -> dict[str, list[str]]:
    cells = ", ".join(f"coalesce(c{index}, '')" for index in range(len(form.columns)))
    rows = con.execute(f"SELECT {cells} FROM rows ORDER BY line LIMIT {LOOKED_AT}").fetchall()
    if not rows:
        raise Refused("It has no events.")
    return {column.name: [row[index] for row in rows] for index, column in enumerate(form.columns)}


def _load(
    con: duckdb.DuckDBPyConnection, work: Path, path: Path, models: Zoo, named: Mapping[str, str], limits: Limits
) -> Histories:
    """The whole file. Raises Refused, and SeqscopeError where it cannot be told which column holds what."""
    form, head = _form(work, path, limits)
    findings = Findings(con)
    if not form.columns:
        plain = write_plain(path, work / "lines.txt", form.encoding, limits, gzipped=form.gzip, strict=True)
        read_lines(con, plain, path.name, findings)
        _refuse_bad_rows(findings)
        query = "SELECT line::VARCHAR AS name, text AS items FROM lines ORDER BY line"
        split = _list_of_line if form.format == "jsonl" else str.split
        return _of_rows(con, query, models, limits, split, "one history per line, item ids alone")
    columns = choose(path, head, named)
    read = {columns.user, columns.items, columns.time, columns.clock}
    roles = [column.model_copy(update={"role": "text" if column.name in read else "skip"}) for column in form.columns]
    load_rows(
        con, work, path, form.model_copy(update={"columns": tuple(roles)}), path.name, findings, limits, strict=True
    )
    _refuse_bad_rows(findings)
    cell = {column.name: f"c{index}" for index, column in enumerate(form.columns)}
    user = cell[columns.user] if columns.user else "NULL"
    if form.format == "delimited":  # lines of delimiters alone, as spreadsheets leave them
        filled = ", ".join(cell[name] for name in read if name)
        con.execute(f"DELETE FROM rows WHERE coalesce({filled}) IS NULL")
    if columns.per_row == "history":
        query = (
            f"SELECT coalesce({user}, line::VARCHAR) AS name, {cell[columns.items]} AS items FROM rows ORDER BY line"
        )
        if columns.user:
            _refuse_second_rows(con, user)

        def known(item_id: str) -> bool:
            return models.position(item_id) is not None

        return _of_rows(con, query, models, limits, lambda text: list_of(text, known), str(columns))
    moment = " || ' ' || ".join(cell[name] for name in (columns.time, columns.clock) if name) or "NULL::VARCHAR"
    return _of_events(con, user, cell[columns.items], moment, models, str(columns))


def _refuse_bad_rows(findings: Findings) -> None:
    """Raises SeqscopeError with the first row that cannot be used: answers for a part of a file would pass for all."""
    for finding in findings.first(1):
        if finding.kind != "warning":
            raise SeqscopeError(f"{finding}. {PROBLEMS[finding.problem].fix}")


def _refuse_second_rows(con: duckdb.DuckDBPyConnection, user: str) -> None:
    """Raises Refused with the first user who has several histories: each would get a list, all under one name."""
    first = con.execute(
        f"SELECT coalesce({user}, line::VARCHAR) AS name, min(line) AS line, min(line, 2)[2] FROM rows GROUP BY name "
        "HAVING count(*) > 1 ORDER BY 2 LIMIT 1"
    ).fetchone()
    if first is not None:
        name, line, second = first
        raise Refused(
            f"Lines {line:,} and {second:,}: two histories of “{short(name, 40)}”. Join them to one row, or read no column of "
            "users: then each history is named after its line."
        )


# --- histories that come whole


def _people(models: Zoo) -> Iterator[One]:
    for batch in models.users.select(["user_id", "history"]).to_batches(max_chunksize=4_096):
        for name, history in zip(batch["user_id"].to_pylist(), batch["history"], strict=True):
            yield name, history.values.to_numpy(zero_copy_only=False).astype(np.int64), 0


def _of_rows(
    con: duckdb.DuckDBPyConnection,
    query: str,
    models: Zoo,
    limits: Limits,
    split: Callable[[str], list[str]],
    about: str,
) -> Histories:
    """query: SQL that selects name and items, a text; split: that text's item ids."""

    def lists() -> Iterator[tuple[str, list[str]]]:
        rows = con.cursor()
        rows.execute(query)
        while some := rows.fetchmany(4_096):
            yield from ((name, split(text or "")) for name, text in some)

    def numbered() -> Iterator[One]:
        """Numbers for the ids of each history; those that the catalogue lacks are counted."""
        for name, item_ids in lists():
            positions = [models.position(item_id) for item_id in item_ids]
            known = np.array([item for item in positions if item is not None], np.int64)
            yield name, known, len(positions) - len(known)

    total = events = 0
    first, known = None, False
    for _, item_ids in lists():
        total += 1
        events += max(1, len(item_ids))
        if events > limits.rows:
            raise TooMuch(f"There are more than {limits.rows:,} events, which is the most that is read here. {PART}")
        first = first or next(iter(item_ids), None)
        known = known or any(models.position(item_id) is not None for item_id in item_ids)
    if first is not None and not known:
        _refuse_strangers(first, models, about)
    return Histories(total, about, numbered)


def _refuse_strangers(item_id: str, models: Zoo, about: str) -> NoReturn:
    """Raises Refused where no item of a file is one of the catalogue; item_id: of the first."""
    raise Refused(
        f"None of its items is in {models.info.title}; the first is “{short(item_id, 40)}”. It was read as {about}. Choose "
        "another column of items, or the dataset whose ids these are."
    )


def _list_of_line(text: str) -> list[str]:
    if not text.startswith("["):
        raise Refused(f"“{short(text, 40)}” is no list of items, as the lines before it are.")
    return list_of(text, lambda _: False)


# --- histories that are sorted from events


def _of_events(con: duckdb.DuckDBPyConnection, user: str, item: str, moment: str, models: Zoo, about: str) -> Histories:
    """user, item, moment: SQL, cells of the table `rows`. Raises Refused where a row has no user."""
    nobody = value(con, f"SELECT min(line) FROM rows WHERE {user} IS NULL")
    if nobody:
        missing = PROBLEMS["user_missing"]
        raise Refused(f"Line {nobody}: {missing.words}. {missing.fix}")
    con.register("known", pa.table({"item_id": models.items["item_id"], "item": models.items["item"]}))
    con.execute(
        f"CREATE TABLE events AS SELECT line, {user} AS who, known.item, {moment} AS moment FROM rows "
        f"LEFT JOIN known ON coalesce({item}, '') = item_id"
    )
    if not value(con, "SELECT count(item) FROM events"):
        _refuse_strangers(con.execute(f"SELECT min_by({item}, line) FROM rows").fetchall()[0][0] or "", models, about)
    con.execute("DROP TABLE rows; CREATE TABLE people AS SELECT who, min(line) AS first FROM events GROUP BY who")
    total = value(con, "SELECT count(*) FROM people")
    order = _order(con)
    return Histories(total, about, lambda: _sorted(con, order))


def _order(con: duckdb.DuckDBPyConnection) -> str:
    """SQL: what the times of `events` are sorted by, numbers as they are. Raises Refused where it cannot be told, and where an
    event among others with a time has none that can be read."""
    if not value(con, "SELECT count(moment) FROM events"):
        return "moment"
    as_number = number("moment")
    if not value(
        con, f"SELECT count(*) FROM events WHERE moment IS NOT NULL AND NOT coalesce(isfinite({as_number}), FALSE)"
    ):
        _refuse_timeless(con, as_number)
        return as_number
    rows = "SELECT moment, row_number() OVER () AS place FROM events WHERE moment IS NOT NULL"
    step = max(1, value(con, "SELECT count(moment) FROM events") // 1_000)
    some = con.execute(f"SELECT moment FROM ({rows}) WHERE place % {step} = 0").fetchall()
    choice = times.guess(con, [moment for (moment,) in some])
    if choice is None:
        readable = times.seconds("moment", "s")
        some_are = value(con, f"SELECT count({readable}) FROM events")
        _refuse_timeless(con, readable if some_are else "moment")
        _refuse_shapes(con)
        return "moment"
    if times.is_ambiguous(choice):
        choice = times.settle(con, choice, "moment", "events")
        if times.is_ambiguous(choice):
            raise Refused("Day and month of its times could be either way round. Write them as 2024-03-31.")
    form = "s" if choice.value == "iso" else choice.value  # "s" reads ISO dates, too
    seconds = times.seconds("moment", form)
    _refuse_timeless(con, seconds)
    return f"{seconds}, {times.fraction('moment', form)}"


def _refuse_timeless(con: duckdb.DuckDBPyConnection, time: str) -> None:
    """time: SQL, NULL where an event has none that can be read. Raises Refused with the first of these."""
    first = con.execute(
        f"SELECT line, moment IS NULL FROM events WHERE {time} IS NULL ORDER BY line LIMIT 1"
    ).fetchone()
    if first is not None:
        line, missing = first
        words = PROBLEMS["time_missing" if missing else "time_unreadable"].words
        raise Refused(
            f"Line {line}: {words}. Correct it, or read no column of times: then the order of the rows counts."
        )


def _refuse_shapes(con: duckdb.DuckDBPyConnection) -> None:
    """Raises Refused where times that are texts differ in more than digits: t10 would come before t9, and Feb before Jan."""
    first, other = con.execute("SELECT min(moment), max(moment) FROM events").fetchall()[0]
    if value(con, r"SELECT count(DISTINCT regexp_replace(moment, '\d', '0', 'g')) FROM events") > 1:
        raise Refused(
            f"Its times, from “{short(first, 40)}” to “{short(other, 40)}”, are in no form that is known, and as texts they "
            "would not be in order. Write them as 2024-03-31, or read no column of times: then the order of the rows counts."
        )


def _sorted(con: duckdb.DuckDBPyConnection, order: str) -> Iterator[One]:
    """Histories in the order of their first row; within one by time, and by row where that is the same."""
    ordered = con.sql(
        "SELECT first, who, coalesce(item, -1)::BIGINT AS item FROM events JOIN people USING (who) "
        f"ORDER BY first, {order}, line"
    )
    reader: pa.RecordBatchReader = ordered.to_arrow_reader(_BATCH)
    key, name, parts = -1, "", [np.empty(0, np.int64)]
    for batch in reader:
        firsts, items = batch["first"].to_numpy(), batch["item"].to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(firsts)) + 1).tolist(), len(firsts)]
        for start, end in itertools.pairwise(edges):
            if start == end:
                continue
            if firsts[start] != key and key != -1:
                yield _history(name, parts)
                parts = []
            key, name = firsts[start], batch["who"][start].as_py()
            parts.append(items[start:end])
    if key != -1:
        yield _history(name, parts)


def _history(name: str, parts: list[npt.NDArray[np.int64]]) -> One:
    events = np.concatenate(parts)
    known = events[events >= 0]
    return name, known, len(events) - len(known)
