"""The check of one upload: catalogue, log and both beside each other. Writes findings.* and the clean files."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.uploads import OnProgress, clean
from app.uploads.limits import UploadLimits
from engine.errors import Refused
from engine.tabular.columns import NAMES, called, lowest_liked, scale_words
from engine.tabular.database import connect, has_html, sql, sql_path, value
from engine.tabular.findings import Cell, CheckResult, Findings, HeldOut
from engine.tabular.problems import (
    CONTROLS,
    FEW,
    LATEST,
    MAX_TITLE,
    Rule,
    finite,
    id_rules,
    quantity_rules,
    time_rules,
    weight_rules,
)
from engine.tabular.reading import KINDS, UNITS, FileKind, Reading, Record
from engine.tabular.rows import load_rows
from engine.tabular.times import MICRO, fraction, seconds
from engine.writing import count, in_percent


class UploadedFile(Record):
    """A file and how to read it."""

    path: Path
    reading: Reading


def check(
    work: Path,
    files: Mapping[FileKind, UploadedFile],
    limits: UploadLimits,
    say: OnProgress,
    *,
    known: Path | None = None,
) -> CheckResult:
    """Writes findings.parquet, findings.csv and, unless something stops it, clean/ into `work`.

    known: the clean items of a catalogue that was accepted before, in place of `catalogue`; they are not written again.
    Where no row of the catalogue can be used, the log is not looked at.
    """
    catalogue, log = files.get("catalogue"), files.get("log")
    for kind, file in files.items():
        if faults := file.reading.faults(kind):
            raise Refused(" ".join(faults))
    folder = work / "clean"
    folder.mkdir(mode=0o700)
    readable = [file.path for file in files.values()] + ([known] if known is not None else [])
    with connect(work, limits, readable=readable) as con:
        findings = Findings(con)
        read: dict[str, int] = {}
        rows_kept: dict[str, int] = {}
        kept_before = 0

        def load(kind: FileKind, start: float) -> None:
            file = files[kind]
            say(start, f"Reading the {kind}")
            try:
                read[kind] = load_rows(con, work, file.path, file.reading, kind, findings, limits)
            except Refused as refused:
                raise Refused(f"The {kind} cannot be read. {refused}")
            if not read[kind]:
                raise Refused(
                    f"The {kind} has a header and nothing below it." if file.reading.header else f"The {kind} is empty."
                )

        if catalogue is not None:
            load("catalogue", 0.02)
            say(0.2, "Checking the catalogue")
            check_items(con, catalogue.reading, findings, limits)
            rows_kept["catalogue"] = value(con, "SELECT count(*) FROM good")
            if rows_kept["catalogue"]:
                say(0.35, "Writing the catalogue")
                clean.write_items(con, catalogue.reading, folder, limits)
            else:
                findings.add("catalogue", "no_rows")
                log = None  # whatever it holds, nothing can be used
            con.execute("DROP TABLE rows; DROP TABLE good")
        if known is not None:
            con.execute(f"CREATE TABLE known AS SELECT item_id FROM read_parquet({sql_path(known)})")
            kept_before = value(con, "SELECT count(*) FROM known")
        numbers = {"users": 0, "events": 0, "items": rows_kept.get("catalogue", kept_before)}
        held_out: HeldOut | None = None
        ratings: tuple[float, ...] = ()
        if log is not None:
            load("log", 0.5 if catalogue else 0.02)
            say(0.65, "Checking the log")
            held_out, ratings = check_events(con, log.reading, findings)
            rows_kept["log"] = numbers["events"] = value(con, "SELECT count(*) FROM events")
            numbers["users"] = value(con, 'SELECT count(DISTINCT "user") FROM events')
            if catalogue is not None or known is not None:
                say(0.8, "Comparing log and catalogue")
                numbers["items"] += compare(con, log.reading, findings)
            else:
                numbers["items"] = value(con, "SELECT count(DISTINCT item) FROM events")
                clean.write_items_of_log(con, log.reading, folder, limits)
            if not findings.stopped:
                say(0.85, "Writing the log")
                clean.write_log(con, log.reading, folder, findings.bad_rows())
        say(0.92, "Writing what was found")
        findings.write(work / "findings.parquet", work / "findings.csv")
        checked = CheckResult(
            counts=findings.counts(),
            first=findings.first(),
            findings=findings.total(),
            listed=findings.listed(),
            read=read,
            kept=rows_kept,
            left_out=tuple(entry for kind in KINDS if kind in files for entry in findings.left_out(kind)),
            items=numbers["items"],
            users=numbers["users"],
            events=numbers["events"],
            held_out=held_out,
            ratings=ratings,
        )
    if checked.stopped:
        shutil.rmtree(folder)
        return checked
    return checked.model_copy(update={"fingerprint": clean.fingerprint(sorted(folder.iterdir()))})


# --- what can be wrong with the rows of a catalogue and of a log, as SQL over the table `rows`


_CELL_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f␀␁]"  # a description may have lines
_NO = ("0", "false", "no")
"""What a column of flags says of those that it is not true of."""
_NONE = ("nan", "null", "none", "na", "n/a", "#n/a", "<na>", "undefined", r"\n")
"""As programs write that there is no value; the last one is a database's."""
_NUMBER = r"[-+]?\d{1,18}([.,]\d{1,15})?"
_MIXED = 0.2  # share of texts up to which a column counts as one of numbers


