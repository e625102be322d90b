"""The parts of a report, in its order: every module here that declares a `PART`, and those that other packages add through the
entry point "seqscope.report_parts" (docs/extending.md)."""

import importlib
import pkgutil
from typing import Any

from app.reports.part import Part
from engine.errors import SeqscopeError
from engine.plugins import take

GROUP = "seqscope.report_parts"


def declared() -> dict[str, Part[Any]]:
    """By name, in the order of the report; what an entry point adds is left out where it is no part, or bears the name of one."""
    by_name: dict[str, Part[Any]] = {}

    def add(_: str, part: Any) -> None:
        if not isinstance(part, Part):
            raise SeqscopeError("it is no part of a report")
        if other := by_name.get(part.name):
            raise SeqscopeError(
                f"{type(part).__module__} and {type(other).__module__} both declare the part {part.name!r}"
            )
        by_name[part.name] = part

    for module in pkgutil.iter_modules(__path__):
        add("", importlib.import_module(f"{__name__}.{module.name}").PART)
    take(GROUP, add)
    return dict(sorted(by_name.items(), key=lambda entry: entry[1].order))


PARTS = declared()
"""Name → part."""
