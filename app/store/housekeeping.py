"""A thread of the server: sweeps every ten minutes, and gives commands the copies of the store that they ask for."""

from __future__ import annotations

import logging
import threading
import time

from app.store import snapshot
from app.store.database import Store
from app.store.sweep import sweep

log = logging.getLogger("seqscope.store")
SWEEP_EVERY = 600.0  # seconds
LOOK_EVERY = 0.5


def start(store: Store) -> None:
    """Until the store is closed."""
    threading.Thread(target=_keep, args=(store,), name="seqscope-housekeeping", daemon=True).start()


def _keep(store: Store) -> None:
    swept = -SWEEP_EVERY
    while not store.closed.wait(LOOK_EVERY):
        try:
            if time.monotonic() - swept >= SWEEP_EVERY:
                swept = time.monotonic()
                sweep(store)
            snapshot.answer(store)
        except Exception as error:  # what fails now may not fail next time; the thread must live on
            log.error("housekeeping failed", exc_info=error)
            store.closed.wait(60)