def check_items(con: duckdb.DuckDBPyConnection, reading: Reading, findings: Findings, limits: UploadLimits) -> None:
    """Adds what is wrong to `findings`; makes the table `good` (line) of the rows that are kept."""
    cell_of = {column.name: f"c{number}" for number, column in enumerate(reading.columns)}
    item, title = reading.column("item_id"), reading.column("title")
    assert item is not None
    check_ids(findings, "catalogue", "id", cell_of[item.name], item.name)
    _texts(con, reading, cell_of, findings, limits)
    cell, name = (cell_of[title.name], title.name) if title else ("NULL::VARCHAR", "")
    of_title = (
        Rule("title_missing", f"{cell} IS NULL"),
        Rule("title_long", f"length({cell}) > {MAX_TITLE}"),
        Rule("title_control", f"regexp_matches({cell}, '{CONTROLS}')"),
    )
    _insert(findings, "catalogue", of_title, cell, name)
    _repeated_items(con, reading, cell_of[item.name], item.name, findings)


def check_ids(findings: Findings, file: FileKind, role: str, cell: str, column: str) -> None:
    missing = Rule(f"{role}_nan", f"lower({cell}) IN ({', '.join(map(sql, _NONE))})")
    rounded = Rule(f"{role}_rounded", rf"regexp_full_match({cell}, '\d([.,]\d+)?E\+\d+')")
    _insert(findings, file, (*id_rules(role, cell), missing, rounded), cell, column)
    foreign = f"NOT regexp_full_match({cell}, '[\\x00-\\x7f]*')"
    different = f"SELECT min(line) AS line, {cell} AS value FROM rows WHERE {foreign} GROUP BY ALL"
    twins = f"SELECT * FROM ({different}) QUALIFY count(*) OVER (PARTITION BY nfc_normalize(value)) > 1"
    findings.insert(file, f"{role}_twins", twins, column)


def _insert(findings: Findings, file: FileKind, rules: tuple[Rule, ...], cell: str, column: str) -> None:
    for problem, bad in rules:
        findings.insert(file, problem, f"SELECT line, {cell} AS value FROM rows WHERE {bad}", column)


def _texts(
    con: duckdb.DuckDBPyConnection, reading: Reading, cell_of: dict[str, str], findings: Findings, limits: UploadLimits
) -> None:
    undecodable = findings.lines("catalogue", "undecodable")
    known = ", ".join(map(sql, (*clean.YES, *_NO)))
    broken: dict[str, list[Cell]] = {
        name: [] for name in ("replaced", "flag_odd", "cell_control", "cell_long", "html", "mixed")
    }
    for column in reading.columns:
        cell = cell_of[column.name]

        def rule(problem: str, bad: str, cell: str = cell, name: str = column.name) -> None:
            broken[problem].append(Cell(name, cell, bad))

        if column.role in ("title", "text", "list"):
            rule("replaced", f"contains({cell}, '�') AND line NOT IN ({undecodable})")
        if column.role == "flag":
            rule("flag_odd", f"lower({cell}) NOT IN ({known})")
        if column.role in ("text", "list"):
            rule("cell_control", f"regexp_matches({cell}, '{_CELL_CONTROLS}')")
            rule("cell_long", f"length({cell}) > {limits.cell}")
        if column.role == "text":
            rule("html", has_html(cell))
            number = f"regexp_full_match({cell}, '{_NUMBER}')"
            count = f"count(*) FILTER (NOT {number})"
            query = f"SELECT CASE WHEN {count} <= {_MIXED} * count({cell}) THEN {count} END FROM rows WHERE {cell} IS NOT NULL"
            if value(con, query):
                rule("mixed", f"{cell} IS NOT NULL AND NOT {number}")
    for problem, cells in broken.items():
        note = f"{limits.cell:,} characters are kept." if problem == "cell_long" else ""
        findings.insert_cells(problem, cells, note)


