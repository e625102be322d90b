"""The import: raw files to a prepared dataset, in one pass over the log and one over the catalogue.

Order of what is left out: bad rows; events rated below --min-rating; rows logged twice (--duplicates); held-out items of a given
split that cannot be asked for; events that repeat an item where repeats do not count (--repeats); users and items outside the
k-core, and users with a shorter history than --min-history; last, items that no user has.

A catalogue without a log becomes a dataset of items that nobody has taken yet: it has the files of every other one, with nobody
in users.parquet and nothing in interactions.parquet. Models that know items by their words serve it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import duckdb
import numpy as np
import pyarrow as pa

from engine import __version__
from engine.data.catalogue import ItemFile, attribute_table, choose_id_column, read_catalogue
from engine.data.dataset import Dataset, DatasetInfo, Role
from engine.data.log import Events, core, read_log, renumber, time_order
from engine.data.options import ImportOptions
from engine.data.repeats import in_words, measure, propose, repeated
from engine.data.sources import SOURCES, Source, Workshop, guess_source
from engine.data.sources.histories import read_item_map
from engine.data.sources.items import open_items
from engine.data.split import IN_TRAINING, NO_TRAINING, in_training, split_roles, without_training
from engine.data.write import NAME, refuse_existing, staging, write_dataset, write_files
from engine.errors import SeqscopeError, UsageError, first_line
from engine.files import expect_file
from engine.machine import now
from engine.tabular.columns import scale_words
from engine.tabular.database import connect_file, rows_left_out
from engine.tabular.findings import CSV_HEADER, Finding, Findings
from engine.tabular.problems import warning_words
from engine.tabular.reading import Reading
from engine.tabular.times import MICRO
from engine.writing import count

SHOWN_PROBLEMS = 20
DAY = 86_400
LARGE = 100_000_000
"""Bytes; a larger log takes long enough to say so."""


@dataclass
class ImportResult:
    """What an import did, beside the dataset."""

    info: DatasetInfo
    problems: tuple[Finding, ...] = ()
    """The first SHOWN_PROBLEMS bad rows."""
    problem_counts: dict[str, int] = field(default_factory=dict)
    """All bad rows, by reason."""
    notices: list[str] = field(default_factory=list)
    """What was kept, but changed or filled in."""


class BadRows(SeqscopeError):
    """The files hold bad rows, and none may be left out (--strict), or nothing else is left."""

    def __init__(self, message: str, problems: tuple[Finding, ...], counts: dict[str, int]) -> None:
        super().__init__(message)
        self.problems, self.counts = problems, counts


def import_dataset(options: ImportOptions, say: Callable[[str], None] = lambda line: None) -> ImportResult:
    """Carry out `options`; `say` takes what was guessed, line by line."""
    _check_paths(options)
    if options.source is None:
        name, why = guess_source(options.paths, options.encoding, tested=options.test is not None)
        say(f"format: {name}, because {why} (--source names another)")
        options = dataclasses.replace(options, source=name)
    if options.source not in SOURCES:
        raise UsageError(f"--source {options.source}: one of {', '.join(SOURCES)}")
    _check_sets(SOURCES[options.source], options)
    with _open_workshop(options, say) as (folder, workshop):
        return _import(options, workshop, folder)


def _check_paths(options: ImportOptions) -> None:
    """Raises SeqscopeError where the dataset or its report cannot be called or placed so, or where a file is missing."""
    if not NAME.fullmatch(options.name or options.out.name):
        given = (
            f"--name {options.name}" if options.name else f"--out {options.out}: the last part is the dataset's name"
        )
        raise UsageError(f"{given}; use lowercase letters, digits and single dashes")
    refuse_existing(options.out, options.overwrite)
    report = options.report
    if report is not None and report.is_file() and not options.overwrite:
        with report.open("rb") as file:
            if file.readline(len(CSV_HEADER)) not in (b"", CSV_HEADER.encode()):
                raise SeqscopeError(
                    f"{report} is no list of bad rows. Choose another --report, or replace it with --overwrite."
                )
    for path in options.read:
        if not path.is_dir():
            expect_file(path)


@contextlib.contextmanager
def _open_workshop(options: ImportOptions, say: Callable[[str], None]) -> Iterator[tuple[Path, Workshop]]:
    """The dataset's folder, staged, and a workshop in it, which is gone when the folder takes its place."""
    with staging(options.out, overwrite=options.overwrite) as folder:
        work = folder / "work"
        work.mkdir()
        with connect_file(work, memory=options.memory, threads=options.threads) as con:
            yield folder, Workshop(con, work, Findings(con, each=None), say)
        shutil.rmtree(work)


