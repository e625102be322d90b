"""What was taken away without anybody's click is kept in lost/ for seven days on which the server runs, and can be brought back.

    lost/<id>/lost.json     why and when; the rows that were taken out of the store
    lost/<id>/files/        the folders, each where it was in the home: owners/<owner>/datasets/<id>, jobs/<id>

Two things come here: what has expired, with its rows; and folders that have no row in the store, which happens when a server
ended between the two, or when the store lost rows. `recover` brings them back: the row of a dataset or job
that has none is made anew from its files.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from app import home
from app.home import Home
from app.jobs import spec, status
from app.store import records
from app.store.database import Store
from app.uploads import files
from app.uploads.clean import fingerprint
from engine.errors import SeqscopeError
from engine.files import read_json, write_json
from engine.machine import now

log = logging.getLogger("seqscope.store")
DAYS = 7
ABOUT, FILES = "lost.json", "files"
Why = Literal["expired", "without a row"]
Rows = dict[str, list[dict[str, Any]]]
"""Table → rows, column → value."""


@dataclass(frozen=True)
class Entry:
    """What was put aside at one time."""

    path: Path
    why: str
    """Why; "" where lost.json cannot be read."""
    at: str
    """UTC, to the second."""
    rows: Rows
    folders: tuple[str, ...]
    """Relative to the home: those that belong to it, which are in `files` unless a crash came between."""

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def files(self) -> Path:
        return self.path / FILES

    def here(self) -> list[str]:
        """The folders that are in it, relative to the home; those of datasets first."""
        return [
            path.relative_to(self.files).as_posix()
            for pattern in ("owners/*/datasets/*", "jobs/*")
            for path in sorted(self.files.glob(pattern))
        ]


def entries(at: Home) -> list[Entry]:
    """The oldest first."""
    here = []
    for path in at.lost.glob("*"):
        if path.is_dir() and home.ID.fullmatch(path.name):
            try:
                about = json.loads((path / ABOUT).read_text("utf-8"))
                here.append(Entry(path, about["why"], about["at"], about["rows"], tuple(about["folders"])))
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.warning("%s cannot be read: %s", path / ABOUT, error)
                here.append(Entry(path, "", "", {}, ()))
    return sorted(here, key=lambda entry: (entry.at, entry.id))


# --- putting aside


def put(at: Home, why: Why, rows: Rows, folders: Iterable[Path]) -> Entry:
    """An entry for rows that are about to be deleted, and for folders that `move` then puts into it."""
    staged, moment = at.stage(), now()
    names = tuple(folder.relative_to(at.path).as_posix() for folder in folders)
    write_json(staged / ABOUT, {"why": why, "at": moment, "rows": rows, "folders": names})
    path = at.lost / home.new_id()
    at.place(staged, path)
    return Entry(path, why, moment, rows, names)


def move(at: Home, entry: Entry) -> None:
    """Its folders, those of them that are still where they were."""
    for name in entry.folders:
        if (at.path / name).is_dir():
            at.place(at.path / name, entry.files / name)


def put_folders(at: Home, folders: Sequence[Path]) -> None:
    """Folders without a row: to the entry that waits for them since a crash, or to new ones."""
    waiting = {name: entry for entry in entries(at) for name in entry.folders}
    for folder in folders:
        name = folder.relative_to(at.path).as_posix()
        entry = waiting.get(name) or put(at, "without a row", {}, [folder])
        at.place(folder, entry.files / name)
        log.warning(
            "%s has no row in the store: it is in %s for %d days; “seqscope store recover %s” brings it back",
            folder, entry.path, DAYS, entry.id,
        )  # fmt: skip


def values(answer: Any) -> list[dict[str, Any]]:
    """The rows that DuckDB answers, as they are written into lost.json."""
    names = [column[0] for column in answer.description]
    return [
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in answer.fetchall()
    ]


def expire(store: Store, due: datetime) -> int:
    """Deletes for good what was to be kept until then at most; how many. What was not known yet is kept from now on."""
    here = {entry.id: entry for entry in entries(store.home)}
    with store.file.transaction(freeing=True) as transaction:
        known = {id: expires for id, expires in store.file.ask("select id, expires from lost")}
        for id in here.keys() - known.keys():
            transaction.execute("insert into lost values (?, ?)", [id, records.now() + timedelta(days=DAYS)])
        over = [id for id, expires in known.items() if id not in here or expires <= due]
        for id in over:
            transaction.execute("delete from lost where id = ?", [id])
    for id in over:
        store.home.discard(store.home.lost / id)
    return sum(id in here for id in over)


def find(at: Home, ids: Sequence[str]) -> list[Entry]:
    """Raises SeqscopeError where one is not there."""
    here = {entry.id: entry for entry in entries(at)}
    missing = [id for id in ids if id not in here]
    if missing:
        raise SeqscopeError(f"There is no {missing[0]} in {at.lost}. “seqscope store lost” lists what there is.")
    return [here[id] for id in ids]


# --- bringing back

_TABLES = {"owners": "dataset", "jobs": "job"}
"""Folder of the home → the table that has a row for each folder in it."""


@dataclass
class Recovered:
    """What became of an entry, in words for those who run the server."""

    left: list[str] = field(default_factory=list)
    """What stays in lost/, and why."""
    without: list[str] = field(default_factory=list)
    """What came back, and what it lacks."""


def recover(store: Store, entry: Entry) -> Recovered:
    """Puts folders and rows back. What expires does so as if it had been used now."""
    left: list[str] = []
    without: list[str] = []
    back: list[tuple[str, dict[str, Any]]] = [(table, row) for table, rows in entry.rows.items() for row in rows]
    ids = {row["id"] for _, row in back}
    folders: list[str] = []
    for name in entry.here():
        table, id = _TABLES[name.split("/")[0]], name.split("/")[-1]
        if (store.home.path / name).exists():
            left.append(f"{name} is there already.")
            continue
        if id not in ids and not store.file.ask(f"select 1 from {table} where id = ?", [id]):
            anew = _row(Home(entry.files), name)
            if anew is None:
                left.append(f"{name} does not say whose it is.")
                continue
            back.append((table, anew))
            if table == "dataset":
                damaged = [f"{path.relative_to(entry.files)} is damaged." for path in _damaged(entry.files / name)]
                lacking = "what was saved over it (histories, comparisons, reports) was in the store alone."
                without += [*damaged, f"{name} has a new row; {lacking}"]
        folders.append(name)
    with store.file.transaction() as transaction:
        for table, row in back:
            _insert(store, table, row)
        if not left:
            transaction.execute("delete from lost where id = ?", [entry.id])
    for name in folders:  # after their rows: what an interrupted call had still to move is found here by the next one
        store.home.place(entry.files / name, store.home.path / name)
    if not left:
        store.home.discard(entry.path)
    return Recovered(left, without)


def _insert(store: Store, table: str, row: Mapping[str, Any]) -> None:
    if table not in ("dataset", *records.OF_DATASETS):
        raise SeqscopeError(f"There is no table {table!r} that something can be brought back to.")
    columns = {
        name for (name,) in store.file.ask("select column_name from duckdb_columns() where table_name = ?", [table])
    }
    if store.file.ask(f"select 1 from {table} where id = ?", [row["id"]]):
        return
    new: dict[str, Any] = {name: value for name, value in row.items() if name in columns}
    if table != "job" or new.get("ended") is not None:
        new["expires"] = records.until(str(row["owner"]))
    store.file.ask(f"insert into {table} ({', '.join(new)}) values ({', '.join('?' * len(new))})", list(new.values()))


def _row(at: Home, name: str) -> dict[str, Any] | None:
    """The row of a folder, made anew; None where its files do not tell. at: where it lies now."""
    match name.split("/"):
        case ["owners", owner, "datasets", id] if home.OWNER.fullmatch(owner) and home.ID.fullmatch(id):
            return _dataset(at, owner, id)
        case ["jobs", id] if home.ID.fullmatch(id):
            return _job(at.job(id))
    return None


def _dataset(at: Home, owner: str, id: str) -> dict[str, Any]:
    """The row of a dataset, as its files tell."""
    folder = at.dataset(owner, id)
    title = next(
        (title for place in (folder.exports, folder.data) if (title := read_json(place / "dataset.json").get("title"))),
        None,
    )
    clean = sorted(folder.clean.glob("*.parquet"))
    damaged = _damaged(folder.path)
    return {
        "id": id,
        "owner": owner,
        "title": records.named(title or "Recovered dataset", "title"),
        "created": records.now(),
        "state": "ready" if folder.opens else "failed" if damaged else "checked" if clean else "uploaded",
        "rows_items": _count(folder.data / "items.parquet") or _count(folder.clean / "items.parquet"),
        "rows_events": _count(folder.clean / "log.parquet"),
        "bytes": home.size(folder.path),
        "reading": records.written(files.as_stored(folder.path)),
        "fingerprint": fingerprint(clean) if clean else "",
    }


def _count(path: Path) -> int:
    """Its rows; 0 where it is not there, or cannot be read."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return 0


def _damaged(dataset: Path) -> list[Path]:
    """Clean files that cannot be read."""
    damaged = []
    for path in sorted((dataset / "clean").glob("*.parquet")):
        try:
            pq.ParquetFile(path).close()
        except (OSError, pa.ArrowException):
            damaged.append(path)
    return damaged


def _job(folder: Path) -> dict[str, Any] | None:
    """The row of a job, as its files tell; None where they do not say whose it is."""
    try:
        job, reached = spec.read(folder), status.read(folder)
    except SeqscopeError:
        return None
    if not home.OWNER.fullmatch(job.owner):
        return None
    over = reached.state if reached.over else "failed"
    result = next(iter(sorted((folder / spec.FILES).glob("lists.*"))), None)
    about = {} if result is None else {"form": result.suffix[1:], "name": result.name}
    return {
        "id": job.id,
        "owner": job.owner,
        "dataset": job.dataset,
        "kind": job.kind,
        "spec": records.written(about),
        "state": over,
        "created": job.created.astimezone(UTC).replace(tzinfo=None),
        "ended": records.now(),
        "message": reached.message if reached.over else "It was interrupted.",
    }
