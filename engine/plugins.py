"""What stands in the code by being declared: the classes of this project's packages, and what other packages add through entry
points of their installation (docs/extending.md)."""

import functools
import importlib
import logging
import pkgutil
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Any

from engine.errors import SeqscopeError


def points(group: str) -> list[EntryPoint]:
    """Each once. A checkout's own metadata, left by an older build, must not hide those of the installation, which is why every
    distribution is asked."""
    points = (point for point in _installed(tuple(sys.path)) if point.group == group)
    return list({(point.name, point.value): point for point in points}.values())


@functools.cache
def _installed(path: tuple[str, ...]) -> list[EntryPoint]:
    """Of all distributions on `path`, which is sys.path. Read once: it takes 6 ms, and every recipe asks."""
    return [point for distribution in distributions() for point in distribution.entry_points]


def take(group: str, accept: Callable[[str, Any], object], only: str | None = None) -> None:
    """Imports what the entry points of `group` (those called `only`, where it is given) lead to, and gives each to `accept`, with
    its name before it. What cannot be imported, or is not accepted, is left out, and a warning says which and why."""
    for point in points(group):
        if only not in (None, point.name):
            continue
        try:
            accept(point.name, point.load())
        except Exception as error:  # one package must not take the others along, whatever it does
            package = point.dist.name if point.dist else "a package"
            reason = str(error) if isinstance(error, SeqscopeError) else f"{type(error).__name__}: {error}"
            logging.getLogger(__name__).warning(
                "%s = %s of %s, which %s adds, is left out: %s", point.name, point.value, group, package, reason
            )


@functools.cache
def folders(group: str) -> list[Path]:
    """Of the packages that entry points name."""
    places: list[Path] = []
    take(group, lambda _, package: places.extend(map(Path, package.__path__)))
    return places


def classes(base: type, packages: tuple[str, ...], group: str) -> dict[str, Any]:
    """By name, in the order of their cards: every subclass of `base` with a `name` of its own in a module of `packages`, and
    those of the entry points of `group`, but for what bears the name of another or is no such class (`take`)."""
    modules = [
        importlib.import_module(f"{package}.{module.name}")
        for package in packages
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ]
    by_name: dict[str, Any] = {}

    def add(name: str, kind: Any) -> None:
        if not _declares(kind, base) or kind.name != name:
            raise SeqscopeError(f"it is no {base.__name__} called {name!r}")
        if missing := sorted(getattr(kind, "__abstractmethods__", ())):
            raise SeqscopeError(f"{kind.__module__}.{kind.__qualname__} defines no {' and no '.join(missing)}")
        if other := by_name.get(name):
            raise SeqscopeError(f"{kind.__module__} and {other.__module__} both declare {name!r}")
        by_name[name] = kind

    for module in modules:
        for kind in vars(module).values():
            if _declares(kind, base) and kind.__module__ == module.__name__:
                add(kind.name, kind)
    take(group, add)
    return dict(sorted(by_name.items(), key=lambda entry: entry[1].card.order))


def _declares(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base) and "name" in vars(kind)