def _check_sets(source: Source, options: ImportOptions) -> None:
    """Raises UsageError where the split, or what is left out, does not go with sets of items per user."""
    kind = options.split.kind
    if options.test is not None and not source.sets:
        names = ", ".join(name for name, other in SOURCES.items() if other.sets)
        raise UsageError(f"--test: {source.name} has no file of held-out items; formats that have one: {names}")
    if (kind == "given") != (options.test is not None):
        raise UsageError(
            "--test: the file says what is held out; leave out --split"
            if options.test
            else "a given split needs --test FILE"
        )
    if source.sets and not options.split.sets:
        raise UsageError(
            f"{source.name} has no order of events, so --split {kind} is impossible: name the held-out items with --test FILE, "
            "or hold out users with --split users"
        )
    if options.split.sets and options.repeats == "count":
        raise UsageError(f"--repeats count: a user has an item once in the split {kind!r}; leave it out")
    if kind == "given" and (options.k_core or options.min_history > 1):
        raise UsageError("--k-core and --min-history would change the split that --test gives; leave them out")


def _import(options: ImportOptions, workshop: Workshop, folder: Path) -> ImportResult:
    source = SOURCES[options.source or ""]
    k_core = source.k_core if options.k_core is None else options.k_core
    findings, notices = workshop.findings, Counter[str]()

    reading = source.open(options, workshop)
    items_file = open_items(options.items, options, workshop) if options.items else reading.items
    if items_file is not None and any(path.samefile(items_file.path) for path in reading.log.files):
        items_file = _log_itself(items_file, reading.log.readings[0])
        workshop.say(
            f"{items_file.path.name}: the log is its own catalogue: of each item the first title, and the columns of which every "
            "item has one value"
        )
    columns = options.columns
    of_items = {"item-id-column": columns.item_id, "title-column": columns.title, "list-column": options.list_columns}
    if items_file is None and (given := [flag for flag, value in of_items.items() if value]):
        raise UsageError(f"--{given[0]} says something of the item file, and none is read: name it with --items")
    item_map = read_item_map(workshop, options.item_map, options.encoding) if options.item_map else None
    size = sum(path.stat().st_size for path in reading.log.files)
    if size > LARGE:
        workshop.say(f"reading {size / 1e6:,.0f} MB; about a minute for every 300 MB")
    events = read_log(workshop.con, reading.log, workshop.folder, findings, options, item_map)
    left_out = dict(sum((Counter(rows_left_out(path)) for path in reading.log.files), Counter[str]()))
    if events.below_rating:
        left_out[f"rated below {options.min_rating:g}"] = events.below_rating
    if events.dropped_negative:
        left_out["negative quantity"] = events.dropped_negative
    _expect_events(events, options, workshop)
    notices["user on several lines, whose items were joined"] = events.scattered
    if events.liked_from is not None:
        low = warning_words("rating_low", scale_words(events.liked_from))
        notices[f"{low[:-1]} (--min-rating)."] = events.low_ratings
    log = _filter(events, options, k_core, left_out, ordered=not source.sets)
    other = {"count": "--repeats first drops them", "first": "--repeats count keeps them"}[log.repeats]
    free = options.repeats == "auto" and not options.split.sets  # in sets a user has an item once
    offered = f" ({other})" if free and log.measured["repeated_events"] else ""
    if not source.sets:
        workshop.say(f"repeats: {in_words(log.measured, log.repeats)}{offered}")

    if items_file is not None and len(items_file.id_columns) > 1:
        # All items of the log decide, not those that the k-core kept: fewer of these may be in the file.
        chosen = choose_id_column(items_file, set(events.items.to_pylist()))
        workshop.say(
            f"{items_file.path.name}: the log's items are in the column {chosen} (--item-id-column names another)"
        )
        items_file = dataclasses.replace(items_file, id_columns=(chosen,))
    ids, titles, attributes, unused = read_catalogue(
        items_file, log.items.to_pylist(), findings, notices, keep_unused=options.keep_unused_items
    )
    counts = findings.bad_rows()
    if counts and options.strict:
        _stop_for_bad_rows(workshop, options, "nothing was written, because of --strict")
    _write_report(workshop, options)
    if unused and not options.keep_unused_items:
        left_out["items that no user has"] = unused

    lines = _noticed(notices)
    time = None if log.rows.time is None else _seconds(log.rows.time, options, lines)
    time_unit = "none" if source.sets else "order" if time is None else "second" if np.any(time % DAY) else "day"
    info = write_dataset(
        folder, staged=True, name=options.name or options.out.name, title=options.title or source.title,
        source=options.about or source.about,
        licence=options.licence or source.licence, simulated=False, items=attribute_table(ids, titles, attributes),
        users=log.users, user=log.rows.user, item=log.rows.item, timestamp=time, time_unit=time_unit, split=options.split,
        options=options.record(source.name, k_core, log.repeats), left_out=counts | left_out,
        repeats=log.repeats, measured=log.measured, moments=log.rows.time, negative=log.rows.negative,
        tested=log.rows.tested,
    )  # fmt: skip
    if items_file is None:
        workshop.say("no catalogue: ids stand in for titles (--items FILE names one)")
    return ImportResult(info, findings.first(SHOWN_PROBLEMS, by_line=True), counts, lines)


