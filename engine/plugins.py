"""What stands in the code by being declared: the classes of this project's packages, and what other packages add through entry
points of their installation (docs/extending.md)."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine.errors import SeqscopeError


def points(group: str) -> dict[str, EntryPoint]:
    """Name → entry point. A checkout's own metadata, left by an older build, must not hide those of the installation, which is
    why every distribution is asked."""
    return {point.name: point for point in _installed(tuple(sys.path)) if point.group == group}


@functools.cache
def _installed(path: tuple[str, ...]) -> list[EntryPoint]:
    """Of all distributions on `path`, which is sys.path. Read once: it takes 6 ms, and every recipe asks."""
    return [point for distribution in distributions() for point in distribution.entry_points]


def objects(group: str) -> Iterator[tuple[str, Any]]:
    """(name, what it leads to), imported now."""
    for name, point in points(group).items():
        yield name, point.load()


def folders(group: str) -> list[Path]:
    """The folders of the packages that entry points name, none of them imported but their parents."""
    specs = (find_spec(point.value) for point in points(group).values())
    return [Path(place) for spec in specs if spec is not None for place in spec.submodule_search_locations or ()]


def classes(base: type, packages: tuple[str, ...], group: str) -> dict[str, Any]:
    """By name, in the order of their cards: every subclass of `base` with a `name` of its own in a module of `packages`, and
    those of the entry points of `group`. Raises SeqscopeError where two bear one name, or a point leads to something else."""
    modules = [
        importlib.import_module(f"{package}.{module.name}")
        for package in packages
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ]
    every: list[Any] = [
        kind
        for module in modules
        for kind in vars(module).values()
        if _declares(kind, base) and kind.__module__ == module.__name__
    ]
    for name, kind in objects(group):
        if not _declares(kind, base) or kind.name != name:
            raise SeqscopeError(f"the entry point {name!r} of {group} leads to no {base.__name__} called {name!r}")
        every.append(kind)
    by_name: dict[str, Any] = {}
    for kind in sorted(every, key=lambda kind: kind.card.order):
        if other := by_name.get(kind.name):
            raise SeqscopeError(f"{kind.__module__} and {other.__module__} both declare {kind.name!r}")
        by_name[kind.name] = kind
    return by_name


def _declares(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base) and "name" in vars(kind)
