"""The store of a server: opened once, and kept in order by a thread until it is closed.

    store = open_store()

The thread sweeps every ten minutes, and gives commands the copies of the store that they ask for. On the first day after a start
only that goes which was due for a day before: by then somebody has seen whether clock and disk are the right ones, and a server
that is started every day is a day late.

Only time in which the server runs counts towards expiry. `expires` in the tables is a moment of the wall clock. Whenever time has
passed in which no server ran, or the clock was set, all of them move by as much: after eight days off, or with a clock that is
thirty days ahead, everything has as long to go as before.
"""

from __future__ import annotations

import atexit
import logging
import threading
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic

from app.home import MADE, here
from app.store import backup, file, records
from app.store.database import Store
from app.store.sweep import sweep
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.store")
SWEEP_EVERY = 600.0  # seconds
LOOK_EVERY = 0.5
GRACE = timedelta(hours=24)
EXPIRING = ("dataset", *records.OF_DATASETS, "lost")
"""Tables whose rows expire."""
_SLACK = timedelta(minutes=1)  # moving everything for less is not worth a write
_OPEN: dict[Path, Store] = {}
_LOCK = threading.Lock()


def open_store() -> Store:
    """The store of this process, opened when it is first asked for, and kept in order from then on.

    Raises SeqscopeError where another server holds it.
    """
    path = here().database
    with _LOCK:
        if path not in _OPEN or _OPEN[path].closed.is_set():
            store = Store()
            try:
                for left in (*store.home.drafts(), *(store.home.path / "tmp").glob(f"{MADE}*")):
                    store.home.discard(left)  # of the sessions of an earlier server
                start(store)
            except BaseException:
                store.close()
                raise
            _OPEN[path] = store
            atexit.register(store.close)
        return _OPEN[path]


def start(store: Store) -> None:
    """Keeps it in order until it is closed."""
    clock = Clock(store)
    try:
        clock.tick()  # before anybody asks what is still there
        clock.write()
    except SeqscopeError as error:  # a full disk, say: pages and deletions go on, and the thread tries again
        log.error("%s", error)
    threading.Thread(target=_maintain, args=(store, clock), name="seqscope-housekeeping", daemon=True).start()


def _maintain(store: Store, clock: Clock) -> None:
    started = monotonic()
    swept = started - SWEEP_EVERY
    while not store.closed.wait(LOOK_EVERY):
        try:
            backup.answer_snapshots(store)
            clock.tick()
            if monotonic() - swept >= SWEEP_EVERY:
                swept = monotonic()
                sweep(store, due(swept - started))
                clock.write()
                file.keep_reserve(store.home.path)
        except Exception as error:  # what fails now may not fail next time; the thread must live on
            log.error("housekeeping failed", exc_info=error)
            store.closed.wait(60)


def due(ran: float) -> datetime:
    """What expired until then goes, where the server has run for so many seconds since its start; UTC, without saying so."""
    return records.now() - (GRACE if ran < GRACE.total_seconds() else timedelta())


class Clock:
    """Of one store, from when its server starts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        ((self._seen,),) = store.file.ask("select seen from clock")
        self._ran = monotonic()

    def tick(self) -> None:
        """Compares the wall clock with the time for which the server ran since it last did. Raises SeqscopeError."""
        now, ran = records.now(), monotonic()
        off = now - (self._seen + timedelta(seconds=ran - self._ran))
        if abs(off) > _SLACK:
            self._move(off, now)
        self._seen, self._ran = now, ran

    def write(self) -> None:
        """For the next server: until when this one ran. Raises SeqscopeError."""
        with self._store.file.transaction() as transaction:
            transaction.execute("update clock set seen = ?", [self._seen])

    def _move(self, by: timedelta, now: datetime) -> None:
        microseconds = by // timedelta(microseconds=1)
        with self._store.file.transaction() as transaction:
            for table in EXPIRING:
                transaction.execute(f"update {table} set expires = expires + to_microseconds(?)", [microseconds])
            transaction.execute("update clock set seen = ?", [now])
        log.info("no server ran for %s, or the clock was set: what expires is kept for so much longer", by)
