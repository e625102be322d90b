"""What a dataset holds out, in a sentence's middle: plain text, from `DatasetInfo.split`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

_SETS = {
    "given": "as given with the data: of each person a set of items tests, the others train, with or without a share that "
    "validates",
    "users": "by people: those held out are in nobody's training; a part of their items is the history, the others are asked for",
}


def words(split: Mapping[str, Any]) -> str:
    kind = split.get("kind")
    if kind in _SETS:
        return _SETS[kind]
    if kind != "time":
        return "each person's last event tests, the one before validates, all others train"
    moments = [day(split.get(key)) for key in ("valid_from", "test_from")]
    return (
        f"by time: the first event from {moments[0]} on validates, from {moments[1]} on tests; what was before trains"
    )


def day(seconds: object) -> str:
    """2026-11-20, of seconds since 1970; "unknown" where that is no time."""
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    try:
        return (start + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%d")  # type: ignore[arg-type]
    except (TypeError, OverflowError, ValueError):
        return "unknown"
