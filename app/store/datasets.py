"""The datasets that visitors brought, and the jobs on them: rows here, files in home.dataset(owner, id) and home.job(id).

The row is what counts. A folder appears, complete, before its row does, and goes after it: nobody ever sees half of one.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, get_args

from app.home import Home, new_id, size
from app.store import records
from app.store.file import Row, StoreFile
from app.store.quota import Quota
from app.store.records import ENDED, DatasetState, Job, JobKind, JobState, NotFound, Record, StoredDataset, known
from engine.errors import SeqscopeError


class Owned(Generic[Record]):
    """One table, asked for the rows of one owner. Whatever is somebody else's, or has expired, is not found."""

    table: ClassVar[str]
    _record: type[Record]
    _expires: ClassVar[bool] = True
    _order: ClassVar[str] = "created"

    def __init__(self, file: StoreFile, quota: Quota, home: Home) -> None:
        self._file = file
        self._quota = quota
        self._home = home

    def _rows(
        self, owner: str, condition: str = "", values: Sequence[object] = (), *, listed: bool = False
    ) -> list[Row]:
        """condition: SQL, after what holds for all rows."""
        alive = "and (expires is null or expires > ?)" if self._expires else ""
        sql = f"select {self._columns(listed)} from {self.table} where owner = ? {alive} {condition}"
        return self._file.ask(sql, [known(owner), *([records.now()] if self._expires else []), *values])

    def _row(self, owner: str, id: str) -> Row:
        """Raises NotFound."""
        matches = self._rows(owner, "and id = ?", [id])
        if not matches:
            why = "It may have expired or" if self._expires else "Its dataset may have"
            raise NotFound(f"There is no such {self.table} here. {why} been deleted, or it is somebody else's.")
        return matches[0]

    def get(self, owner: str, id: str) -> Record:
        """Raises NotFound."""
        return records.of_row(self._record, self._row(owner, id))

    def _used(self, owner: str, id: str) -> Record:
        """Of a table whose rows expire: it is kept for so many days more. Raises NotFound."""
        record: Any = records.of_row(self._record, self._row(owner, id))
        if records.worth_renewing(owner, record.expires):
            with self._file.transaction() as transaction:
                self._update(transaction.execute, owner, id, expires=records.until(owner))
            record = records.of_row(self._record, self._row(owner, id))
        return record

    def of(self, owner: str, dataset: str | None = None) -> list[Record]:
        """The latest first; those of one dataset, where rows belong to one, or all."""
        which, values = ("", []) if dataset is None else ("and dataset = ?", [dataset])
        rows = self._rows(owner, f"{which} order by {self._order} desc, id", values, listed=True)
        return [records.of_row(self._record, row) for row in rows]

    def _update(self, execute: Callable[[str, list[object]], Any], owner: str, id: str, **values: object) -> None:
        assigned = ", ".join(f"{name} = ?" for name in values)
        execute(f"update {self.table} set {assigned} where owner = ? and id = ?", [*values.values(), owner, id])

    def _columns(self, listed: bool = False) -> str:
        return records.columns(self._record)


class Datasets(Owned[StoredDataset]):
    """Part of `Store`."""

    table = "dataset"
    _record = StoredDataset

    def __init__(self, file: StoreFile, quota: Quota, home: Home, gone: Callable[[Path], None]) -> None:
        """gone: called with the folder of every dataset that was deleted."""
        super().__init__(file, quota, home)
        self._gone = gone

    def add(
        self,
        owner: str,
        title: str,
        *,
        staged: Path | None = None,
        state: DatasetState = "uploaded",
        rows_items: int = 0,
        rows_events: int = 0,
        reading: Mapping[str, Any] | None = None,
        fingerprint: str = "",
    ) -> StoredDataset:
        """A new dataset. staged: a complete folder (home.stage()) that becomes its own; an empty one otherwise.

        Raises QuotaReached, and Unavailable where the row cannot be written; the staged folder then stays where it is.
        """
        staged = self._home.stage() if staged is None else staged
        title, id = records.named(title, "title"), new_id()
        bytes_staged = size(staged)
        values = [
            id, known(owner), title, records.now(), records.until(owner), _state(state), rows_items, rows_events, bytes_staged
        ]  # fmt: skip
        more, made = self._quota.more(owner, staged), self._quota.being_made()
        folder = self._home.dataset(owner, id).path
        try:
            with self._file.transaction() as transaction:
                self._quota.check(owner, datasets=1, bytes=more, rows=rows_items + rows_events, made=made)
                transaction.execute(
                    f"insert into dataset ({self._columns()}) values ({', '.join('?' * 11)})",
                    [*values, records.written(reading or {}), fingerprint],
                )
                self._home.place(staged, folder)
        except SeqscopeError:
            if folder.is_dir() and not self._rows(owner, "and id = ?", [id]):  # the disk was too full for the row
                os.rename(folder, staged)
            raise
        return self.get(owner, id)

    def change(
        self,
        owner: str,
        id: str,
        *,
        title: str | None = None,
        state: DatasetState | None = None,
        rows_items: int | None = None,
        rows_events: int | None = None,
        reading: Mapping[str, Any] | None = None,
        fingerprint: str | None = None,
    ) -> StoredDataset:
        """What is not named stays. More rows than the owner may have are refused. Raises NotFound, QuotaReached."""
        with self._file.transaction() as transaction:
            before = self.get(owner, id)
            values: dict[str, object] = {
                "title": None if title is None else records.named(title, "title"),
                "state": None if state is None else _state(state),
                "rows_items": rows_items,
                "rows_events": rows_events,
                "reading": None if reading is None else records.written(reading),
                "fingerprint": fingerprint,
            }
            more = (before.rows_items if rows_items is None else rows_items) - before.rows_items
            more += (before.rows_events if rows_events is None else rows_events) - before.rows_events
            self._quota.check(owner, rows=more, made={})
            changes = {name: value for name, value in values.items() if value is not None}
            if changes:
                self._update(transaction.execute, owner, id, **changes)
        return self.get(owner, id)

    def use(self, owner: str, id: str) -> StoredDataset:
        """As `get`; it is kept for so many days more."""
        return self._used(owner, id)

    def measure(self, owner: str, id: str) -> StoredDataset:
        """Counts the bytes of its files anew, after something was written there. Raises NotFound."""
        self.get(owner, id)
        bytes_now = size(self._home.dataset(owner, id).path)
        with self._file.transaction() as transaction:
            self._update(transaction.execute, owner, id, bytes=bytes_now)
        return self.get(owner, id)

    def delete(self, owner: str, id: str) -> None:
        """The dataset and everything that was made of it: files, bundles, jobs, histories, comparisons, reports.

        Its jobs are asked to stop. Raises NotFound.
        """
        with self._file.transaction(freeing=True) as transaction:
            self.get(owner, id)
            over = transaction.execute(
                "select id from job where owner = ? and dataset = ? and ended is not null", [owner, id]
            ).fetchall()
            for folder in forget(transaction.execute, self._home, owner, id):
                deleting(transaction.execute, self._home, folder)
        for (job,) in over:  # one that runs goes when its process has ended (app/store/sweep.py)
            self._home.discard(self._home.job(job))
        self._gone(self._home.dataset(owner, id).path)


