"""Checked events: rows of text to numbers, with every bad value reported.

All text stays in DuckDB, which moves to disk what does not fit into its memory; only numbers and the distinct ids come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from engine.data.faults import LATEST, TIME_FORMATS, Rule, fault, log_rules, seconds, written
from engine.data.options import TIME_UNITS
from engine.data.problems import Problems
from engine.data.rows import Layout, Mapping, rows_query, sql
from engine.errors import SeqscopeError, UsageError


@dataclass(frozen=True)
class LogFiles:
    """The log of a source."""

    files: tuple[Path, ...]
    layout: Layout
    mapping: Mapping
    tested: int = 0
    """How many of the files, the last ones, hold what the test asks for."""


@dataclass(frozen=True)
class Events:
    """All good events, in the order of the files.

    user, item: int32 [events], dense numbers; time: int64 [events], unix seconds, None where the log has no times.
    users, items: string [numbers], the ids.
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray | None
    users: pa.ChunkedArray
    items: pa.ChunkedArray
    negative: np.ndarray | None
    """bool [events]: the quantity is negative; None where the log has no quantities."""
    below_rating: int
    """Events that were left out because of their rating."""
    dropped_negative: int
    """Events that were left out because of their negative quantity."""
    scattered: int = 0
    """Users who stand on several lines of one file of lists; their items were joined."""
    tested: np.ndarray | None = None
    """bool [events]: a file of held-out items has it; None where there is no such file."""


def read_log(
    con: duckdb.DuckDBPyConnection,
    log: LogFiles,
    work: Path,
    problems: Problems,
    *,
    item_map: pa.Table | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    min_rating: float | None = None,
    drop_negative: bool = False,
) -> Events:
    """Read, check and number the events of `log`.

    item_map: columns number and id (string): the log's item numbers and what they stand for.
    """
    con.execute(
        "CREATE TABLE parsed (file UTINYINT, line BIGINT, user_id VARCHAR, item_id VARCHAR, time VARCHAR, rating VARCHAR, "
        "quantity VARCHAR, misshapen VARCHAR, excerpt VARCHAR)"
    )
    if len(log.files) > 255:
        raise SeqscopeError(f"{len(log.files)} files are more than one import takes (255). Concatenate some.")
    # The zone of this machine must not decide what a date means.
    con.execute("SET TimeZone = 'UTC'")
    for number, path in enumerate(log.files):
        query = rows_query(con, path, log.layout, log.mapping, work, problems)
        con.execute(f"INSERT INTO parsed SELECT {number}, * FROM ({query})")
    scattered = 0
    if log.layout.kind == "lists":
        several = "SELECT user_id FROM parsed WHERE user_id <> '' GROUP BY file, user_id HAVING min(line) < max(line)"
        scattered = con.execute(f"SELECT count(DISTINCT user_id) FROM ({several})").fetchall()[0][0]
    _map_items(con, item_map)
    timed = log.mapping.time is not None
    form = (time_format or (None if time_unit else _time_format(con, log.files[0].name))) if timed else None
    unit = time_unit or _time_unit(con) if timed and form is None else "s"
    moment = ("NULL" if not timed else seconds(TIME_UNITS[unit])) if form is None else written(form)
    rules = log_rules(
        log.mapping,
        mapped=item_map is not None,
        rated=min_rating is not None,
        counted=drop_negative,
        guessed_unit=time_unit is None and unit != "s",
    )
    _check(con, log, problems, rules, moment)

    condition, left_out = "ok", []
    for drops, stays in (
        (min_rating is not None, f"score >= {float(min_rating or 0)}"),
        (drop_negative, "NOT coalesce(amount < 0, false)"),
    ):
        left_out.append(_count(con, f"{condition} AND NOT ({stays})") if drops else 0)
        condition += f" AND {stays}" if drops else ""
    for role in ("user", "item"):
        _number(con, role, condition)
    query = (
        "SELECT file::BIGINT * 1099511627776 + line AS row, user_names.number AS user, item_names.number AS item"
        + (", try_cast(seconds AS BIGINT) AS time" if timed else "")
        + (", coalesce(amount < 0, false) AS negative" if log.mapping.quantity is not None else "")
        + f" FROM checked JOIN user_names USING (user_id) JOIN item_names USING (item_id) WHERE {condition}"
    )
    columns = con.execute(query).fetchnumpy()
    con.execute("DROP TABLE checked")
    # DuckDB promises no order after a join.
    row = columns.pop("row")
    order = np.argsort(row, kind="stable")
    return Events(
        tested=(row[order] >> 40) >= len(log.files) - log.tested if log.tested else None,
        user=np.asarray(columns.pop("user"), np.int32)[order],
        item=np.asarray(columns.pop("item"), np.int32)[order],
        time=np.asarray(columns.pop("time"), np.int64)[order] if timed else None,
        users=con.sql("SELECT user_id FROM user_names ORDER BY number").to_arrow_table()["user_id"],
        items=con.sql("SELECT item_id FROM item_names ORDER BY number").to_arrow_table()["item_id"],
        negative=np.asarray(columns.pop("negative"), bool)[order] if log.mapping.quantity is not None else None,
        scattered=scattered,
        below_rating=left_out[0],
        dropped_negative=left_out[1],
    )


