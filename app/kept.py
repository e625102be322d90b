"""Answers, kept for those who ask the same: found by what was asked, made by one visitor while the others wait.

    _TOP: Kept[Top] = Kept(2_000)
    _TOP.get((model, digest, history, k), lambda: …)

In place of st.cache_data where a page asks often: that one hashes every number of a history by itself, reads the function's
signature anew and unpickles a copy, which takes longer than most models take to answer. What is kept here is everybody's, so its
arrays are made read-only.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_ALL: weakref.WeakSet[Kept[Any]] = weakref.WeakSet()
_FORGET: dict[str, Callable[[], None]] = {}


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = False
        self.value: T


class Kept(Generic[T]):
    """The `most` answers that were asked for last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        _ALL.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def get(self, asked: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns or returned. What it raises is not kept: the next one tries again."""
        with self._lock:
            entry = self._entries.get(asked)
            if entry is None:
                entry = self._entries[asked] = _Entry()
                if len(self._entries) > self._most:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(asked)
        if not entry.made:
            with entry.lock:
                if not entry.made:
                    entry.value = _locked(make())
                    entry.made = True
        return entry.value


def until_deleted(function: F) -> F:
    """A decorator around st.cache_data, st.cache_resource and functools.lru_cache: what they keep is forgotten by `forget`."""
    clear = getattr(function, "clear", None) or function.cache_clear  # type: ignore[attr-defined]
    # by name: the script of a page defines its own anew in every run
    _FORGET[f"{function.__module__}.{function.__qualname__}"] = clear
    return function


def forget() -> None:
    """Everything that is kept of any dataset: one of them was deleted. Which answers were of that one is not noted; the others
    are asked anew."""
    for kept in list(_ALL):
        kept.clear()
    for clear in list(_FORGET.values()):
        clear()


def _locked(value: Any) -> Any:
    """The same value, its arrays read-only."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, list)):
        for part in value:
            _locked(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _locked(getattr(value, field.name))
    return value