_OF_EVENTS = ("user", "time", "clock", "weight", "quantity")
"""Roles of columns that say nothing of items."""


def _log_itself(file: ItemFile, log: Reading) -> ItemFile:
    """The file as a catalogue, where it is read as a log so."""
    item = log.column("item")
    events = frozenset(column.name for column in log.columns if column.role in _OF_EVENTS)
    return file if item is None else dataclasses.replace(file, id_columns=(item.name,), of_events=events)


def _expect_events(events: Events, options: ImportOptions, workshop: Workshop) -> None:
    """Raises SeqscopeError where no event is left, or those of one user alone."""
    if not len(events.user):
        if events.dropped_negative:
            negative = f"{count(events.dropped_negative, 'has', 'have')} a negative quantity"
            raise SeqscopeError(f"no event is left: {negative}. Is it the right column? Leave out --drop-negative.")
        if events.below_rating:
            rated = f"{count(events.below_rating, 'is', 'are')} rated below {options.min_rating:g}"
            raise SeqscopeError(f"no event is left: {rated}. Lower --min-rating.")
        _stop_for_bad_rows(workshop, options, "no good row is left")
    if len(events.users) == 1:
        raise SeqscopeError(
            f"the whole log belongs to one user ({events.users[0].as_py()!r}), and a recommender learns from many. "
            "Is the user column the right one? Name it with --user-column."
        )


def _seconds(moments: np.ndarray, options: ImportOptions, lines: list[str]) -> np.ndarray | None:
    """Microseconds as unix seconds; None where they are no dates, but places or steps: as moments, all would lie in 1970.
    `lines` is told of what looks wrong."""
    time = moments // MICRO  # the order within a second is settled
    named = options.time_unit or options.time_format or options.split.kind == "time"
    if not named and len(time) and int(time.max()) < 365 * DAY:
        lines.append(
            f"times from {time.min():,} to {time.max():,} are no dates: they order the events, and say no more "
            "(--time-unit reads them as moments)"
        )
        return None
    if int(time.max()) < 10 * 365 * DAY:
        lines.append(
            "all times lie before 1980: are they seconds? --time-unit names another unit, --time-column - takes the row order"
        )
    return time


def _noticed(notices: Mapping[str, int]) -> list[str]:
    return [f"{rows:,} × {notice}" for notice, rows in notices.items() if rows]


class _Rows(NamedTuple):
    """Events of a log, column by column."""

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray | None
    """Microseconds."""
    negative: np.ndarray | None
    """Of a negative quantity; None where the log has no quantities."""
    tested: np.ndarray | None
    """Of a file of held-out items; None where there is none."""

    def at(self, which: np.ndarray) -> _Rows:
        """which: places, or a mask."""
        return _Rows(*(None if column is None else column[which] for column in self))  # type: ignore[arg-type]

    def where(self, stays: np.ndarray, reason: str, left_out: dict[str, int]) -> _Rows:
        """Those that stay (bool [events]); how many do not is noted."""
        dropped = int(len(stays) - np.count_nonzero(stays))
        if not dropped:
            return self
        left_out[reason] = dropped
        return self.at(stays)