def forget(execute: Callable[[str, list[object]], Any], home: Home, owner: str, id: str) -> list[Path]:
    """Takes the rows of a dataset and of all that was made of it out of every table, and asks its jobs to stop.

    Returns the folders that belong to them, there or not.
    """
    folders = [home.dataset(owner, id).path]
    for (job,) in execute("select id from job where owner = ? and dataset = ?", [owner, id]).fetchall():
        folders.append(home.job(job))
        with contextlib.suppress(FileNotFoundError):
            (home.job(job) / "cancel").touch()
    for table in records.OF_DATASETS:
        execute(f"delete from {table} where owner = ? and dataset = ?", [owner, id])
    execute("delete from dataset where owner = ? and id = ?", [owner, id])
    return folders


def deleting(execute: Callable[[str, list[object]], Any], home: Home, folder: Path) -> None:
    """Notes, with the deletion of its row, that a folder is to be deleted for good, whatever comes between."""
    execute("insert or ignore into deleted values (?)", [folder.relative_to(home.path).as_posix()])


def _state(state: str) -> str:
    if state not in get_args(DatasetState):
        raise ValueError(f"not a state of a dataset: {state!r}")
    return state


# --- work in the background: a row says what and whose it is and how it ended; home.job(id) holds what its runner needs


class Jobs(Owned[Job]):
    """Part of `Store`."""

    table = "job"
    _record = Job
    _expires = False

    def add(self, owner: str, dataset: str, kind: str, spec: Mapping[str, Any]) -> Job:
        """A job that waits. Raises QuotaReached."""
        if kind not in get_args(JobKind):
            raise ValueError(f"not a kind of job: {kind!r}")
        id, made = new_id(), self._quota.being_made()
        with self._file.transaction() as transaction:
            self._quota.check(known(owner), jobs=1, bytes=1, made=made)
            transaction.execute(
                f"insert into job ({self._columns()}) values (?, ?, ?, ?, ?, 'queued', ?, null, null, '')",
                [id, owner, dataset, kind, records.written(spec), records.now()],
            )
        return self.get(owner, id)

    def change(self, owner: str, id: str, state: JobState, message: str = "") -> Job:
        """Its state, and why it failed. Back to queued: it is to be tried again, which counts as a job. Raises NotFound."""
        if state not in get_args(JobState):
            raise ValueError(f"not a state of a job: {state!r}")
        made = {} if state in ENDED else self._quota.being_made()
        with self._file.transaction() as transaction:
            before = self.get(owner, id)
            if before.state in ENDED and state not in ENDED:
                self._quota.check(owner, jobs=1, bytes=1, made=made)
            moment = records.now()
            started = None if state == "queued" else moment
            ended = moment if state in ENDED else None
            expires = records.until(owner) if state in ENDED else None
            transaction.execute(
                f"""update job set state = ?, message = ?, ended = ?, expires = ?,
                started = {"?" if state == "queued" else "coalesce(started, ?)"} where owner = ? and id = ?""",
                [state, message, ended, expires, started, owner, id],
            )
            if before.owner.startswith("b"):  # work on a dataset is use of it
                transaction.execute(
                    "update dataset set expires = ? where owner = ? and id = ?",
                    [records.until(owner), owner, before.dataset],
                )
        return self.get(owner, id)

    def delete(self, owner: str, id: str) -> None:
        """A job that has ended, with its files. Raises NotFound, and SeqscopeError while it waits or runs."""
        with self._file.transaction(freeing=True) as transaction:
            if self.get(owner, id).state not in ENDED:
                raise SeqscopeError("The job has not ended yet. Cancel it first.")
            transaction.execute("delete from job where owner = ? and id = ?", [owner, id])
            deleting(transaction.execute, self._home, self._home.job(id))
        self._home.discard(self._home.job(id))
