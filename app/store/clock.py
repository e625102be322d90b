"""Only time in which the server runs counts towards expiry.

`expires` in the tables is a moment of the wall clock. Whenever time has passed in which no server ran, or the clock was set, all
of them move by as much: after eight days off, or with a clock that is thirty days ahead, everything has as long to go as before.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from time import monotonic

from app.store import rows
from app.store.database import Store

log = logging.getLogger("seqscope.store")
TABLES = ("dataset", "history", "comparison", "report", "job", "lost")
"""Those whose rows expire."""
_SLACK = timedelta(minutes=1)  # moving everything for less is not worth a write


class Clock:
    """Of one store, from when its server starts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        ((self._seen,),) = store.file.ask("select seen from clock")
        self._ran = monotonic()

    def tick(self) -> None:
        """Compares the wall clock with the time for which the server ran since it last did. Raises SeqscopeError."""
        now, ran = rows.now(), monotonic()
        off = now - (self._seen + timedelta(seconds=ran - self._ran))
        if abs(off) > _SLACK:
            self._move(off, now)
        self._seen, self._ran = now, ran

    def write(self) -> None:
        """For the next server: until when this one ran. Raises SeqscopeError."""
        with self._store.file.transaction() as transaction:
            transaction.execute("update clock set seen = ?", [self._seen])

    def _move(self, by: timedelta, now: datetime) -> None:
        with self._store.file.transaction() as transaction:
            for table in TABLES:
                transaction.execute(f"update {table} set expires = expires + to_microseconds(?)", [_microseconds(by)])
            transaction.execute("update clock set seen = ?", [now])
        log.info("no server ran for %s, or the clock was set: what expires is kept for so much longer", by)


def _microseconds(time: timedelta) -> int:
    return time // timedelta(microseconds=1)