def _count(con: duckdb.DuckDBPyConnection, condition: str) -> int:
    return int(con.execute(f"SELECT count(*) FROM checked WHERE {condition}").fetchall()[0][0])


def _map_items(con: duckdb.DuckDBPyConnection, item_map: pa.Table | None) -> None:
    """Replace item numbers by ids; an event whose number is not in the map keeps it in `unmapped`."""
    if item_map is None:
        con.execute("CREATE VIEW mapped AS SELECT *, NULL::VARCHAR AS unmapped FROM parsed")
        return
    con.register("item_map", item_map)
    con.execute(
        "CREATE VIEW mapped AS SELECT parsed.* REPLACE (id AS item_id), "
        "CASE WHEN id IS NULL THEN parsed.item_id END AS unmapped FROM parsed LEFT JOIN item_map ON parsed.item_id = number"
    )


def _time_format(con: duckdb.DuckDBPyConnection, file: str) -> str | None:
    """The pattern that reads most times, where most are neither numbers nor ISO dates; None elsewhere."""
    query = f"SELECT count(*), count({seconds(1)}) FROM parsed WHERE coalesce(time, '') <> ''"
    rows, plain = con.execute(query).fetchall()[0]
    if 2 * plain > rows or not rows:
        return None
    tests = ", ".join(f"count({written(form)})" for form in TIME_FORMATS)
    counts = dict(zip(TIME_FORMATS, con.execute(f"SELECT {tests} FROM parsed").fetchall()[0], strict=True))
    best = max(counts, key=lambda form: counts[form])
    if 2 * counts[best] <= rows:
        return None
    alike = [form for form in counts if counts[form] == counts[best]]
    if len(alike) > 1:
        raise UsageError(
            f"{file}: day and month of its times could be either way round. Name one: "
            + " or ".join(f"--time-format '{form}'" for form in alike)
        )
    return best


def _time_unit(con: duckdb.DuckDBPyConnection) -> str:
    """The unit by which most numeric times fall between 1970 and 2100."""
    # Each unit has the range above that of the unit before it; no two overlap.
    fits = ", ".join(
        f"count(*) FILTER (number >= {LATEST * scale // 1000 if scale > 1 else 0} AND number < {LATEST * scale})"
        for scale in TIME_UNITS.values()
    )
    counts = con.execute(f"SELECT {fits} FROM (SELECT try_cast(time AS DOUBLE) AS number FROM parsed)").fetchall()[0]
    return max(zip(counts, TIME_UNITS, strict=True), key=lambda pair: pair[0])[1]  # the first of equals: seconds


def _check(con: duckdb.DuckDBPyConnection, log: LogFiles, problems: Problems, rules: list[Rule], moment: str) -> None:
    """Make the table `checked` (ok, seconds, score and amount beside the ids) and report every bad row.

    moment: SQL, the unix second of `time`.
    """
    score, amount = (
        f"CASE WHEN isfinite(try_cast({column} AS DOUBLE)) THEN try_cast({column} AS DOUBLE) END"
        for column in ("rating", "quantity")
    )
    con.execute(
        f"CREATE TABLE checked AS SELECT *, {fault(rules)} AS fault, fault IS NULL AS ok "
        f"FROM (SELECT *, {moment} AS seconds, {score} AS score, {amount} AS amount FROM mapped)"
    )
    con.execute("DROP VIEW mapped; DROP TABLE parsed")
    file = (
        "CASE file "
        + " ".join(f"WHEN {number} THEN {sql(path.name)}" for number, path in enumerate(log.files))
        + " END"
    )
    problems.insert(
        f'SELECT {file} AS file, line, fault.column AS "column", fault.value AS value, fault.reason AS reason '
        "FROM checked WHERE NOT ok"
    )


def _number(con: duckdb.DuckDBPyConnection, role: str, condition: str) -> None:
    """Give every id its dense number: by value where all ids are integers, by Unicode code point else."""
    con.execute(f"CREATE TABLE {role}_ids AS SELECT DISTINCT {role}_id FROM checked WHERE {condition}")
    query = f"SELECT coalesce(bool_and(regexp_full_match({role}_id, '-?\\d{{1,18}}')), false) FROM {role}_ids"
    integers = con.execute(query).fetchall()[0][0]
    order = f"{role}_id::BIGINT, {role}_id" if integers else f"{role}_id"
    con.execute(
        f"CREATE TABLE {role}_names AS "
        f"SELECT {role}_id, (row_number() OVER (ORDER BY {order}) - 1)::INTEGER AS number FROM {role}_ids"
    )
