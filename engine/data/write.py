"""Write a prepared dataset, used by every importer and by the sample generator: a folder that appears whole or not at all."""

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine import __version__
from engine.data.dataset import Dataset, DatasetInfo, Role, fingerprint
from engine.data.ragged import Ragged, offsets_of
from engine.data.repeats import count_held_out, count_untrained, repeated
from engine.data.split import SplitOptions, split_roles
from engine.errors import SeqscopeError, UsageError
from engine.files import contents, expect_no_file, staged_folder
from engine.machine import now


def refuse_existing(out: Path, overwrite: bool) -> None:
    """Fail early, before any work, where `out` must not be written."""
    expect_no_file(out)
    if not out.exists() or not any(out.iterdir()):
        return
    if not overwrite:
        raise SeqscopeError(f"{out} exists already. Choose another --out, or replace it with --overwrite.")
    # exported models have a dataset.json beside them, too
    if lacks := [name for name in ("dataset.json", "interactions.parquet") if not (out / name).exists()]:
        raise SeqscopeError(
            f"{out} is not a dataset (it has no {lacks[0]}), so --overwrite does not replace it. Choose another --out."
        )


@contextlib.contextmanager
def staging(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """As `staged_folder`; what people keep in `out` beside a dataset stays. Raises SeqscopeError where `out` must not be written,
    or cannot be."""
    refuse_existing(out, overwrite)
    try:
        with staged_folder(out) as folder:
            yield folder
            refuse_existing(out, overwrite)  # somebody else may have written it meanwhile
            for name in contents(out) - contents(folder):
                if not any(fnmatch(name, pattern) for pattern in OF_DATASETS):
                    _copy(out / name, folder / name)
    except OSError as error:
        where = error.filename or out
        raise SeqscopeError(
            f"{where} cannot be read or written ({error.strerror or error}). Check the path, its permissions and the free space."
        )


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


OF_DATASETS = (
    "dataset.json", "items.parquet", "users.parquet", "interactions.parquet", "negatives-*.npy", "words",
)  # fmt: skip
"""Patterns of what a dataset's folder holds: its files, and what is computed of them later. All else in it is somebody's."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TIME_UNITS = ("second", "day", "order", "none")
ROW_GROUP = 1 << 20
"""Events per Parquet row group: a reader that streams holds about 20 MB at a time."""


def write_dataset(
    out: Path | str,
    *,
    name: str,
    title: str,
    source: str,
    licence: str,
    simulated: bool,
    items: pa.Table,
    users: Sequence[str] | pa.Array | pa.ChunkedArray,
    user: np.ndarray,
    item: np.ndarray,
    timestamp: np.ndarray | None,
    time_unit: str,
    split: SplitOptions = SplitOptions(),  # noqa: B008 (frozen)
    options: Mapping[str, Any] | None = None,
    left_out: Mapping[str, int] | None = None,
    repeats: Literal["count", "first"] | None = None,
    measured: Mapping[str, float] | None = None,
    moments: np.ndarray | None = None,
    negative: np.ndarray | None = None,
    tested: np.ndarray | None = None,
    overwrite: bool = False,
    staged: bool = False,
) -> DatasetInfo:
    """Split a log, write it as the dataset folder `out`, open it once as a check, and only then let it appear.

    name … simulated, options, left_out, repeats, measured: fields of `DatasetInfo`.
    items: item_id (string), title (string), then any attribute columns; row i is item i.
    users: user_id of user 0, 1, …
    user, item: int [events], sorted by user, each user's events oldest first.
    timestamp: int64 [events], unix seconds, ascending within a user; None where the source has only an order.
    time_unit: "second", "day" (times are midnights), "order" (no times) or "none" (no times and no order).
    moments: int64 [events], `timestamp` to the microsecond, which says what ties; None where seconds are all there is.
    negative: bool [events], the quantity is negative; None where the source has no quantities.
    tested: bool [events], what the test asks for; of a given split alone.
    staged: `out` is a folder that the caller has staged.
    """
    with contextlib.nullcontext(Path(out)) if staged else staging(Path(out), overwrite=overwrite) as folder:
        if not NAME.fullmatch(name):
            raise UsageError(f"dataset name {name!r}: use lowercase letters, digits and single dashes, such as ml-1m")
        if not isinstance(users, pa.ChunkedArray):
            users = pa.chunked_array([pa.array(users, pa.string())])
        offsets = _check_log(items, len(users), user, item, timestamp, time_unit)
        roles, described = split_roles(split, offsets, timestamp, tested)
        events = Ragged(np.ascontiguousarray(item, np.int32), offsets)
        item_ids = items["item_id"].to_pylist()
        test_rows = np.flatnonzero(roles == Role.TEST)
        held_out = count_untrained(test_rows, events.values, roles == Role.TRAIN, few=split.sets)
        if not split.sets:  # nothing comes before an item of a set
            times = timestamp if moments is None else moments
            held_out |= count_held_out(test_rows, offsets, events.values, times, negative)
        info = DatasetInfo(
            name=name, title=title, source=source, licence=licence, simulated=simulated,
            counts={
                "users": len(users), "items": items.num_rows, "events": len(events.values),
                "train": int(np.count_nonzero(roles == Role.TRAIN)),
                "valid": len(np.unique(user[roles == Role.VALID])),
                "test": len(np.unique(user[test_rows])),
            },
            lengths={
                "min": float(events.lengths.min()), "median": float(np.median(events.lengths)),
                "mean": round(float(events.lengths.mean()), 4), "max": float(events.lengths.max()),
            },
            sparsity=1 - int(np.count_nonzero(~repeated(user, events.values))) / (len(users) * items.num_rows),
            time=describe_time(user, timestamp, time_unit),
            split=described,
            options=dict(options or {}),
            left_out=dict(left_out or {}),
            fingerprint=fingerprint(item_ids, events, timestamp, roles, repeats),
            created=now(),
            created_by=f"seqscope {__version__}",
            attributes=[column for column in items.column_names if column not in ("item_id", "title")],
            repeats=repeats,
            measured=dict(measured or {}),
            held_out=held_out,
        )  # fmt: skip

        write_files(folder, info, items, users, user, item, timestamp, roles)
        written = Dataset(folder)
        if fingerprint(item_ids, written.events, written.timestamps, written.roles, repeats) != info.fingerprint:
            raise SeqscopeError(
                f"{folder}: what was written does not read back the same. Is the disk in order? Import again."
            )
        return info


def write_files(
    folder: Path,
    info: DatasetInfo,
    items: pa.Table,
    users: pa.Array | pa.ChunkedArray,
    user: np.ndarray,
    item: np.ndarray,
    timestamp: np.ndarray | None,
    roles: np.ndarray,
) -> None:
    """The four files, of arrays as `write_dataset` takes them; roles: int8 [events].

    The log is streamed, one row group at a time, so that no second copy of it is held.
    """
    table = items.select(["item_id", "title", *info.attributes])
    table = table.add_column(0, "item", pa.array(np.arange(items.num_rows, dtype=np.int32)))
    pq.write_table(table, folder / "items.parquet", compression="zstd")
    numbers = pa.array(np.arange(len(users), dtype=np.int32))
    pq.write_table(pa.table({"user": numbers, "user_id": users}), folder / "users.parquet", compression="zstd")
    schema = pa.schema([("user", pa.int32()), ("item", pa.int32()), ("timestamp", pa.int64()), ("role", pa.int8())])
    with pq.ParquetWriter(folder / "interactions.parquet", schema, compression="zstd") as writer:
        for start in range(0, len(user), ROW_GROUP):
            rows = slice(start, start + ROW_GROUP)
            times = (
                pa.nulls(len(user[rows]), pa.int64()) if timestamp is None else pa.array(timestamp[rows], pa.int64())
            )
            columns = [pa.array(user[rows], pa.int32()), pa.array(item[rows], pa.int32()), times, pa.array(roles[rows])]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)
    (folder / "dataset.json").write_text(info.to_json(), "utf-8")


def describe_time(user: np.ndarray, timestamp: np.ndarray | None, unit: str) -> dict[str, Any]:
    """`DatasetInfo.time`. A tie is an event that has the user and the time of the event before it."""
    if timestamp is None:
        return {"unit": unit, "first": None, "last": None, "ties": 0}
    ties = np.count_nonzero((user[1:] == user[:-1]) & (timestamp[1:] == timestamp[:-1]))
    return {"unit": unit, "first": int(timestamp.min()), "last": int(timestamp.max()), "ties": int(ties)}


def _check_log(
    items: pa.Table, num_users: int, user: np.ndarray, item: np.ndarray, timestamp: np.ndarray | None, time_unit: str
) -> np.ndarray:
    """Offsets (int64 [users + 1]) of a log that keeps the layout's rules; a broken rule is the caller's mistake."""
    if items.column_names[:1] != ["item_id"] or "title" not in items.column_names or "item" in items.column_names:
        raise ValueError(f"items needs item_id first, then title and attributes, not {items.column_names}")
    if items["item_id"].null_count or items["title"].null_count:
        raise ValueError("every item needs an item_id and a title")
    if time_unit not in TIME_UNITS or (time_unit in ("order", "none")) != (timestamp is None):
        raise ValueError(f"time unit {time_unit!r} with {'no' if timestamp is None else 'given'} times")
    if not len(user):
        raise SeqscopeError("no event is left to make a dataset of. Check the filters and the bad rows.")
    if len(user) != len(item) or (timestamp is not None and len(timestamp) != len(user)):
        raise ValueError("user, item and timestamp must be equally long")
    if user[0] < 0 or np.any(user[1:] < user[:-1]) or user[-1] >= num_users:
        raise ValueError("events must be sorted by user, users numbered from 0")
    if item.min() < 0 or item.max() >= items.num_rows:
        raise ValueError(f"items must lie in 0..{items.num_rows - 1}")
    if timestamp is not None and np.any((timestamp[1:] < timestamp[:-1]) & (user[1:] == user[:-1])):
        raise ValueError("each user's events must be sorted by time")
    return offsets_of(np.bincount(user, minlength=num_users))