def _repeated_items(
    con: duckdb.DuckDBPyConnection, reading: Reading, cell: str, column: str, findings: Findings
) -> None:
    """Further rows of an item: the first that is good otherwise is kept."""
    con.execute(
        f"CREATE OR REPLACE TABLE good AS SELECT line FROM rows WHERE line NOT IN ({findings.bad_lines('catalogue')})"
    )
    cells = ", ".join(f"c{number}" for number, used in enumerate(reading.columns) if used.role != "skip")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE again AS SELECT line, {cell} AS value, "
        "content IS NOT DISTINCT FROM first_value(content) OVER same AS alike FROM ("
        f"SELECT *, row({cells}) AS content FROM rows SEMI JOIN good USING (line) WHERE {cell} IN ("
        f"SELECT {cell} FROM rows SEMI JOIN good USING (line) GROUP BY {cell} HAVING count(*) > 1)"
        f") WINDOW same AS (PARTITION BY {cell} ORDER BY line) QUALIFY row_number() OVER same > 1"
    )
    findings.insert("catalogue", "id_again", "SELECT line, value FROM again WHERE NOT alike", column)
    findings.insert("catalogue", "row_again", "SELECT line, value FROM again WHERE alike", column)
    con.execute("DELETE FROM good WHERE line IN (SELECT line FROM again); DROP TABLE again")


_DAY = 86_400


def check_events(
    con: duckdb.DuckDBPyConnection, reading: Reading, findings: Findings
) -> tuple[HeldOut, tuple[float, ...]]:
    """Adds what is wrong to `findings`; makes the table `events` (line, user, item, time, fraction, weight, quantity) of the rows
    that are kept. Returns also the ratings that there are."""
    cell_of = {column.role: f"c{number}" for number, column in enumerate(reading.columns)}
    name = {column.role: column.name for column in reading.columns}
    for role in ("user", "item"):
        check_ids(findings, "log", role, cell_of[role], name[role])
    moment, within = "NULL::BIGINT", "0::BIGINT"
    if "time" not in cell_of:
        unused = called(NAMES["time"], [column.name for column in reading.columns])
        findings.add("log", "no_times", note=f"The column “{unused[0]}” is not used." if unused else "")
    elif reading.time is not None:
        _times(con, cell_of["time"], name["time"], reading.time, findings)
        moment, within = "moment", "fraction"
    numbers = {"weight": "NULL::DOUBLE", "quantity": "NULL::DOUBLE"}
    for role, rules_of in (("weight", weight_rules), ("quantity", quantity_rules)):
        if role in cell_of:
            cell = cell_of[role]
            numbers[role] = finite(cell)
            _insert(findings, "log", rules_of(cell), cell, name[role])
    con.execute(
        f'CREATE OR REPLACE TABLE events AS SELECT line, {cell_of["user"]} AS "user", {cell_of["item"]} AS item, '
        f"{moment} AS time, {within} AS fraction, {numbers['weight']} AS weight, {numbers['quantity']} AS quantity FROM rows "
        f"WHERE line NOT IN ({findings.bad_lines('log')})"
    )
    low, ratings = _ratings(con, reading, name["weight"], findings) if "weight" in cell_of else (None, ())
    if reading.drop_negative and "quantity" in cell_of:
        _drop(con, "quantity < 0", "quantity", "quantity_negative", name["quantity"], findings)
    if "time" in cell_of:
        _repeated_events(con, name["user"], findings)
    held_out = _held_out(con, reading, name["item"], findings)
    if low is not None and reading.min_rating is None:
        source = f"SELECT line, weight::VARCHAR AS value FROM events WHERE weight < {low}"
        findings.insert("log", "rating_low", source, name["weight"], scale_words(low))
    _users(con, name["user"], findings)
    return held_out, ratings


def _times(con: duckdb.DuckDBPyConnection, cell: str, column: str, form: str, findings: Findings) -> None:
    """Adds the columns `moment` (unix seconds) and `fraction` (microseconds beyond them) to `rows`."""
    try:
        con.execute(
            f"CREATE TABLE timed AS SELECT *, try_cast({seconds(cell, form)} AS BIGINT) AS moment, "
            f"try_cast({fraction(cell, form)} AS BIGINT) AS fraction FROM rows"
        )
        con.execute("DROP TABLE rows; ALTER TABLE timed RENAME TO rows")
    except duckdb.InvalidInputException:
        raise Refused(f"“{form}” is no format of times that can be read here. Write it like %d.%m.%Y %H:%M.")
    soon = int(time.time()) + 2 * _DAY
    future = Rule("time_future", f"moment BETWEEN {soon} AND {LATEST - 1}")
    _insert(findings, "log", (*time_rules(cell, "moment", UNITS.get(form, 1)), future), cell, column)


