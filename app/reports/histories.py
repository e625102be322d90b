"""Many histories from a file, or the people of a dataset, a chunk at a time: memory does not grow with their number.

    with histories.reading(Path("histories.csv"), models, work) as found:
        for chunk in found.chunks(4_096):      # found.total histories in all
            …                                  # chunk.names, chunk.events, chunk.unknown

.csv, .tsv (also .gz), .parquet    one event per row: user, item and, where there is one, time; else the order of the rows counts
.jsonl                             the same as objects, or one history per line: {"user": …, "items": […]} or […]
.parquet                           also one history per row: user, items (a list)
.txt                               one history per line: item_ids with blanks between them
PEOPLE                             those of the dataset itself, users.parquet
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.reports import events
from app.reports.bounds import Bounds, Watch
from app.reports.events import One, match, named
from app.text import short
from engine.errors import SeqscopeError
from engine.runtime import Zoo

PEOPLE = "people"
_LINE = 16 << 20  # characters of one line


class Chunk(NamedTuple):
    names: list[str]
    events: list[npt.NDArray[np.int64]]
    """Item numbers, oldest first."""
    unknown: int
    """Events of items that the catalogue does not have; they are left out."""


@dataclass(frozen=True)
class Histories:
    total: int
    _source: Any

    def chunks(self, size: int) -> Iterator[Chunk]:
        """The same histories in the same order, every time."""
        names: list[str] = []
        found: list[npt.NDArray[np.int64]] = []
        unknown = 0
        for name, own, missing in self._source():
            names.append(name)
            found.append(own)
            unknown += missing
            if len(names) == size:
                yield Chunk(names, found, unknown)
                names, found, unknown = [], [], 0
        if names:
            yield Chunk(names, found, unknown)


@contextlib.contextmanager
def reading(
    source: Path | str,
    models: Zoo,
    work: Path,
    columns: Mapping[str, str] | None = None,
    bounds: Bounds | None = None,
) -> Iterator[Histories]:
    """work: a folder for what does not fit into memory. columns: role → name, where the names of `NAMES` do not do.

    Raises SeqscopeError where the file cannot be read as histories, or is beyond the bounds.
    """
    if source == PEOPLE:
        if not models.users.num_rows:
            raise SeqscopeError(
                f"{models.info.name} was exported without its people, so it has no histories of its own."
            )
        yield Histories(models.users.num_rows, lambda: _people(models))
        return
    path, columns = Path(source), columns or {}
    if not path.is_file():
        raise SeqscopeError(f"There is no file {path}.")
    kind, watch = _kind(path), Watch(path, bounds)
    watch.unpacked()
    if kind == "lines":
        total = _count_lines(path, watch)
        watch.read()
        yield Histories(total, lambda: _lines(path, models))
        return
    if kind == "jsonl":
        first = next(_objects(path), None)
        if first is None:
            raise SeqscopeError(f"{path.name} is empty.")
        if isinstance(first[1], list) or _own_list(first[1], columns) is not None:
            total = _count_lists(path, columns, watch)
            watch.read()
            yield Histories(total, lambda: _lists(path, models, columns))
            return
        objects = events.of_objects(lambda: _objects(path), path, columns)
        with events.reading(objects, path, models, work, watch) as (total, found):
            yield Histories(total, found)
        return
    if kind == "parquet":
        schema = _schema(path)
        lists = [name for name in schema.names if _is_list(schema.field(name).type)]
        wanted = columns.get("items") or match(lists, "items") or (lists[0] if len(lists) == 1 else None)
        if wanted is not None:
            user = columns.get("user") or match([name for name in schema.names if name not in lists], "user")
            watch.rows(_values(path, wanted))
            watch.read()
            yield Histories(pq.ParquetFile(path).metadata.num_rows, lambda: _listed(path, models, wanted, user))
            return
        watch.rows(pq.ParquetFile(path).metadata.num_rows)
        with events.reading(events.of_parquet(path, columns), path, models, work, Watch(path, bounds)) as (
            total,
            found,
        ):
            yield Histories(total, found)
        return
    with events.reading(events.of_csv(path, columns, _separator(path)), path, models, work, watch) as (total, found):
        yield Histories(total, found)


def _separator(path: Path) -> str:
    """Of a table: what stands most often in its first line."""
    with _text(path) as lines:
        first = next(lines, "")
    return max("\t,;|", key=first.count)


def _kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    for ending, kind in (
        (".csv", "csv"),
        (".tsv", "csv"),
        (".jsonl", "jsonl"),
        (".ndjson", "jsonl"),
        (".txt", "lines"),
    ):
        if name.endswith(ending):
            return kind
    if path.name.lower().endswith(".parquet"):
        return "parquet"
    raise SeqscopeError(
        f"{path.name}: histories are read from .csv, .tsv, .jsonl, .txt (each also with .gz) and .parquet; rename the file."
    )


# --- histories that come whole


def _people(models: Zoo) -> Iterator[One]:
    for batch in models.users.select(["user_id", "history"]).to_batches(max_chunksize=4_096):
        for name, own in zip(batch["user_id"].to_pylist(), batch["history"], strict=True):
            yield name, own.values.to_numpy(zero_copy_only=False).astype(np.int64), 0


def _known(models: Zoo, ids: list[str]) -> tuple[npt.NDArray[np.int64], int]:
    found = [models.position(item_id) for item_id in ids]
    known = np.array([item for item in found if item is not None], np.int64)
    return known, len(ids) - len(known)


@contextlib.contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    with gzip.open(path, "rt", encoding="utf-8-sig") if _packed(path) else path.open(encoding="utf-8-sig") as file:
        yield _bounded(file, path)


def _packed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _bounded(file: Any, path: Path) -> Iterator[str]:
    try:
        while line := file.readline(_LINE):
            if len(line) == _LINE:
                raise SeqscopeError(f"{path.name} has a line of more than {_LINE:,} characters.")
            yield line
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise SeqscopeError(f"{path.name} cannot be read as text in UTF-8 ({error}).") from None


def _count_lines(path: Path, watch: Watch) -> int:
    total = 0
    with _text(path) as lines:
        for line in lines:
            if line.strip():
                total += 1
                watch.rows(line.count(" ") + 1)
    return total


def _lines(path: Path, models: Zoo) -> Iterator[One]:
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield str(number), *_known(models, line.split())


def _objects(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, value); every value is an object or a list."""
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SeqscopeError(f"{path.name}, line {number}: not valid JSON ({error}).") from None
            if not isinstance(found, dict | list):
                raise SeqscopeError(f"{path.name}, line {number}: neither an object nor a list.")
            yield number, found


