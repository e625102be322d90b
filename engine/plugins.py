"""What other packages add to Seqscope, through entry points of their installation (docs/extending.md)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, distributions
from typing import Any


def points(group: str) -> dict[str, EntryPoint]:
    """Name → entry point. A checkout's own metadata, left by an older build, must not hide those of the installation, which is
    why every distribution is asked."""
    every = (point for one in distributions() for point in one.entry_points if point.group == group)
    return {point.name: point for point in every}


def objects(group: str) -> Iterator[tuple[str, Any]]:
    """(name, what it leads to), imported now."""
    for name, point in points(group).items():
        yield name, point.load()
