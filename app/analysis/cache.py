"""The cache of everything that is computed or read of a dataset: made by one visitor while the others wait, and shared by all.

    @cached(2_000, by=of_model)
    def recommend(models: Zoo, model: str, history: tuple[int, ...], k: int) -> TopK: …

What is returned is everybody's: its arrays are read-only, data frames come as copies, and nobody changes anything else of it.
Once a dataset is deleted, `forget` empties all caches. (functools' caches are for texts and files of the program, not for data.)
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np
import pandas as pd

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
        by: the arguments → what the answer is known by; None: the arguments themselves, a zoo then being the very object.
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


def of_content(models: Zoo, *more: Hashable) -> Hashable:
    """The content of the dataset and of all bundles, and the other arguments: a new export is asked anew."""
    return (str(models.path), models.info.fingerprint, *(one.digest for one in models.bundles.values()), *more)


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
