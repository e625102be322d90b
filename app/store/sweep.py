"""Takes away what has expired, and what a crash left behind.

Rows come first: what has a row is never touched. A folder without one is left over from a deletion or from an upload that was
never finished. Folders that are older than the store itself are another store's: they stay, and `seqscope store check` names
them.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from app.home import GONE, Home, delete
from app.store import rows
from app.store.database import Store
from app.store.datasets import forget

log = logging.getLogger("seqscope.store")
STAGED = 24 * 3600.0  # seconds after which nobody works in a staging folder any more
_TICK = 0.1  # seconds: files are stamped with a coarser clock than the store's, which is some milliseconds behind


@dataclass(frozen=True)
class Swept:
    """How much was taken away."""

    datasets: int = 0
    saved: int = 0
    """Histories, comparisons, reports and jobs that had expired."""
    folders: int = 0
    """Left over."""


def sweep(store: Store, now: datetime | None = None) -> Swept:
    """now: UTC, without saying so."""
    now = now or rows.now()
    datasets = _expired_datasets(store, now)
    saved = _expired_saved(store, now)
    folders = left_over(store)
    for folder in folders:
        store.home.discard(folder)
    _staging(store.home)
    found = Swept(datasets, saved, len(folders))
    if found != Swept():
        log.info("swept %d datasets, %d saved things, %d folders", datasets, saved, len(folders))
    return found


def _expired_datasets(store: Store, now: datetime) -> int:
    """A dataset that is worked on has not expired yet."""
    gone = []
    with store.file.transaction() as transaction:
        expired = store.file.ask(
            """select owner, id from dataset d where expires <= ? and not exists
            (select 1 from job where job.dataset = d.id and job.owner = d.owner and job.state in ('queued', 'running'))""",
            [now],
        )
        for owner, id in expired:
            forget(transaction.execute, store.home, owner, id)
            gone.append(store.home.dataset(owner, id).path)
    for folder in gone:
        store.gone(folder)
    return len(gone)


def _expired_saved(store: Store, now: datetime) -> int:
    """Of browsers: what an account saved is kept. Reports' and jobs' folders are then left over."""
    with store.file.transaction() as transaction:
        count = 0
        for table in ("history", "comparison", "report"):
            count += len(transaction.execute(f"delete from {table} where expires <= ? returning id", [now]).fetchall())
        before = now - timedelta(days=rows.keep_days())
        gone = transaction.execute(
            "delete from job where owner like 'b%' and ended <= ? returning id", [before]
        ).fetchall()
        return count + len(gone)


def left_over(store: Store) -> list[Path]:
    """Folders of datasets, jobs and reports that have no row, although this store was there before them."""
    with store.file.transaction():  # nothing appears meanwhile
        ((born,),) = store.file.ask("select epoch(min(applied)) from migration")
        known = {(owner, id) for owner, id in store.file.ask("select owner, id from dataset")}
        jobs = {id for (id,) in store.file.ask("select id from job")}
        reports = {id for (id,) in store.file.ask("select id from report")}
        found = [path for owner, path in dataset_folders(store.home) if (owner, path.name) not in known]
        found += [
            path
            for path in _folders(store.home.path / "jobs")
            if path.name not in jobs and not _is_running(path) and not _is_new(path)
        ]
        found += [path for path in _folders(store.home.path / "reports") if path.name not in reports]
        return [path for path in found if _changed(path) >= float(born) - _TICK]


def dataset_folders(home: Home) -> list[tuple[str, Path]]:
    """(owner, folder) of every dataset that has one."""
    owners = _folders(home.path / "owners")
    return [(owner.name, path) for owner in owners for path in _folders(owner / "datasets")]


def _staging(home: Home) -> None:
    for path in (home.path / "tmp").glob("*"):
        if path.name.startswith(GONE) or time.time() - _changed(path) > STAGED:
            delete(path)


def _is_new(job: Path) -> bool:
    """The queue writes a job under a name with a dot, and renames it."""
    return job.name.startswith(".") and time.time() - _changed(job) < STAGED


def _is_running(job: Path) -> bool:
    """A runner holds this lock while it lives."""
    try:
        with (job / "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:  # it went meanwhile
        return time.time()
