"""The parts of a report, in its order: every module here that declares a `PART`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from app.reports.part import Part

_MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
PARTS: dict[str, Part[Any]] = {
    part.name: part for part in sorted((module.PART for module in _MODULES), key=lambda part: part.order)
}
"""Name → part."""
