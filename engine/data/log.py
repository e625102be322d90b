"""Checked events: rows of text to numbers, with every bad value reported.

All text stays in DuckDB, which moves to disk what does not fit into its memory; only numbers and the distinct ids come out.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from engine.data.options import ImportOptions
from engine.errors import SeqscopeError, UsageError
from engine.tabular import times
from engine.tabular.columns import Values, lowest_liked
from engine.tabular.database import SQL_BLANKS, value
from engine.tabular.findings import Findings
from engine.tabular.problems import Rule, finite, id_rules, quantity_rules, time_rules, weight_rules
from engine.tabular.reading import UNITS, UNLIMITED, Reading, Role
from engine.tabular.roles import holds_clock
from engine.tabular.rows import load_rows, read_lines
from engine.tabular.text import named, write_plain

ROLES: tuple[Role, ...] = ("user", "item", "time", "weight", "quantity")


@dataclass(frozen=True)
class LogFiles:
    """The log of a source."""

    files: tuple[Path, ...]
    readings: tuple[Reading, ...]
    """How each of the files is read."""
    lists: bool = False
    """A line holds a user and all of their items, with blanks between them."""
    tested: int = 0
    """How many of the files, the last ones, hold what the test asks for."""

    def has(self, role: Role) -> bool:
        return self.readings[0].column(role) is not None


@dataclass(frozen=True)
class Events:
    """All good events, in the order of the files.

    user, item: int32 [events], dense numbers; time: int64 [events], unix microseconds, None where the log has no times.
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
    liked_from: float | None = None
    """The middle of the scale of ratings, where there is one and no minimum; lower ratings count as liked."""
    low_ratings: int = 0
    """Events that are rated lower."""
    scattered: int = 0
    """Users who stand on several lines of one file of lists; their items were joined."""
    tested: np.ndarray | None = None
    """bool [events]: a file of held-out items has it; None where there is no such file."""


