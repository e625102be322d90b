"""Takes away what has expired, and what a crash left behind.

Rows come first: what has a row is never touched. A folder without one is to be deleted where its owner deleted it; any other, and
what has expired, goes to lost/ first (app/store/lost.py). Folders that are older than the store itself are another store's: they
stay, and `seqscope store check` names them.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.home import GONE, Home, delete, size
from app.store import lost, rows
from app.store.database import Store
from app.store.datasets import forget

log = logging.getLogger("seqscope.store")
STAGED = 24 * 3600.0  # seconds after which nobody works in a staging folder any more
_TICK = 0.1  # seconds: files are stamped with a coarser clock than the store's, which is some milliseconds behind


@dataclass(frozen=True)
class Swept:
    """How much was taken away."""

    datasets: int = 0
    """Expired, and now in lost/."""
    saved: int = 0
    """Histories, comparisons, reports and jobs likewise."""
    folders: int = 0
    """Without a row, and now in lost/."""
    deleted: int = 0
    """For good: what its owner had deleted, and what was in lost/ for long enough."""


def sweep(store: Store, due: datetime | None = None) -> Swept:
    """due: what expired until then goes; UTC, without saying so. None: until now."""
    due = due or rows.now()
    _staging(store.home)
    deleted = _deleted(store) + lost.expire(store, due)  # first what makes room
    folders = left_over(store)
    lost.put_folders(store.home, folders)
    datasets = _expired_datasets(store, due)
    saved = _expired_saved(store, due)
    store.quota.lost = size(store.home.lost)
    swept = Swept(datasets, saved, len(folders), deleted)
    if swept != Swept():
        log.info(
            "swept: %d datasets and %d saved things had expired, %d folders had no row, %d were deleted",
            datasets, saved, len(folders), deleted,
        )  # fmt: skip
    return swept


def _deleted(store: Store) -> int:
    """Deletes the folders of what owners have deleted, where that was not done at once."""
    names = [name for (name,) in store.file.ask("select path from deleted")]
    over = [name for name in names if not _is_running(store.home.path / name)]
    there = sum((store.home.path / name).is_dir() for name in over)
    for name in over:
        store.home.discard(store.home.path / name)
    if over:
        with store.file.transaction() as transaction:
            transaction.execute("delete from deleted where path in (select unnest(?))", [over])
    return there


def _expired_datasets(store: Store, due: datetime) -> int:
    """A dataset that is worked on has not expired yet."""
    expired = store.file.ask(
        """select owner, id from dataset d where expires <= ? and not exists
        (select 1 from job where job.dataset = d.id and job.owner = d.owner and job.state in ('queued', 'running'))""",
        [due],
    )
    for owner, id in expired:
        with store.file.transaction() as transaction:
            deleted = {"dataset": lost.values(transaction.execute("select * from dataset where id = ?", [id]))}
            for table in ("history", "comparison", "report", "job"):
                answer = transaction.execute(f"select * from {table} where owner = ? and dataset = ?", [owner, id])
                deleted[table] = lost.values(answer)
            entry = lost.put(store.home, "expired", deleted, forget(transaction.execute, store.home, owner, id))
        lost.move(store.home, entry)
        store.gone(store.home.dataset(owner, id).path)
    return len(expired)


def _expired_saved(store: Store, due: datetime) -> int:
    """Of browsers: what an account saved is kept."""
    with store.file.transaction() as transaction:
        deleted = {
            table: lost.values(transaction.execute(f"delete from {table} where expires <= ? returning *", [due]))
            for table in ("history", "comparison", "report", "job")
        }
        if not any(deleted.values()):
            return 0
        folders = [store.home.job(row["id"]) for row in deleted["job"]]
        folders += [store.home.report(row["id"]) for row in deleted["report"]]
        entry = lost.put(store.home, "expired", deleted, folders)
    lost.move(store.home, entry)
    return sum(map(len, deleted.values()))


def left_over(store: Store, *, older: bool = False) -> list[Path]:
    """Folders of datasets, jobs and reports that have no row and were not deleted by anybody, although this store was there
    before them; with `older`, the others as well."""
    at = store.home
    with store.file.alone():  # nothing appears meanwhile
        ((born,),) = store.file.ask("select epoch(min(applied)) from migration")
        known = {at.dataset(owner, id).path for owner, id in store.file.ask("select owner, id from dataset")}
        known |= {at.job(id) for (id,) in store.file.ask("select id from job")}
        known |= {at.report(id) for (id,) in store.file.ask("select id from report")}
        known |= {at.path / name for (name,) in store.file.ask("select path from deleted")}
        jobs = [path for path in _folders(at.path / "jobs") if not _is_running(path) and not _is_new(path)]
        there = [path for _, path in dataset_folders(at)] + jobs + _folders(at.path / "reports")
        return [path for path in there if path not in known and (older or _changed(path) >= float(born) - _TICK)]


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