def _ratings(
    con: duckdb.DuckDBPyConnection, reading: Reading, column: str, findings: Findings
) -> tuple[float | None, tuple[float, ...]]:
    """Leaves out what is rated below the minimum. The middle of the scale, and the ratings that there are, lowest first; None and
    none where the values are no ratings."""
    low = lowest_liked(con, column, "weight", "events")
    query = "SELECT DISTINCT weight FROM events WHERE weight IS NOT NULL ORDER BY weight"
    ratings = () if low is None else tuple(rating for (rating,) in con.execute(query).fetchall())
    if reading.min_rating is not None:
        _drop(con, f"weight < {float(reading.min_rating)}", "weight", "rating_dropped", column, findings)
    return low, ratings


def _drop(
    con: duckdb.DuckDBPyConnection, condition: str, value: str, problem: str, column: str, findings: Findings
) -> None:
    """Leaves events out that the visitor does not want."""
    findings.insert("log", problem, f"SELECT line, {value}::VARCHAR AS value FROM events WHERE {condition}", column)
    con.execute(f"DELETE FROM events WHERE {condition}")


class _Flat(NamedTuple):
    """`events`, each user's oldest first: the users' places, numbers of items, times (microseconds), lines; int64 [users + 1] or
    [events]."""

    offsets: npt.NDArray[np.int64]
    user: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64] | None
    negative: npt.NDArray[np.bool_] | None
    line: npt.NDArray[np.int64]


def _flat(con: duckdb.DuckDBPyConnection, ties: str) -> _Flat:
    """ties: as the import breaks them (engine.data.log), whose rows are those of the clean log."""

    def numbered(name: str) -> str:
        distinct = f"SELECT DISTINCT {name} AS id FROM events"
        return f"(SELECT id, row_number() OVER () - 1 AS n FROM ({distinct}))"

    columns = con.execute(
        f'SELECT u.n AS "user", i.n AS item, {MICRO} * time + fraction AS time, quantity < 0 AS negative, line FROM events '
        f'JOIN {numbered(chr(34) + "user" + chr(34))} AS u ON u.id = "user" JOIN {numbered("item")} AS i ON i.id = item '
        "ORDER BY u.n, events.time, fraction, line"
    ).fetchnumpy()
    if ties == "shuffle" and not np.ma.getmaskarray(columns["time"]).all():
        fine = value(con, "SELECT count(*) FROM events WHERE fraction <> 0")
        rows = np.lexsort((columns["line"], columns["time"]) if fine else (columns["line"],))
        drawn = np.empty(len(rows), np.int64)
        drawn[rows] = np.random.default_rng(0).permutation(len(rows))
        order = np.lexsort((drawn, columns["time"], columns["user"]))
        columns = {name: column[order] for name, column in columns.items()}
    offsets = np.concatenate([[0], np.cumsum(np.bincount(columns["user"]))]).astype(np.int64)
    time, negative = (
        None if np.ma.getmaskarray(columns[name]).all() else columns[name] for name in ("time", "negative")
    )
    negative = None if negative is None else np.ma.filled(negative, False)
    return _Flat(offsets, columns["user"], columns["item"], time, negative, columns["line"])


def _held_out(con: duckdb.DuckDBPyConnection, reading: Reading, column: str, findings: Findings) -> HeldOut:
    """Measures repeats, leaves them out where they do not count, and counts what is special about the events held out then."""
    from engine.runtime import repeats  # with ONNX Runtime behind it, which a guess does without

    log = _flat(con, reading.ties)
    measured = repeats.measure(log.user, log.item, np.isin(np.arange(len(log.user)), _last(log)))
    rule: Literal["count", "first"] = reading.repeats or ("count" if repeats.propose(measured) == "count" else "first")
    if rule == "first" and measured["repeated_events"]:
        con.register("again", pa.table({"line": log.line[repeats.repeated(log.user, log.item)]}))
        _drop(con, "line IN (SELECT line FROM again)", "item", "event_repeated", column, findings)
        con.unregister("again")
        log = _flat(con, reading.ties)
    last = _last(log)
    lengths = np.diff(log.offsets)
    left = np.repeat(log.offsets[1:], lengths) - np.arange(len(log.item))  # events of the user from this one on
    training = (left > 2) & (np.repeat(lengths, lengths) >= FEW)
    counts = repeats.count_untrained(last, log.item, training, few=False)
    counts |= repeats.count_held_out(last, log.offsets, log.item, log.time, log.negative)
    return HeldOut(cases=len(last), counts=counts, measured=measured, repeats=rule)


