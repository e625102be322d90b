"""A thread of the server: sweeps every ten minutes, and gives commands the copies of the store that they ask for.

Nothing expires on the first day after a start: by then somebody has seen whether clock and disk are the right ones.
"""

from __future__ import annotations

import logging
import threading
import time

from app.store import reserve, snapshot
from app.store.clock import Clock
from app.store.database import Store
from app.store.sweep import sweep
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.store")
SWEEP_EVERY = 600.0  # seconds
LOOK_EVERY = 0.5
GRACE = 24 * 3600.0


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
                sweep(store, expiring=swept - started >= GRACE)
                clock.write()
                reserve.keep(store.home.path)
        except Exception as error:  # what fails now may not fail next time; the thread must live on
            log.error("housekeeping failed", exc_info=error)
            store.closed.wait(60)