@dataclass(frozen=True)
class _Log:
    """What is left of a log, sorted by user and time, users and items numbered anew; their ids; whether repeats count, and what
    was measured of them."""

    rows: _Rows
    users: pa.ChunkedArray
    items: pa.ChunkedArray
    repeats: Literal["count", "first"]
    measured: dict[str, float]


def _filter(events: Events, options: ImportOptions, k_core: int, left_out: dict[str, int], *, ordered: bool) -> _Log:
    """ordered False: by item within a user."""
    order = (
        time_order(events.user, events.item, events.time, options.ties, options.seed)
        if ordered
        else np.lexsort((events.item, events.user))
    )
    rows = _Rows(events.user, events.item, events.time, events.negative, events.tested).at(order)
    del order
    if rows.tested is not None:
        rows = rows.where(~in_training(rows.user, rows.item, rows.tested), IN_TRAINING, left_out)
    if rows.tested is not None:
        rows = rows.where(~without_training(rows.user, rows.tested), NO_TRAINING, left_out)
        if not len(rows.user):
            names = ", ".join(map(str, options.paths))
            raise SeqscopeError(f"{options.test}: nobody in it has items in {names}. Are they files of one split?")

    if options.duplicates == "exact" and rows.time is not None:
        again = repeated(rows.user, rows.item, rows.time)
        rows = rows.where(~again, "same user, item and time again", left_out)
    in_core, outside = _core(rows, options, k_core)
    measured = measure(in_core.user, in_core.item, _tested(in_core, options))
    rule = "first" if options.split.sets else propose(measured) if options.repeats == "auto" else options.repeats
    repeats: Literal["count", "first"] = "count" if rule == "count" else "first"
    if repeats == "first" and measured["repeated_events"]:
        rows = rows.where(~repeated(rows.user, rows.item), "same user and item again", left_out)
        in_core, outside = _core(rows, options, k_core)
    if outside:
        left_out[_core_reason(k_core, options.min_history)] = outside
    user, used_users = renumber(in_core.user, len(events.users))
    item, used_items = renumber(in_core.item, len(events.items))
    if len(used_users) == 1:
        raise SeqscopeError(
            "only one user is left, and a recommender learns from many. Lower --k-core or --min-history."
        )
    users, items = events.users.take(pa.array(used_users)), events.items.take(pa.array(used_items))
    return _Log(in_core._replace(user=user, item=item), users, items, repeats, measured)


def _core(rows: _Rows, options: ImportOptions, k_core: int) -> tuple[_Rows, int]:
    """The events in the core, and how many lie outside."""
    stays = core(rows.user, rows.item, max(k_core, options.min_history), k_core)
    outside = int(len(stays) - np.count_nonzero(stays))
    if outside == len(stays):
        raise SeqscopeError(
            f"Events {_core_reason(k_core, options.min_history)}: that leaves out every one of the {outside:,} events. "
            "Lower --k-core or --min-history."
        )
    return (rows.at(stays) if outside else rows), outside


def _tested(rows: _Rows, options: ImportOptions) -> np.ndarray:
    """bool [events]: which events the test would ask for, if all stayed; none where nobody would be left to ask."""
    if rows.tested is not None:
        return rows.tested
    starts = np.flatnonzero(np.append(True, rows.user[1:] != rows.user[:-1]))
    time = None if rows.time is None else rows.time // MICRO
    try:
        roles, _ = split_roles(options.split, np.append(starts, len(rows.user)).astype(np.int64), time)
    except SeqscopeError:  # it may have a split without its repeats; if it has none, that is refused where it is split
        return np.zeros(len(rows.user), bool)
    return roles == Role.TEST


def _core_reason(k_core: int, min_history: int) -> str:
    """Behind a number of events: any number reads well."""
    parts = [f"from users or items with fewer than {k_core} events"] if k_core > 1 else []
    parts += [f"from users with fewer than {min_history} events"] if min_history > max(k_core, 1) else []
    return " or ".join(parts)


