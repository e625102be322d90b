"""The cache of everything that is computed or read of a dataset: made by one visitor while the others wait, and shared by all.

    @cached(2_000, by=of_model)
    def recommend(models: Zoo, model: str, history: tuple[int, ...], k: int) -> TopK: …

What is returned is everybody's: its arrays are read-only, data frames come as copies, and nobody changes anything else of it.
Once a dataset is deleted, `forget` empties all caches. (functools' caches are for texts and files of the program, not for data.)

`Opened` keeps what is opened from a folder (datasets), those looked at last.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from engine.errors import SeqscopeError

if TYPE_CHECKING:
    from engine.runtime import Zoo

P = ParamSpec("P")
R = TypeVar("R")
_CACHES: weakref.WeakSet[Cached[Any, Any]] = weakref.WeakSet()
_session = SimpleNamespace(spinner=nullcontext)
"""What the app put in: how to tell whoever waits."""


class _Entry(Generic[R]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = False
        self.value: R


class Cached(Generic[P, R]):
    """A function that keeps the answers that were asked for last. What it raises is not kept: the next one tries again."""

    def __init__(self, function: Callable[P, R], most: int, by: Callable[..., Hashable] | None, spinner: str) -> None:
        functools.update_wrapper(self, function)
        self._function, self._most, self._by, self._spinner = function, most, by, spinner
        self._lock = threading.Lock()  # held for moments: never while something is computed
        self._entries: OrderedDict[Hashable, _Entry[R]] = OrderedDict()
        _CACHES.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (args, *sorted(kwargs.items())) if self._by is None else self._by(*args, **kwargs)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
                if len(self._entries) > self._most:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(key)
        if not entry.made:
            with waiting(self._spinner), entry.lock:
                if not entry.made:
                    entry.value = _locked(self._function(*args, **kwargs))
                    entry.made = True
        if isinstance(entry.value, pd.DataFrame):
            return entry.value.copy(deep=False)  # pandas copies what is written to
        return entry.value


def cached(
    most: int, *, by: Callable[..., Hashable] | None = None, spinner: str = ""
) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """A decorator for functions of a module (not of a page's script, which is run anew each time).

    Args:
        most: answers to keep.
        by: the arguments → what the answer is known by; None: the arguments themselves, which are kept with it.
        spinner: what a visitor reads while they wait; "" for what takes a moment.
    """
    return lambda function: Cached(function, most, by, spinner)


def show_waiting(spinner: Callable[[str], AbstractContextManager[object]]) -> None:
    """How to tell whoever waits: the app shows a spinner, a command nothing."""
    _session.spinner = spinner


def waiting(text: str) -> AbstractContextManager[object]:
    """Tells whoever waits within the block; "" for what takes a moment."""
    context: AbstractContextManager[object] = _session.spinner(text) if text else nullcontext()
    return context


def forget() -> None:
    """Empties all caches, since a dataset was deleted. Which answers were of that one is not noted; the others are asked anew."""
    for cache in list(_CACHES):
        cache.clear()


# --- what an answer is known by


def of_model(models: Zoo, model: str, *more: Hashable) -> Hashable:
    """The content of one model's bundle, and the other arguments."""
    return (model, models.bundles[model].digest, *more)


def of_model_and_tables(models: Zoo, model: str, *more: Hashable) -> Hashable:
    """As `of_model`, of what is read of the dataset's items or users, too."""
    return (models.tables, of_model(models, model, *more))


def of_content(models: Zoo, *more: Hashable) -> Hashable:
    """The content of the dataset and of all bundles, and the other arguments: a new export is asked anew."""
    return (str(models.path), models.tables, *(bundle.digest for bundle in models.bundles.values()), *more)


_numbered: weakref.WeakKeyDictionary[Zoo, int] = weakref.WeakKeyDictionary()
_number = itertools.count()


def of_opened(models: Zoo, *more: Hashable) -> Hashable:
    """The very object, without keeping it alive, and the other arguments."""
    return (_numbered.setdefault(models, next(_number)), *more)


def of_digest(part: Any, *more: Hashable) -> Hashable:
    """The content of a bundle, tokenizer, space or study (its `digest`), and the other arguments."""
    return (part.digest, *more)


def stamp(models: Zoo) -> str:
    """Another one where anything of the dataset is another."""
    return f"{models.path} {models.info.fingerprint} {models.stamp(models.path)}"


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


# --- what is opened from folders


T = TypeVar("T")
AGAIN = 600.0
"""Seconds after which what could not be opened is tried again."""


class _Folder(Generic[T]):
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
        self._entries: OrderedDict[str, _Folder[T]] = OrderedDict()

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
                entry = self._entries[path] = _Folder(stamp)
            self._entries.move_to_end(path)
        if entry.value is None and entry.error is None:
            with self._waiting(), entry.lock:
                if entry.value is None and entry.error is None:
                    self._make(path, entry)
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        assert entry.value is not None
        return entry.value

    def _make(self, path: str, entry: _Folder[T]) -> None:
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