def _own_list(found: Mapping[str, Any], columns: Mapping[str, str]) -> str | None:
    """The key of an object's list of items."""
    return named({key: value for key, value in found.items() if isinstance(value, list)}, "items", columns)


def _count_lists(path: Path, columns: Mapping[str, str], watch: Watch) -> int:
    total = 0
    for _, found in _objects(path):
        own = _own_list(found, columns) if isinstance(found, dict) else None
        total += 1
        watch.rows(max(1, len(found) if own is None else len(found[own])))
    return total


def _lists(path: Path, models: Zoo, columns: Mapping[str, str]) -> Iterator[One]:
    for number, found in _objects(path):
        name: Any = number
        ids = found
        if isinstance(found, dict):
            own = _own_list(found, columns)
            ids = found[own] if own is not None else None
            user = named({key: value for key, value in found.items() if key != own}, "user", columns)
            name = found[user] if user is not None else number
        if not isinstance(ids, list):
            raise SeqscopeError(f"{path.name}, line {number}: no list of items, as the lines before have.")
        yield str(name), *_known(models, [str(one) for one in ids])


def _listed(path: Path, models: Zoo, items: str, user: str | None) -> Iterator[One]:
    at = 0
    for batch in pq.ParquetFile(path).iter_batches(4_096, columns=[items, *([user] if user else [])]):
        names = (
            [str(one) for one in batch[user].to_pylist()] if user else [str(at + i) for i in range(1, len(batch) + 1)]
        )
        for name, ids in zip(names, batch[items].to_pylist(), strict=True):
            yield name, *_known(models, [str(one) for one in ids or []])
        at += len(batch)


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.ParquetFile(path).schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise SeqscopeError(f"{path.name} is no Parquet file ({short(str(error), 120)}).") from None


def _values(path: Path, column: str) -> int:
    """Items of all lists of a column, and the empty ones, as the file says."""
    file = pq.ParquetFile(path).metadata
    groups = (file.row_group(place) for place in range(file.num_row_groups))
    return sum(
        group.column(place).num_values
        for group in groups
        for place in range(group.num_columns)
        if group.column(place).path_in_schema.split(".")[0] == column
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
