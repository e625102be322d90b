"""The parts of a report, in its order: every module here that declares a `PART`, and those that other packages add through the
entry point "seqscope.report_parts" (docs/extending.md)."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import entry_points
from typing import Any

from app.reports.part import Part

_MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
_ADDED = [point.load() for point in entry_points(group="seqscope.report_parts")]
PARTS: dict[str, Part[Any]] = {
    part.name: part for part in sorted([*(module.PART for module in _MODULES), *_ADDED], key=lambda part: part.order)
}
"""Name → part."""
