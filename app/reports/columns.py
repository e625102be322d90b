"""Which columns of a file of histories hold what: guessed from names and values, overruled by name, and said.

One event per row has a user, an item and perhaps a time; one history per row has a list of items and perhaps a user. A column of
lists is the history, whatever else is in the row: targets, labels and lengths are not read.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.text import clean, listed, short
from engine.errors import SeqscopeError
from engine.tabular.columns import NAMES as KNOWN
from engine.tabular.columns import Values, called
from engine.tabular.roles import holds_clock

NAMES = {
    "user": (*KNOWN["user"], "person", "historyid", "history"),
    "item": KNOWN["item"],
    "items": ("items", "itemids", "history", "sequence", "itemidlist", "itemsequence"),
    "time": (*KNOWN["time"], "at"),
}
"""What columns are called, the surest first."""
LOOKED_AT = 50
"""Rows that columns are told by."""
_PARTS = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,\s'\"]+)")
_DAY = re.compile(r"\d{8}|(?!\d+([.,]\d+)?$)[^:]+")
"""A time without a time of day: no other number than 20240331."""
_SEPARATORS = ("|", ";", ",", "\t", " ")


class Columns(BaseModel):
    """What is read of a file, and what is not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    per_row: Literal["event", "history"]
    user: str | None
    """None: histories are named after their lines."""
    items: str
    """The column of items: one per row, or a list."""
    time: str | None = None
    clock: str | None = None
    """The column of the time of day, where that of `time` has days alone."""
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [("user", self.user), ("item" if self.per_row == "event" else "items", self.items), ("time", self.time)]
        parts.append(("time of day", self.clock))
        text = f"one {self.per_row} per row; " + ", ".join(f"{role} = {_quoted(name)}" for role, name in parts if name)
        return text + (f"; not read: {_told(self.unread)}" if self.unread else "")


def choose(path: Path, rows: Mapping[str, Sequence[str]], named: Mapping[str, str]) -> Columns:
    """rows: column → its values in the first rows; named: role → column, where somebody said so, "" where none is to be read.

    Raises SeqscopeError where it cannot be told, with what to do.
    """
    names = list(rows)
    for name in filter(None, named.values()):
        if name not in names:
            raise SeqscopeError(f"{path.name} has no column {_quoted(name)}; it has {_told(names)}.")
    if "items" in named and "item" in named:
        raise SeqscopeError("Name the column of one item per row (item), or of a list per row (items), not both.")
    items = named.get("items") or None
    if items is None and "item" not in named:
        items = _lists(path, rows, taken=set(named.values()))
    rest = [name for name in names if name != items and name not in named.values()]
    user = named.get("user", match(rest, "user")) or None
    if items is not None:
        return Columns(per_row="history", user=user, items=items, unread=_unread(names, user, items))
    item = named.get("item") or match(rest, "item")
    for role, column in (("user", user), ("item", item)):
        if column is None:
            raise SeqscopeError(
                f"{path.name}: which column is the {role}? It has {_told(names)}. Call one “{role}”, or say which (on the "
                f"command line: --{role}-column" + ("; a column of lists: --items-column)." if role == "item" else ").")
            )
    assert item is not None
    rest = [name for name in rest if name not in (user, item)]
    clocks = [name for name in rest if holds_clock(Values(name, list(rows[name])))]
    time = (
        named.get("time", match([name for name in rest if name not in clocks], "time") or match(rest, "time")) or None
    )
    days = time is not None and all(_DAY.fullmatch(text) for text in rows[time] if text)
    clock = clocks[0] if clocks and days else None
    return Columns(
        per_row="event", user=user, items=item, time=time, clock=clock, unread=_unread(names, user, item, time, clock)
    )


def match(names: Sequence[str], role: str) -> str | None:
    return next(iter(called(NAMES[role], names)), None)


def list_of(text: str, known: Callable[[str], bool]) -> list[str]:
    """The item ids of a text that has a list, such as [1, 2], ['a', 'b'], a|b or a b.

    known: whether a text is an id of the catalogue; such a text is one id, whatever is in it.
    """
    text = text.strip()
    if not text or known(text):
        return [text] if text else []
    if _bracketed(text):
        try:
            parsed = json.loads(text)
            if isinstance(parsed, list):
                return [str(part) for part in parsed]
        except (ValueError, RecursionError):
            pass
        return ["".join(parts) for parts in _PARTS.findall(text[1:-1])]
    sign = next((sign for sign in _SEPARATORS if sign in text), " ")
    return [part.strip() for part in text.split(sign) if part.strip()]


def _lists(path: Path, rows: Mapping[str, Sequence[str]], taken: set[str]) -> str | None:
    """The column of lists: by its name where several have some."""
    columns = [name for name, values in rows.items() if name not in taken and _mostly(values, _bracketed)]
    usual = match(columns, "items")
    if usual is not None:
        return usual
    if len(columns) > 1:
        raise SeqscopeError(
            f"{path.name}: which column holds the histories? {_told(columns)} hold lists. Say which (on the command line: "
            "--items-column)."
        )
    if columns:
        return columns[0]
    # Texts such as "a b c" are lists where the name says so.
    usual = match(list(rows), "items")
    if usual is None or usual in taken:
        return None
    return usual if any(sign in value for value in rows[usual] for sign in _SEPARATORS) else None


def _mostly(values: Sequence[str], holds: Callable[[str], bool]) -> bool:
    filled = [value for value in values if value]
    return bool(filled) and 2 * sum(map(holds, filled)) >= len(filled)


def _bracketed(text: str) -> bool:
    return (text[:1], text[-1:]) in (("[", "]"), ("(", ")"))


def _unread(names: Sequence[str], *read: str | None) -> tuple[str, ...]:
    return tuple(name for name in names if name not in read)


def _quoted(name: str) -> str:
    return f"“{short(clean(name), 30)}”"


def _told(names: Sequence[str]) -> str:
    return listed([_quoted(name) for name in names[:10]]) + (" and more" if len(names) > 10 else "")
