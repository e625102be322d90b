"""A value made at most once, on first use, by whichever thread comes first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from engine.runtime.faults import BundleError

T = TypeVar("T")


class Lazily(Generic[T]):
    """`value()` calls `make` the first time; a BundleError it raises is kept and raised again, without the work.

    functools.cached_property is no substitute: it may make the value twice when two threads come at once.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._lock = threading.Lock()
        self._value: T | None = None
        self._fault: BundleError | None = None

    def value(self) -> T:
        if self._make is not None:
            with self._lock:
                if self._make is not None:
                    try:
                        self._value = self._make()
                    except BundleError as fault:
                        self._fault = fault
                    self._make = None  # last: other threads look at it without the lock
        if self._fault is not None:
            raise BundleError(self._fault.bundle, self._fault.file, self._fault.reason)
        return self._value  # type: ignore[return-value]  # made above
