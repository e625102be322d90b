"""Opened datasets, shared by all visitors: the first who asks for one opens it, and only those who want the same wait.

    _OPEN: Opened[Zoo] = Opened(open_=Zoo.open, stamp=Zoo.stamp, size=…, most=…)
    _OPEN.get("exports/sample")

A dataset stays open until its stamp changes or others need the memory; those used last stay. One that is let go is freed when the
last page that shows it has ended. One that could not be opened fails again at once, for ten minutes or until its stamp changes.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from engine.errors import SeqscopeError

T = TypeVar("T")
AGAIN = 600.0
"""Seconds after which what could not be opened is tried again."""


class _Entry(Generic[T]):
    def __init__(self, stamp: str) -> None:
        self.lock = threading.Lock()
        self.stamp = stamp
        self.value: T | None = None
        self.size = 0
        self.error: SeqscopeError | None = None
        self.failed = 0.0

    def over(self) -> bool:
        return self.error is not None and time.monotonic() - self.failed > AGAIN


class Opened(Generic[T]):
    """By path. open_: raises SeqscopeError in words, or anything else; size: bytes of memory that one takes; most: bytes that all
    may take, but for the one that was asked for last; sound: False for one that has to be opened anew."""

    def __init__(
        self,
        open_: Callable[[str], T],
        *,
        stamp: Callable[[str], str],
        size: Callable[[T], int],
        most: Callable[[], int],
        sound: Callable[[T], bool] = lambda value: True,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._open, self._stamp, self._size, self._most = open_, stamp, size, most
        self._sound, self._waiting = sound, waiting
        self._lock = threading.Lock()  # held for moments: never while something is opened
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def clear(self, path: str) -> None:
        with self._lock:
            self._entries.pop(path, None)

    def retry(self) -> None:
        """What could not be opened is tried again when it is asked for."""
        with self._lock:
            for path in [path for path, entry in self._entries.items() if entry.error is not None]:
                del self._entries[path]

    def get(self, path: str) -> T:
        """Raises SeqscopeError where it cannot be opened."""
        stamp = self._stamp(path)
        with self._lock:
            entry = self._entries.get(path)
            if entry is None or entry.stamp != stamp or entry.over() or (entry.value and not self._sound(entry.value)):
                entry = self._entries[path] = _Entry(stamp)
            self._entries.move_to_end(path)
        if entry.value is None and entry.error is None:
            with self._waiting(), entry.lock:
                if entry.value is None and entry.error is None:
                    self._make(path, entry)
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        assert entry.value is not None
        return entry.value

    def _make(self, path: str, entry: _Entry[T]) -> None:
        most = 0
        try:
            most = self._most()
            entry.value = self._open(path)
            entry.size = self._size(entry.value)
        except SeqscopeError as error:
            entry.error, entry.failed = error, time.monotonic()
        except Exception as error:  # of any library: those who wait hear of it, too, and the log has the cause
            name = path.rstrip("/").rpartition("/")[2]
            entry.error = SeqscopeError(f"The dataset {name} cannot be opened; the log says why.")
            entry.error.__cause__, entry.failed = error, time.monotonic()
        with self._lock:
            total = sum(each.size for each in self._entries.values())
            for other in [name for name, each in self._entries.items() if each is not entry and each.size]:
                if total <= most:
                    break
                total -= self._entries.pop(other).size
