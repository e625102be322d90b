"""Brings back what lies in lost/ (app/store/lost.py). The row of a dataset or job that has none is made anew from its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app import home
from app.home import Home
from app.jobs import spec, status
from app.store import rows
from app.store.database import Store
from app.store.lost import Entry
from app.uploads import files
from app.uploads.clean import fingerprint
from engine.errors import SeqscopeError

_TABLES = {"owners": "dataset", "jobs": "job", "reports": "report"}
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
        store.home.place(entry.files / name, store.home.path / name)
    with store.file.transaction() as transaction:
        for table, row in back:
            _insert(store, table, row)
        if not left:
            transaction.execute("delete from lost where id = ?", [entry.id])
    if not left:
        store.home.discard(entry.path)
    return Recovered(left, without)


def _insert(store: Store, table: str, row: Mapping[str, Any]) -> None:
    if table not in ("history", "comparison", *_TABLES.values()):
        raise SeqscopeError(f"There is no table {table!r} that something can be brought back to.")
    columns = {
        name for (name,) in store.file.ask("select column_name from duckdb_columns() where table_name = ?", [table])
    }
    if store.file.ask(f"select 1 from {table} where id = ?", [row["id"]]):
        return
    new: dict[str, Any] = {name: value for name, value in row.items() if name in columns}
    if table != "job" or new.get("ended") is not None:
        new["expires"] = rows.until(str(row["owner"]))
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
    title = next((about["title"] for about in map(_json, (folder.exports, folder.data)) if about.get("title")), None)
    clean = sorted(folder.clean.glob("*.parquet"))
    damaged = _damaged(folder.path)
    opens = (folder.exports / "dataset.json").is_file() and any(folder.exports.glob("*/manifest.json"))
    readings: dict[str, Any] = {
        kind: reading.model_dump(mode="json") for kind, reading in files.readings(folder.path).items()
    }
    return {
        "id": id,
        "owner": owner,
        "title": rows.named(title or "Recovered dataset", "title"),
        "created": rows.now(),
        "state": "ready" if opens else "failed" if damaged else "checked" if clean else "uploaded",
        "rows_items": _count(folder.clean / "items.parquet"),
        "rows_events": _count(folder.clean / "log.parquet"),
        "bytes": home.size(folder.path),
        "reading": rows.written(readings),
        "fingerprint": fingerprint(clean) if clean else "",
    }


def _json(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / "dataset.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


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
        job, now = spec.read(folder), status.read(folder)
    except SeqscopeError:
        return None
    if not home.OWNER.fullmatch(job.owner):
        return None
    over = now.state if now.over else "failed"
    result = next(iter(sorted((folder / spec.FILES).glob("lists.*"))), None)
    about = {} if result is None else {"form": result.suffix[1:], "name": result.name}
    return {
        "id": job.id,
        "owner": job.owner,
        "dataset": job.dataset,
        "kind": job.kind,
        "spec": rows.written(about),
        "state": over,
        "created": job.created.astimezone(UTC).replace(tzinfo=None),
        "ended": rows.now(),
        "message": now.message if now.over else "It was interrupted.",
    }
