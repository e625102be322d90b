"""Many histories from a file, or the people of a dataset, a chunk at a time: memory does not grow with their number.

    with histories.reading(Path("histories.csv"), models, work) as found:
        for chunk in found.chunks(4_096):      # found.total histories in all
            …                                  # chunk.names, chunk.events, chunk.unknown

.csv, .tsv (also .gz), .parquet    one event per row: user, item and, where there is one, time; else the order of the rows counts
                                   or one history per row: user, items (a list, or a text such as [1, 2] or a|b)
.jsonl                             the same as objects: {"user": …, "items": […]}; or lists alone: […]
.txt                               one history per line: item_ids with blanks between them
PEOPLE                             those of the dataset itself, users.parquet
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from app.reports import events
from app.reports.bounds import Bounds, Watch
from app.reports.columns import LOOKED_AT, Columns, choose, list_of
from app.reports.events import One
from app.text import short
from engine.errors import SeqscopeError
from engine.runtime import Zoo

PEOPLE = "people"
_LINE = 16 << 20  # characters of one line
Row = tuple[str, Any]
"""A history's name, and its items: a list, or a text that has one."""


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
    _source: Any

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
        yield Histories(models.users.num_rows, "the dataset's own", lambda: _people(models))
        return
    path = Path(source)
    if not path.is_file():
        raise SeqscopeError(f"There is no file {path}.")
    kind, watch = _kind(path), Watch(path, bounds)
    watch.unpacked()
    head = _head(path, kind)
    if head is None:
        total = _count(_bare(path, kind), models, watch)
        watch.read()
        yield Histories(total, "one history per line, item ids alone", lambda: _named(_bare(path, kind), models))
        return
    layout = choose(path, head, columns or {})
    if layout.per_row == "history":
        if kind == "parquet":
            watch.rows(_values(path, layout.items))
        total = _count(_rows(path, kind, layout), models, watch)
        watch.read()
        yield Histories(total, str(layout), lambda: _named(_rows(path, kind, layout), models))
        return
    if kind == "parquet":
        watch.rows(pq.ParquetFile(path).metadata.num_rows)
        watch = Watch(path, bounds)
        batches = events.of_parquet(path, layout)
    elif kind == "jsonl":
        batches = events.of_objects(lambda: _objects(path), path, layout)
    else:
        batches = events.of_csv(path, layout, _separator(path))
    with events.reading(batches, path, models, work, watch) as (total, source_of):
        yield Histories(total, str(layout), source_of)


class Look(BaseModel):
    """What a file seems to hold, from its first rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Columns | None
    """None: the lines are histories of item ids, without columns; or it cannot be told."""
    samples: dict[str, str]
    """Column → some of its values, shortened; empty without columns."""
    fault: str = ""
    """Why it cannot be told which column holds what; "" where it can."""


def look(path: Path, named: Mapping[str, str], bounds: Bounds | None = None) -> Look:
    """named: role → column, where somebody said so. Raises SeqscopeError where the file cannot be read at all."""
    Watch(path, bounds).unpacked()
    head = _head(path, _kind(path))
    if head is None:
        return Look(columns=None, samples={})
    samples = {name: " · ".join(short(str(value), 40) for value in values[:3]) for name, values in head.items()}
    try:
        return Look(columns=choose(path, head, named), samples=samples)
    except SeqscopeError as error:
        return Look(columns=None, samples=samples, fault=str(error))


def _head(path: Path, kind: str) -> dict[str, list[Any]] | None:
    """Column → its values in the first rows; None where the lines are histories and nothing else."""
    if kind == "lines":
        return None
    if kind == "jsonl":
        objects = [value for _, value in itertools.islice(_objects(path), LOOKED_AT)]
        if not objects:
            raise SeqscopeError(f"{path.name} is empty.")
        if isinstance(objects[0], list):
            return None
        names = dict.fromkeys(key for value in objects if isinstance(value, dict) for key in value)
        return {name: [value.get(name) for value in objects if isinstance(value, dict)] for name in names}
    if kind == "parquet":
        _schema(path)
        batches = pq.ParquetFile(path).iter_batches(LOOKED_AT)
    else:
        batches = events.texts(path, _separator(path))
    try:
        batch = next(iter(batches), None)
    except (pa.ArrowException, OSError) as error:
        raise SeqscopeError(f"{path.name} cannot be read: {short(str(error), 200)}") from None
    if batch is None:
        raise SeqscopeError(f"{path.name} has no events.")
    return {str(name): values for name, values in batch.slice(0, LOOKED_AT).to_pydict().items()}


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
        for name, history in zip(batch["user_id"].to_pylist(), batch["history"], strict=True):
            yield name, history.values.to_numpy(zero_copy_only=False).astype(np.int64), 0


def _named(rows: Iterator[Row], models: Zoo) -> Iterator[One]:
    """Numbers for the ids of each history; those that the catalogue lacks are counted."""
    for name, value in rows:
        positions = [models.position(item_id) for item_id in list_of(value, _knows(models))]
        known = np.array([item for item in positions if item is not None], np.int64)
        yield name, known, len(positions) - len(known)


def _count(rows: Iterator[Row], models: Zoo, watch: Watch) -> int:
    total = 0
    for _, value in rows:
        total += 1
        watch.rows(max(1, len(list_of(value, _knows(models)))))
    return total


def _knows(models: Zoo) -> Callable[[str], bool]:
    return lambda item_id: models.position(item_id) is not None


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


def _bare(path: Path, kind: str) -> Iterator[Row]:
    """Lines that are histories, named after their numbers."""
    if kind == "jsonl":
        for number, value in _objects(path):
            if not isinstance(value, list):
                raise SeqscopeError(f"{path.name}, line {number}: no list of items, as the lines before have.")
            yield str(number), value
        return
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield str(number), line.split()


def _rows(path: Path, kind: str, columns: Columns) -> Iterator[Row]:
    """One history per row; without a user it is named after its row, from 1."""
    needed = [columns.items, *([columns.user] if columns.user else [])]
    if kind == "jsonl":
        for number, entry in _objects(path):
            value = entry.get(columns.items) if isinstance(entry, dict) else None
            if not isinstance(value, list):
                raise SeqscopeError(f"{path.name}, line {number}: no list of items, as the lines before have.")
            yield str(entry.get(columns.user, number)), value
        return
    at = 0
    parquet = kind == "parquet"
    batches = (
        pq.ParquetFile(path).iter_batches(4_096, columns=needed)
        if parquet
        else events.texts(path, _separator(path), needed)
    )
    for batch in batches:
        values = batch[columns.items].to_pylist()
        names = batch[columns.user].to_pylist() if columns.user else range(at + 1, at + len(batch) + 1)
        yield from zip(map(str, names), values, strict=True)
        at += len(batch)


def _objects(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, value); every value is an object or a list."""
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SeqscopeError(f"{path.name}, line {number}: not valid JSON ({error}).") from None
            if not isinstance(value, dict | list):
                raise SeqscopeError(f"{path.name}, line {number}: neither an object nor a list.")
            yield number, value


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.ParquetFile(path).schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise SeqscopeError(f"{path.name} is no Parquet file ({short(str(error), 120)}).") from None


def _values(path: Path, column: str) -> int:
    """Items of all lists of a column (texts, where they are such), and the empty ones, as the file says."""
    file = pq.ParquetFile(path).metadata
    groups = (file.row_group(place) for place in range(file.num_row_groups))
    return sum(
        group.column(place).num_values
        for group in groups
        for place in range(group.num_columns)
        if group.column(place).path_in_schema.split(".")[0] == column
    )
