"""The parts of a report, in its order: every module here that declares a `PART`, and those that other packages add through the
entry point "seqscope.report_parts" (docs/extending.md)."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from app.reports.part import Part
from engine.errors import SeqscopeError
from engine.plugins import objects

GROUP = "seqscope.report_parts"


def declared() -> dict[str, Part[Any]]:
    """By name, in the order of the report. Raises SeqscopeError where two bear one name, or an entry point leads to no part."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    every = [module.PART for module in modules]
    for name, part in objects(GROUP):
        if not isinstance(part, Part):
            raise SeqscopeError(f"the entry point {name!r} of {GROUP} leads to no part of a report")
        every.append(part)
    by_name: dict[str, Part[Any]] = {}
    for part in sorted(every, key=lambda part: part.order):
        if other := by_name.get(part.name):
            raise SeqscopeError(
                f"{type(part).__module__} and {type(other).__module__} both declare the part {part.name!r}"
            )
        by_name[part.name] = part
    return by_name


PARTS = declared()
"""Name → part."""