def _last(log: _Flat) -> npt.NDArray[np.int64]:
    """The last event of each user who has enough for a split."""
    return log.offsets[1:][np.diff(log.offsets) >= FEW] - 1


def _repeated_events(con: duckdb.DuckDBPyConnection, column: str, findings: Findings) -> None:
    """Events with the same user, item and time as one before."""
    con.execute(
        'CREATE OR REPLACE TEMP TABLE again AS SELECT line, "user" AS value FROM events QUALIFY '
        'row_number() OVER (PARTITION BY "user", item, time, fraction ORDER BY line) > 1'
    )
    findings.insert("log", "event_again", "SELECT * FROM again", column)
    con.execute("DELETE FROM events WHERE line IN (SELECT line FROM again); DROP TABLE again")


def _users(con: duckdb.DuckDBPyConnection, column: str, findings: Findings) -> None:
    con.execute(
        'CREATE OR REPLACE TEMP TABLE takers AS SELECT "user" AS value, min(line) AS line, count(*) AS n FROM events GROUP BY ALL'
    )
    if not value(con, "SELECT count(*) FROM takers"):
        findings.add("log", "no_rows")
    elif value(con, "SELECT count(*) FROM takers") == 1:
        findings.add("log", "one_user", column=column)
    elif not value(con, f"SELECT count(*) FROM takers WHERE n >= {FEW}"):
        findings.add("log", "nobody_to_test", column=column)
    findings.insert("log", "few_events", f"SELECT line, value FROM takers WHERE n < {FEW}", column)


def compare(con: duckdb.DuckDBPyConnection, reading: Reading, findings: Findings) -> int:
    """Adds which items of the log the catalogue (the table `known` of item_id) lacks; how many they are."""
    item = reading.column("item")
    assert item is not None
    con.execute(
        "CREATE OR REPLACE TEMP TABLE strange AS SELECT min(line) AS line, item AS value, count(*) AS n FROM events "
        "ANTI JOIN known ON item = item_id GROUP BY item"
    )
    total = value(con, "SELECT count(*) FROM events")
    missing = value(con, "SELECT sum(n) FROM strange")
    if not missing or not total:
        return 0
    share = missing / total
    note = f"{count(missing, 'event')}, {in_percent(share, 1)} of all." + _advice(con, reading, share)
    if missing == total:
        findings.add("log", "none_known", column=item.name, note=_advice(con, reading, share).strip())
    findings.insert("log", "item_unknown", "SELECT line, value FROM strange", item.name, note)
    return value(con, "SELECT count(*) FROM strange")


def _advice(con: duckdb.DuckDBPyConnection, reading: Reading, share: float) -> str:
    """What would match better, where so little does."""
    if share < 0.2:
        return ""
    tests = {"They match once “.0” is taken off their ends.": "regexp_replace(value, '\\.0+$', '') = item_id",
             "They match once leading zeros are taken off.": "regexp_replace(value, '^0+', '') = item_id",
             "They match once both are written in one Unicode form (NFC).": "nfc_normalize(value) = nfc_normalize(item_id)",
             "They match in lower case.": "lower(value) = item_id",
             "They match in upper case.": "upper(value) = item_id"}  # fmt: skip
    strange = value(con, "SELECT count(*) FROM strange")
    for words, alike in tests.items():
        matching = value(con, f"SELECT count(*) FROM strange SEMI JOIN known ON {alike}")
        if matching > 0.5 * strange:
            return f" {words}"
    number = next(index for index, column in enumerate(reading.columns) if column.role == "item")
    for index, column in enumerate(reading.columns):
        if index != number and column.role not in ("skip", "time", "clock", "weight"):
            other = value(
                con, f"SELECT count(*) FROM (SELECT DISTINCT c{index} AS v FROM rows) SEMI JOIN known ON v = item_id"
            )
            different = value(con, f"SELECT count(DISTINCT c{index}) FROM rows")
            if different > 1 and other > 0.9 * different:
                return f" The column “{column.name[:60]}” matches the catalogue better."
    return ""