def read_log(
    con: duckdb.DuckDBPyConnection,
    log: LogFiles,
    work: Path,
    findings: Findings,
    options: ImportOptions,
    item_map: pa.Table | None,
) -> Events:
    """Read, check and number the events of `log`.

    item_map: columns number and id (string): the log's item numbers and what they stand for.
    """
    time_unit, min_rating, drop_negative = options.time_unit, options.min_rating, options.drop_negative
    if len(log.files) > 255:
        raise SeqscopeError(f"{len(log.files)} files are more than one import takes (255). Concatenate some.")
    texts = "user_id VARCHAR, item_id VARCHAR, time VARCHAR, rating VARCHAR, quantity VARCHAR"
    con.execute(f"CREATE TABLE parsed (file UTINYINT, line BIGINT, {texts})")
    names = [path.name for path in log.files]
    names = [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]
    for number, (path, reading, name) in enumerate(zip(log.files, log.readings, names, strict=True)):
        with named(path):
            read = _read_lists if log.lists else _read_table
            con.execute(
                f"INSERT INTO parsed SELECT {number}, * FROM ({read(con, path, reading, name, work, findings)})"
            )
    con.execute("DROP TABLE IF EXISTS rows; DROP TABLE IF EXISTS lines")
    scattered = 0
    if log.lists:
        several = "SELECT user_id FROM parsed WHERE user_id <> '' GROUP BY file, user_id HAVING min(line) < max(line)"
        scattered = value(con, f"SELECT count(DISTINCT user_id) FROM ({several})")
    _map_items(con, item_map)
    timed = log.has("time")
    form = options.time_format or time_unit or _time_form(con, names[0]) if timed else "s"
    moment = times.seconds("time", form) if timed else "NULL"
    within = times.fraction("time", form)
    of_map = Rule("item_unmapped", "unmapped IS NOT NULL")
    of_item = [Rule(problem, f"unmapped IS NULL AND {bad}") for problem, bad in id_rules("item", "item_id")]
    rules: list[tuple[Role, str, Rule]] = [("user", "user_id", rule) for rule in id_rules("user", "user_id")]
    rules += [("item", "unmapped", of_map), *(("item", "item_id", rule) for rule in of_item)]
    if timed:
        scale = UNITS.get(form, 1) if time_unit is None else 1
        rules += [("time", "time", rule) for rule in time_rules("time", "seconds", scale)]
    if min_rating is not None:
        rules += [("weight", "rating", rule) for rule in weight_rules("rating")]
    if drop_negative:
        rules += [("quantity", "quantity", rule) for rule in quantity_rules("quantity")]
    _check(con, log, names, findings, rules, moment)

    condition, left_out = "NOT bad", []
    for drops, stays in (
        (min_rating is not None, f"score >= {float(min_rating or 0)}"),
        (drop_negative, "NOT coalesce(amount < 0, false)"),
    ):
        left_out.append(value(con, f"SELECT count(*) FROM checked WHERE {condition} AND NOT ({stays})") if drops else 0)
        condition += f" AND {stays}" if drops else ""
    for role in ("user", "item"):
        _number(con, role, condition)
    query = (
        "SELECT file::BIGINT * 1099511627776 + line AS row, user_names.number AS user, item_names.number AS item"
        + (f", {times.MICRO} * try_cast(seconds AS BIGINT) + try_cast({within} AS BIGINT) AS time" if timed else "")
        + (", coalesce(amount < 0, false) AS negative" if log.has("quantity") else "")
        + f" FROM checked JOIN user_names USING (user_id) JOIN item_names USING (item_id) WHERE {condition}"
    )
    columns = con.execute(query).fetchnumpy()
    rating, low, low_ratings = log.readings[0].column("weight"), None, 0
    if rating is not None and min_rating is None:
        low = lowest_liked(con, rating.name, "score", f"checked WHERE {condition}")
    if low is not None:
        low_ratings = value(con, f"SELECT count(*) FROM checked WHERE {condition} AND score < {low}")
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
        negative=np.asarray(columns.pop("negative"), bool)[order] if log.has("quantity") else None,
        liked_from=low,
        low_ratings=low_ratings,
        scattered=scattered,
        below_rating=left_out[0],
        dropped_negative=left_out[1],
    )


def _read_table(
    con: duckdb.DuckDBPyConnection, path: Path, reading: Reading, name: str, work: Path, findings: Findings
) -> str:
    """SQL that selects line, user, item, time, rating and quantity of the rows of a table."""
    load_rows(con, work, path, reading, name, findings, UNLIMITED, strict=True)
    cell_of = {column.role: f"c{index}" for index, column in enumerate(reading.columns)}
    return f"SELECT line, {', '.join(cell_of.get(role, 'NULL') for role in ROLES)} FROM rows"


def _read_lists(
    con: duckdb.DuckDBPyConnection, path: Path, reading: Reading, name: str, work: Path, findings: Findings
) -> str:
    """The same of lines of a user and all of their items."""
    target = work / f"{name}.txt"
    plain = write_plain(path, target, reading.encoding, UNLIMITED, gzipped=reading.gzip, strict=True)
    read_lines(con, plain, name, findings)
    fields = f"SELECT line, text, string_split_regex(trim(text, {SQL_BLANKS}), '[ \\t]+') AS fields FROM lines"
    findings.insert(name, "no_items", f"SELECT line, text AS value FROM ({fields}) WHERE len(fields) < 2")
    return f"SELECT line, fields[1], unnest(fields[2:]), NULL, NULL, NULL FROM ({fields}) WHERE len(fields) > 1"


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


