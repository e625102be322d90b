"""Takes away what has expired, and what a crash left behind.

Rows come first: what has a row is never touched. A folder without one is to be deleted where its owner deleted it; any other, and
what has expired, goes to lost/ first (app/store/lost.py). Folders that are older than the store itself are another store's: they
stay, and `seqscope store check` names them.
"""

import json
import logging
import os
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import duckdb

from app import home
from app.home import GONE, Home, delete, size
from app.jobs.runner import is_running
from app.store import lost, migrations, records
from app.store.backup import rows_of
from app.store.database import Store
from app.store.datasets import forget
from engine.errors import SeqscopeError
from engine.writing import count

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
    due = due or records.now()
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
    over = [name for name in names if not is_running(store.home.path / name)]
    there = sum((store.home.path / name).is_dir() for name in over)
    for name in over:
        store.home.discard(store.home.path / name)
    if over:
        with store.file.transaction() as transaction:
            transaction.execute("delete from deleted where path in (select unnest(?))", [over])
    return there


def _expired_datasets(store: Store, due: datetime) -> int:
    """A dataset that is worked on has not expired yet, nor one that is used before its turn comes."""
    condition = """expires <= ? and not exists
        (select 1 from job where job.dataset = d.id and job.owner = d.owner and job.state in ('queued', 'running'))"""
    number = 0
    for owner, id in store.file.ask(f"select owner, id from dataset d where {condition}", [due]):
        with store.file.transaction() as transaction:
            expired = transaction.execute(f"select * from dataset d where id = ? and {condition}", [id, due])
            deleted = {"dataset": lost.values(expired)}
            if not deleted["dataset"]:
                continue
            for table in records.OF_DATASETS:
                answer = transaction.execute(f"select * from {table} where owner = ? and dataset = ?", [owner, id])
                deleted[table] = lost.values(answer)
            entry = lost.put(store.home, "expired", deleted, forget(transaction.execute, store.home, owner, id))
        lost.move(store.home, entry)
        store.gone(store.home.dataset(owner, id).path)
        number += 1
    return number


def _expired_saved(store: Store, due: datetime) -> int:
    """Of browsers: what an account saved is kept."""
    with store.file.transaction() as transaction:
        deleted = {
            table: lost.values(transaction.execute(f"delete from {table} where expires <= ? returning *", [due]))
            for table in records.OF_DATASETS
        }
        if not any(deleted.values()):
            return 0
        entry = lost.put(store.home, "expired", deleted, [store.home.job(row["id"]) for row in deleted["job"]])
    lost.move(store.home, entry)
    return sum(map(len, deleted.values()))


def left_over(store: Store, *, older: bool = False) -> list[Path]:
    """Folders of datasets and jobs that have no row and were not deleted by anybody, although this store was there before them;
    with `older`, the others as well."""
    at = store.home
    with store.file.alone():  # nothing appears meanwhile
        ((born,),) = store.file.ask("select epoch(min(applied)) from migration")
        known = {*store.folders()}
        known |= {at.path / name for (name,) in store.file.ask("select path from deleted")}
        jobs = [path for path in _folders(at.path / "jobs") if not is_running(path) and not _is_new(path)]
        there = [path for _, path in dataset_folders(at)] + jobs
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


# --- seqscope store check: what does not belong together in SEQSCOPE_HOME; changes nothing

_JSON = {"dataset": "reading", "history": "items", "job": "spec", "report": "document"}
_NEEDED = {"checked": "clean/items.parquet", "ready": "exports/dataset.json"}


@dataclass
class StoreReport:
    """What was found."""

    rows: dict[str, int] = field(default_factory=dict)
    """Table → rows."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is odd, but in order."""


def check(copy: Path) -> StoreReport:
    """copy: a copy of the store (backup.take_snapshot)."""
    result = StoreReport()
    with closing(Store(copy, home=home.here())) as store:
        result.rows = rows_of(store)
        _readable(store, result)
        _with_files(store, result)
        _left_over(store, result)
    mode = home.root().stat().st_mode
    if mode & 0o077:
        result.problems.append(
            f"Others on this machine may read {home.root()} (mode {mode & 0o777:o}). Mend it with: chmod 700 {home.root()}"
        )
    return result


def form(copy: Path) -> tuple[int, int]:
    """(the last migration that the store has seen, the last one that there is)"""
    try:
        with duckdb.connect(str(copy), read_only=True) as connection:
            return migrations.reached(connection), len(migrations.STEPS)
    except duckdb.Error as error:
        raise SeqscopeError(f"The store cannot be read: {str(error).splitlines()[0]}") from error


def _readable(store: Store, result: StoreReport) -> None:
    for table, column in _JSON.items():
        for id, text in store.file.ask(f"select id, {column} from {table}"):
            try:
                json.loads(text)
            except ValueError:
                result.problems.append(f"The {table} {id} cannot be read: its {column} is not JSON.")
    for table in result.rows:
        for (id,) in store.file.ask(
            f"select id from {table} where not regexp_full_match(owner, ?)", [home.OWNER.pattern]
        ):
            result.problems.append(f"The {table} {id} belongs to nobody: its owner has not the form of one.")


def _with_files(store: Store, result: StoreReport) -> None:
    for owner, id, state in store.file.ask("select owner, id, state from dataset order by created"):
        folder = home.here().dataset(owner, id).path
        if not folder.is_dir():
            result.problems.append(f"The dataset {id} of {owner} has no files: {folder} is missing.")
        elif state in _NEEDED and not (folder / _NEEDED[state]).is_file():
            result.problems.append(f"The dataset {id} of {owner} is said to be {state}, but has no {_NEEDED[state]}.")
    for id, state in store.file.ask("select id, state from job where state in ('queued', 'running')"):
        if not home.here().job(id).is_dir():
            result.notes.append(f"The job {id} is {state} and has no folder yet.")


def _left_over(store: Store, result: StoreReport) -> None:
    left = left_over(store)
    if left:
        result.notes.append(
            f"{count(len(left), 'folder')} without a row; the server puts them into lost/ within ten minutes."
        )
    known = {(owner, id) for owner, id in store.file.ask("select owner, id from dataset")}
    strange = [
        path for owner, path in dataset_folders(store.home) if (owner, path.name) not in known and path not in left
    ]
    result.problems += [
        f"{path} belongs to no dataset, and is older than the store: nothing removes it. "
        "“seqscope store accept” puts it into lost/."
        for path in strange
    ]
    aside = lost.entries(home.here())
    if aside:
        result.notes.append(f"{count(len(aside), 'entry', 'entries')} in lost/: “seqscope store lost” lists them.")
    replaced = sorted(path.name for path in home.root().glob("before-*"))
    if replaced:
        result.notes.append(
            f"{', '.join(replaced)}: what a restored backup has replaced. Delete it when you no longer need it."
        )
