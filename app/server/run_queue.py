"""Runs of pages are served one after the other, in the order in which they were asked for.

    with run_queue.RUNS.turn():
        main()

Python runs one thread at a time. Twenty-five runs in as many threads fight for it at every switch: each took nearly twice the
processor's time, and all of them ended when the last one did. In a queue the first visitor has the page after one run.

A page may say when its visitor has what it is for; the rest of it then waits until the others have theirs, too.

A run is waited for `longest` seconds at most: who opens a dataset or asks a slow model keeps nobody else waiting. Reruns of a
fragment alone are short and not queued.
"""

import gc
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from engine.machine import freeze


@cache
def settle(page: str) -> None:
    """Once per page: takes what is loaded by now (code, mostly) out of the garbage collector's sight.

    Streamlit collects after every run, and looking through all that costs more than the run itself. Never again, also when a
    dataset is deleted: the sessions that are live then would stay in memory for good.
    """
    gc.collect()
    freeze()


class RunQueue:
    """First come, first served. longest: seconds after which the next one need not wait for a run any more."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._lock = threading.Lock()
        self._thread = threading.local()  # .turn: of the run in this thread; a run has a thread of its own
        self._waiting: deque[threading.Condition] = deque()
        self._latest: threading.Condition | None = None  # who began last
        self._until = 0.0  # when the next one may begin though the latest has not ended, by time.monotonic

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for a turn, which lasts as long as the block."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def others_first(self) -> None:
        """In the middle of a turn, when the visitor has what the page is for: those who wait for theirs come first. Waits for
        another turn; does nothing where nobody waits, or outside of a turn."""
        if self._waiting and getattr(self._thread, "turn", None) is not None:
            self._leave()
            self._enter()

    def _enter(self) -> None:
        mine = self._thread.turn = threading.Condition(self._lock)
        with self._lock:
            self._waiting.append(mine)
            while self._waiting[0] is not mine:
                mine.wait()
            while (left := self._until - time.monotonic()) > 0:
                mine.wait(left)
            self._waiting.popleft()
            self._latest, self._until = mine, time.monotonic() + self._longest
            self._wake()  # the first in the queue looks at the clock

    def _leave(self) -> None:
        mine, self._thread.turn = self._thread.turn, None
        with self._lock:
            if self._latest is mine:
                self._until = 0.0
                self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting[0].notify()


RUNS = RunQueue(longest=0.25)