def _time_form(con: duckdb.DuckDBPyConnection, file: str) -> str:
    """The form of the times, as `times.seconds` takes it. Raises UsageError where day and month could be either way round, and
    where there is no day."""
    rows = "SELECT time, row_number() OVER () AS place FROM parsed WHERE time IS NOT NULL"
    step = max(1, value(con, "SELECT count(time) FROM parsed") // 1_000)
    some = [row[0] for row in con.execute(f"SELECT time FROM ({rows}) WHERE place % {step} = 0").fetchall()]
    choice = times.guess(con, some)
    if choice is None and holds_clock(Values("time", some)):
        raise UsageError(
            f"{file}: its times are times of day. Name the column of the days with --time-column, and theirs with --clock-column"
        )
    if choice is not None and times.is_ambiguous(choice):
        choice = times.settle(con, choice, "time", "parsed")
        if times.is_ambiguous(choice):
            raise UsageError(
                f"{file}: day and month of its times could be either way round. Name one: "
                f"--time-format '{choice.value}' or --time-format '{choice.others[0]}'"
            )
    return "s" if choice is None or choice.value == "iso" else choice.value  # "s" reads ISO dates, too


def _check(
    con: duckdb.DuckDBPyConnection,
    log: LogFiles,
    names: list[str],
    findings: Findings,
    rules: list[tuple[Role, str, Rule]],
    moment: str,
) -> None:
    """Make the table `checked` (bad, seconds, score and amount beside the ids) and report every bad row.

    rules: whose column is to blame, SQL of its value, and which rows are bad; moment: SQL, the unix second of `time`.
    """
    bad = " OR ".join(f"coalesce({rule.bad}, false)" for _, _, rule in rules)
    con.execute(
        f"CREATE TABLE checked AS SELECT *, {bad} AS bad FROM (SELECT *, {moment} AS seconds, {finite('rating')} AS score, "
        f"{finite('quantity')} AS amount FROM mapped)"
    )
    con.execute("DROP VIEW mapped; DROP TABLE parsed")
    for (number,) in con.execute("SELECT DISTINCT file FROM checked WHERE bad ORDER BY file").fetchall():
        for role, given, rule in rules:
            column = log.readings[number].column(role)
            source = f"SELECT line, {given} AS value FROM checked WHERE file = {number} AND bad AND ({rule.bad})"
            findings.insert(names[number], rule.problem, source, role if column is None else column.name)


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


# --- events in order, and those that are left: arrays as `Events` has them, [events]


def time_order(user: np.ndarray, item: np.ndarray, time: np.ndarray | None, ties: str, seed: int) -> np.ndarray:
    """int64 [events]: the positions that sort events by user, then time, then as `ties` says.

    ties: "file" and "known" keep the order of the rows, "item" takes the item number, "shuffle" a permutation drawn with `seed`.
    Without times the order of the rows is the order of events, and `ties` has nothing to decide.
    """
    if time is None:
        return np.argsort(user, kind="stable")
    if ties == "item":
        return np.lexsort((item, time, user))
    if ties == "shuffle":
        return np.lexsort((np.random.default_rng(seed).permutation(len(user)), time, user))
    return np.lexsort((time, user))  # stable: ties keep the order of the rows


def core(user: np.ndarray, item: np.ndarray, min_user: int, min_item: int) -> np.ndarray:
    """bool [events]: the largest set of events in which every user has `min_user` events and every item `min_item`."""
    stays = np.ones(len(user), bool)
    while True:
        per_user = np.bincount(user[stays], minlength=int(user.max(initial=-1)) + 1)
        per_item = np.bincount(item[stays], minlength=int(item.max(initial=-1)) + 1)
        fewer = stays & (per_user >= min_user)[user] & (per_item >= min_item)[item]
        if np.array_equal(fewer, stays):
            return stays
        stays = fewer


def renumber(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(new numbers int32, the old numbers that are in use int64), both ascending: dense numbers without gaps."""
    used = np.flatnonzero(np.bincount(numbers, minlength=size))
    new = np.zeros(size, np.int32)
    new[used] = np.arange(len(used), dtype=np.int32)
    return new[numbers], used
