"""What can be wrong with the rows of a log, as SQL over the table `rows`; and the table `events` of those that are kept."""

from __future__ import annotations

import time

import duckdb

from app.uploads.database import value
from app.uploads.findings import Findings
from app.uploads.items import id_rules
from app.uploads.problems import FEW
from app.uploads.reading import UNITS, Reading
from app.uploads.refusal import Refused
from app.uploads.times import LATEST, seconds

_DAY = 86_400


def check_events(con: duckdb.DuckDBPyConnection, reading: Reading, findings: Findings) -> None:
    """Adds what is wrong to `findings`; makes the table `events` (line, user, item, time, weight) of the rows that are kept."""
    place = {column.role: f"c{number}" for number, column in enumerate(reading.columns)}
    name = {column.role: column.name for column in reading.columns}
    for role in ("user", "item"):
        id_rules(findings, "log", role, place[role], name[role])
    moment = "NULL::BIGINT"
    if "time" in place and reading.time is not None:
        _times(con, place["time"], name["time"], reading.time, findings)
        moment = "moment"
    weight = "NULL::DOUBLE"
    if "weight" in place:
        cell = place["weight"]
        weight = f"try_cast({cell} AS DOUBLE)"
        for problem, bad in (
            ("weight_missing", f"{cell} IS NULL"),
            ("weight_unreadable", f"{cell} IS NOT NULL AND NOT coalesce(isfinite({weight}), false)"),
        ):
            source = f"SELECT line, {cell} AS value FROM rows WHERE {bad}"
            findings.insert("log", problem, source, name["weight"])
    con.execute(
        f'CREATE OR REPLACE TABLE events AS SELECT line, {place["user"]} AS "user", {place["item"]} AS item, '
        f"{moment} AS time, {weight} AS weight FROM rows WHERE line NOT IN ({findings.bad_lines('log')})"
    )
    if "time" in place:
        _repeated(con, name["user"], findings)
    _users(con, name["user"], findings)


def _times(con: duckdb.DuckDBPyConnection, cell: str, column: str, form: str, findings: Findings) -> None:
    """Adds the column `moment` (unix seconds) to `rows`."""
    try:
        con.execute(f"CREATE TABLE timed AS SELECT *, try_cast({seconds(cell, form)} AS BIGINT) AS moment FROM rows")
        con.execute("DROP TABLE rows; ALTER TABLE timed RENAME TO rows")
    except duckdb.InvalidInputException:
        raise Refused(f"“{form}” is no format of times that can be read here. Write it like %d.%m.%Y %H:%M.")
    unit = UNITS.get(form, 1)
    # Seconds in a column of milliseconds would be in January 1970.
    other = f"moment BETWEEN 0 AND {LATEST // 1000 - 1}" if unit > 1 else "false"
    for problem, bad in (
        ("time_missing", f"{cell} IS NULL"),
        ("time_unreadable", f"{cell} IS NOT NULL AND moment IS NULL"),
        ("time_early", "moment < 0"),
        ("time_late", f"moment >= {LATEST}"),
        ("time_unit", other),
        ("time_future", f"moment BETWEEN {int(time.time()) + 2 * _DAY} AND {LATEST - 1}"),
    ):
        findings.insert("log", problem, f"SELECT line, {cell} AS value FROM rows WHERE {bad}", column)


def _repeated(con: duckdb.DuckDBPyConnection, column: str, findings: Findings) -> None:
    """Events with the same user, item and time as one before."""
    con.execute(
        'CREATE OR REPLACE TEMP TABLE again AS SELECT line, "user" AS value FROM events QUALIFY '
        'row_number() OVER (PARTITION BY "user", item, time ORDER BY line) > 1'
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


def compare(con: duckdb.DuckDBPyConnection, reading: Reading, findings: Findings) -> float:
    """Which items of the log the catalogue (the table `known` of item_id) lacks; their share of the events."""
    item = reading.column("item")
    assert item is not None
    con.execute(
        "CREATE OR REPLACE TEMP TABLE strange AS SELECT min(line) AS line, item AS value, count(*) AS n FROM events "
        "ANTI JOIN known ON item = item_id GROUP BY item"
    )
    total = value(con, "SELECT count(*) FROM events")
    missing = value(con, "SELECT sum(n) FROM strange")
    if not missing or not total:
        return 0.0
    share = missing / total
    note = f"{100 * share:.3g} % of the events." + _advice(con, reading, share)
    if missing == total:
        findings.add("log", "none_known", column=item.name, note=_advice(con, reading, share).strip())
    findings.insert("log", "item_unknown", "SELECT line, value FROM strange", item.name, note)
    return share


def _advice(con: duckdb.DuckDBPyConnection, reading: Reading, share: float) -> str:
    """What would match better, where so little does."""
    if share < 0.2:
        return ""
    tests = {"They match once “.0” is taken off their ends.": "regexp_replace(value, '\\.0+$', '')",
             "They match once leading zeros are taken off.": "regexp_replace(value, '^0+', '')",
             "They match in lower case.": "lower(value)", "They match in upper case.": "upper(value)"}  # fmt: skip
    strange = value(con, "SELECT count(*) FROM strange")
    for words, changed in tests.items():
        matching = value(con, f"SELECT count(*) FROM strange SEMI JOIN known ON {changed} = item_id")
        if matching > 0.5 * strange:
            return f" {words}"
    number = next(place for place, column in enumerate(reading.columns) if column.role == "item")
    for place, column in enumerate(reading.columns):
        if place != number and column.role not in ("time", "weight"):
            other = value(
                con, f"SELECT count(*) FROM (SELECT DISTINCT c{place} AS v FROM rows) SEMI JOIN known ON v = item_id"
            )
            different = value(con, f"SELECT count(DISTINCT c{place}) FROM rows")
            if different > 1 and other > 0.9 * different:
                return f" The column “{column.name[:60]}” matches the catalogue better."
    return ""