def _stop_for_bad_rows(workshop: Workshop, options: ImportOptions, why: str) -> NoReturn:
    counts = workshop.findings.bad_rows()
    _write_report(workshop, options)
    total = sum(counts.values())
    if not total:
        raise SeqscopeError(f"There are no rows in {', '.join(map(str, options.paths))}.")
    first = workshop.findings.first(SHOWN_PROBLEMS, by_line=True)
    raise BadRows(f"{count(total, 'bad row')}, and {why}.", first, counts)


def _write_report(workshop: Workshop, options: ImportOptions) -> None:
    """Where there is to be one."""
    if options.report is None:
        return
    try:
        workshop.findings.write(workshop.folder / "findings.parquet", options.report)
    except duckdb.Error as error:
        raise SeqscopeError(
            f"the report {options.report} cannot be written ({first_line(error)}). Choose another --report."
        )


# --- a catalogue without a log


NO_LOG = "none"
"""The split of a dataset without a log."""
SOURCE = "A catalogue without a log."
LICENCE = "Not stated."


def import_catalogue(options: ImportOptions, say: Callable[[str], None] = lambda line: None) -> ImportResult:
    """Make a dataset of the one item file in `options.paths`; what is said of logs in `options` plays no part."""
    _check_paths(options)
    path, notices = options.paths[0], Counter[str]()
    with _open_workshop(options, say) as (folder, workshop):
        findings, source = workshop.findings, open_items(path, options, workshop)
        if len(source.id_columns) > 1:
            workshop.say(
                f"{path.name}: the items' ids are in the column {choose_id_column(source, set())} "
                "(--item-id-column names another)"
            )
        ids, titles, attributes, _ = read_catalogue(source, [], findings, notices, keep_unused=True)
        counts = findings.bad_rows()
        if not ids or (counts and options.strict):
            why = "nothing was written, because of --strict" if ids else "no good row is left"
            _stop_for_bad_rows(workshop, options, why)
        _write_report(workshop, options)
        info = fill_catalogue(
            folder, name=options.name or options.out.name, title=options.title or "A catalogue",
            source=options.about or SOURCE, licence=options.licence or LICENCE, items=attribute_table(ids, titles, attributes),
            options=_record(path, options), left_out=counts,
        )  # fmt: skip
        return ImportResult(info, findings.first(SHOWN_PROBLEMS, by_line=True), counts, _noticed(notices))


def fill_catalogue(
    folder: Path,
    *,
    name: str,
    title: str,
    source: str,
    licence: str,
    items: pa.Table,
    options: Mapping[str, Any] | None = None,
    left_out: Mapping[str, int] | None = None,
) -> DatasetInfo:
    """Write the files of a dataset without a log into a folder that exists. items: as `write_dataset` takes it."""
    info = DatasetInfo(
        name=name, title=title, source=source, licence=licence, simulated=False,
        counts={"users": 0, "items": items.num_rows, "events": 0, "train": 0, "valid": 0, "test": 0},
        lengths={"min": 0.0, "median": 0.0, "mean": 0.0, "max": 0.0},
        sparsity=1.0,
        time={"unit": "order", "first": None, "last": None, "ties": 0},
        split={"kind": NO_LOG},
        options=dict(options or {}),
        left_out=dict(left_out or {}),
        fingerprint=fingerprint_of_catalogue(items),
        created=now(),
        created_by=f"seqscope {__version__}",
        attributes=[column for column in items.column_names if column not in ("item_id", "title")],
    )  # fmt: skip
    nothing = np.empty(0, np.int32)
    write_files(folder, info, items, pa.array([], pa.string()), nothing, nothing, None, nothing.astype(np.int8))
    Dataset(folder)
    return info


def fingerprint_of_catalogue(items: pa.Table) -> str:
    """sha256 (hex) over ids and texts: without a log, what is said of the items is all that a model goes by."""
    digest = hashlib.sha256(b"a catalogue without a log\0")
    for name in items.column_names:
        digest.update(json.dumps(name).encode() + b"\1")
        for value in items[name].to_pylist():
            digest.update(json.dumps(value, default=str).encode() + b"\0")
    return digest.hexdigest()


def _record(path: Path, options: ImportOptions) -> dict[str, Any]:
    """The options as dataset.json keeps them."""
    columns = {"item_id": options.columns.item_id, "title": options.columns.title}
    return {
        "source": "catalogue", "items": path.name, "columns": columns, "delimiter": options.delimiter,
        "encoding": options.encoding, "list_columns": list(options.list_columns),
    }  # fmt: skip
