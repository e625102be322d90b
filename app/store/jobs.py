"""Work in the background: a row says what and whose it is and how it ended; home.job(id) holds what its runner needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from app.home import Home, new_id
from app.store import rows
from app.store.datasets import deleting
from app.store.file import Row, StoreFile
from app.store.quota import Quota
from app.store.records import ENDED, Job, JobState
from app.store.rows import NotFound, known
from engine.errors import SeqscopeError

KINDS = ("prepare", "train", "batch")
_COLUMNS = "id, owner, dataset, kind, spec, state, created, started, ended, message"


class Jobs:
    """Part of `Store`. Whatever is somebody else's is not found."""

    def __init__(self, file: StoreFile, quota: Quota, home: Home) -> None:
        self._file = file
        self._quota = quota
        self._home = home

    def add(self, owner: str, dataset: str, kind: str, spec: Mapping[str, Any]) -> Job:
        """A job that waits. Raises QuotaReached."""
        if kind not in KINDS:
            raise ValueError(f"not a kind of job: {kind!r}")
        id, made = new_id(), self._quota.being_made()
        with self._file.transaction() as transaction:
            self._quota.check(known(owner), jobs=1, bytes=1, made=made)
            transaction.execute(
                f"insert into job ({_COLUMNS}) values (?, ?, ?, ?, ?, 'queued', ?, null, null, '')",
                [id, owner, dataset, kind, rows.written(spec), rows.now()],
            )
        return self.get(owner, id)

    def get(self, owner: str, id: str) -> Job:
        """Raises NotFound."""
        matches = self._file.ask(f"select {_COLUMNS} from job where owner = ? and id = ?", [known(owner), id])
        if not matches:
            raise NotFound("There is no such job here. Its dataset may have been deleted, or it is somebody else's.")
        return made(matches[0])

    def of(self, owner: str, dataset: str | None = None) -> list[Job]:
        """The newest first; those of one dataset, or all."""
        which = "" if dataset is None else "and dataset = ?"
        matches = self._file.ask(
            f"select {_COLUMNS} from job where owner = ? {which} order by created desc, id",
            [known(owner), *([] if dataset is None else [dataset])],
        )
        return [made(row) for row in matches]

    def change(self, owner: str, id: str, state: JobState, message: str = "") -> Job:
        """Its state, and why it failed. Back to queued: it is to be tried again, which counts as a job. Raises NotFound."""
        if state not in get_args(JobState):
            raise ValueError(f"not a state of a job: {state!r}")
        made = {} if state in ENDED else self._quota.being_made()
        with self._file.transaction() as transaction:
            before = self.get(owner, id)
            if before.state in ENDED and state not in ENDED:
                self._quota.check(owner, jobs=1, bytes=1, made=made)
            moment = rows.now()
            started = None if state == "queued" else moment
            ended = moment if state in ENDED else None
            expires = rows.until(owner) if state in ENDED else None
            transaction.execute(
                f"""update job set state = ?, message = ?, ended = ?, expires = ?,
                started = {"?" if state == "queued" else "coalesce(started, ?)"} where owner = ? and id = ?""",
                [state, message, ended, expires, started, owner, id],
            )
            if before.owner.startswith("b"):  # work on a dataset is use of it
                transaction.execute(
                    "update dataset set expires = ? where owner = ? and id = ?",
                    [rows.until(owner), owner, before.dataset],
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


class Queue:
    """What the server's own queue must know of everybody's jobs. Part of `Store`; no page may ask it."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file

    def unfinished(self) -> list[Job]:
        """Jobs of all owners that wait or run, in the order in which they came."""
        rows = self._file.ask(f"select {_COLUMNS} from job where state in ('queued', 'running') order by created, id")
        return [made(row) for row in rows]


def made(row: Row) -> Job:
    id, owner, dataset, kind, spec, state, created, started, ended, message = row
    return Job(
        id=id,
        owner=owner,
        dataset=dataset,
        kind=kind,
        spec=json.loads(spec),
        state=state,
        created=rows.aware(created),
        started=None if started is None else rows.aware(started),
        ended=None if ended is None else rows.aware(ended),
        message=message,
    )
