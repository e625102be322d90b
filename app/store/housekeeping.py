"""A thread of the server: sweeps every ten minutes, and gives commands the copies of the store that they ask for.

On the first day after a start only that goes which was due for a day before: by then somebody has seen whether clock and disk are
the right ones, and a server that is started every day is a day late.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta

from app.store import reserve, rows, snapshot
from app.store.clock import Clock
from app.store.database import Store
from app.store.sweep import sweep
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.store")
SWEEP_EVERY = 600.0  # seconds
LOOK_EVERY = 0.5
GRACE = timedelta(hours=24)


def start(store: Store) -> None:
    """Until the store is closed."""
    clock = Clock(store)
    try:
        clock.tick()  # before anybody asks what is still there
        clock.write()
    except SeqscopeError as error:  # a full disk, say: pages and deletions go on, and the thread tries again
        log.error("%s", error)
    threading.Thread(target=_keep, args=(store, clock), name="seqscope-housekeeping", daemon=True).start()


def _keep(store: Store, clock: Clock) -> None:
    started = time.monotonic()
    swept = started - SWEEP_EVERY
    while not store.closed.wait(LOOK_EVERY):
        try:
            snapshot.answer(store)
            clock.tick()
            if time.monotonic() - swept >= SWEEP_EVERY:
                swept = time.monotonic()
                sweep(store, due(swept - started))
                clock.write()
                reserve.keep(store.home.path)
        except Exception as error:  # what fails now may not fail next time; the thread must live on
            log.error("housekeeping failed", exc_info=error)
            store.closed.wait(60)


def due(ran: float) -> datetime:
    """What expired until then goes, where the server has run for so many seconds since its start; UTC, without saying so."""
    return rows.now() - (GRACE if ran < GRACE.total_seconds() else timedelta())
