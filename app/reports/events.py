"""Events of many histories, in any order → the histories: sorted by DuckDB, which takes to the disk what memory cannot hold."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from app.reports.bounds import TooMuch, Watch
from app.reports.columns import Columns
from app.text import short
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from engine.tabular.database import first_line, settings
from engine.tabular.reading import MB

MEMORY = "256MB"
SPILL = "spill"
"""A folder in `work`."""
_BATCH = 100_000  # events read at a time
_EVENTS = pa.schema([("user", pa.string()), ("item", pa.string()), ("time", pa.string())])

One = tuple[str, npt.NDArray[np.int64], int]
"""A history's name, its item numbers, and how many of its events are of unknown items."""


def of_objects(
    objects: Callable[[], Iterator[tuple[int, Any]]], path: Path, columns: Columns
) -> Iterator[pa.RecordBatch]:
    """Objects of one event each, with the numbers of their lines."""
    roles = _roles(columns)
    lines = objects()
    while some := list(itertools.islice(lines, _BATCH)):
        rows: dict[str, list[str | None]] = {role: [] for role in _EVENTS.names}
        for number, entry in some:
            if not isinstance(entry, dict) or columns.user not in entry or columns.items not in entry:
                raise SeqscopeError(f"{path.name}, line {number}: needs a user and an item, or a list of items.")
            for role, values in rows.items():
                value = entry.get(roles[role]) if role in roles else None
                values.append(None if value is None else str(value))
        yield pa.record_batch(rows, _EVENTS)


def of_parquet(path: Path, columns: Columns) -> Iterator[pa.RecordBatch]:
    try:
        roles = _roles(columns)
        for batch in pq.ParquetFile(path).iter_batches(_BATCH, columns=list(dict.fromkeys(roles.values()))):
            yield _as_events(batch, roles)
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise SeqscopeError(f"{path.name} cannot be read: {short(str(error), 200)}") from None


def of_csv(path: Path, columns: Columns, separator: str) -> Iterator[pa.RecordBatch]:
    roles = _roles(columns)
    for batch in texts(path, separator, list(dict.fromkeys(roles.values()))):
        yield _as_events(batch, roles)


def texts(path: Path, separator: str, wanted: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The columns of a table, packed or not; every value is a text. wanted: those that are read; None: all."""
    try:
        parse = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
        with pa.csv.open_csv(path, parse_options=parse) as first:
            names = first.schema.names
        columns = list(dict.fromkeys(names)) if wanted is None else wanted
        convert = pa.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), include_columns=columns)
        with pa.csv.open_csv(path, parse_options=parse, convert_options=convert) as reader:
            yield from reader
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SeqscopeError(f"{path.name} cannot be read: {short(str(error), 200)}") from None


def _as_events(batch: pa.RecordBatch, roles: Mapping[str, str]) -> pa.RecordBatch:
    columns = {role: batch[name].cast(pa.string()) for role, name in roles.items()}
    return pa.record_batch({"time": pa.nulls(len(batch), pa.string()), **columns}).select(_EVENTS.names).cast(_EVENTS)


@contextlib.contextmanager
def reading(
    batches: Iterator[pa.RecordBatch], path: Path, models: Zoo, work: Path, watch: Watch
) -> Iterator[tuple[int, Callable[[], Iterator[One]]]]:
    """(how many histories, a function that reads them all). batches: user, item and time as texts, in the order of the rows."""
    most = {} if watch.bounds is None else {"max_temp_directory_size": f"{watch.bounds.spill // MB}MB"}
    con = duckdb.connect(":memory:", config=settings(MEMORY, 2, work / SPILL) | most)
    clock = None if watch.left is None else threading.Timer(watch.left, con.interrupt)
    try:
        if clock is not None:
            clock.daemon = True
            clock.start()
        con.execute("set enable_external_access = false; set lock_configuration = true")
        con.register("known", pa.table({"what": models.items["item_id"], "item": models.items["item"]}))
        con.execute("create table catalogue as select * from known")
        con.execute("create table events (nr bigint, who varchar, item integer, moment varchar)")
        rows = 0
        for batch in batches:
            watch.rows(len(batch))
            watch.text(batch.nbytes)
            numbered = pa.table([np.arange(rows, rows + len(batch)), *batch.columns], ["nr", "who", "what", "moment"])
            con.register("given", numbered)
            con.execute(
                "insert into events select nr, who, item, moment from given left join catalogue using (what) "
                "where who is not null and who != ''"
            )
            rows += len(batch)
        con.execute("create table people as select who, min(nr) as first from events group by who")
        texts = _count(con, "events where moment is not null and try_cast(moment as double) is null")
        total = _count(con, "people")
        if not total:
            raise SeqscopeError(f"{path.name} has no events.")
        watch.on_time()
        watch.read()
        if clock is not None:
            clock.cancel()
        order = "moment" if texts else "try_cast(moment as double)"
        yield total, lambda: _sorted(con, order)
    except duckdb.OutOfMemoryException:
        room = (
            "the disk has" if watch.bounds is None else f"the {watch.bounds.spill // MB:,} MB of disk that it may have"
        )
        raise TooMuch(
            f"{path.name} takes more to sort than {MEMORY} of memory and {room}. Divide it, and take a part at a time."
        ) from None
    except duckdb.InterruptException:
        raise watch.late() from None
    except duckdb.Error as error:
        raise SeqscopeError(f"{path.name} cannot be read: {short(first_line(error), 200)}") from None
    finally:
        if clock is not None:
            clock.cancel()
        con.close()


def _count(con: duckdb.DuckDBPyConnection, what: str) -> int:
    ((number,),) = con.execute(f"select count(*) from {what}").fetchall()
    return int(number)


def _sorted(con: duckdb.DuckDBPyConnection, order: str) -> Iterator[One]:
    """Histories in the order of their first row; within one by time, and by row where that is the same."""
    ordered = con.sql(
        "select first, who, coalesce(item, -1)::bigint as item from events join people using (who) "
        f"order by first, {order} nulls last, nr"
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
                yield _one(name, parts)
                parts = []
            key, name = firsts[start], batch["who"][start].as_py()
            parts.append(items[start:end])
    if key != -1:
        yield _one(name, parts)


def _one(name: str, parts: list[npt.NDArray[np.int64]]) -> One:
    events = np.concatenate(parts)
    known = events[events >= 0]
    return name, known, len(events) - len(known)


def _roles(columns: Columns) -> dict[str, str]:
    """Role → column; the time may be missing."""
    roles = {"user": columns.user, "item": columns.items, "time": columns.time}
    return {role: name for role, name in roles.items() if name is not None}
