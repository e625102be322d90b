"""How a file is read, what was found in it: the words that page, runner and child have in common. All of it is JSON.

guess = files.guess(folder, "catalogue", limits)    Guess: a Reading, how sure each part of it is, three values per column
reading = guess.reading.with_role("name", "title")  Reading: everything about a file that can be chosen
checked = files.check(folder, readings, limits)     CheckResult: all findings counted, the first hundred, what is left out
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

FileKind = Literal["catalogue", "log"]
KINDS: tuple[FileKind, ...] = ("catalogue", "log")
Format = Literal["delimited", "jsonl", "json", "parquet"]
"""jsonl: an object per line; json: one document of them (engine/tabular/json_rows.py)."""
Role = Literal[
    "item_id", "title", "text", "list", "flag", "user", "item", "time", "clock", "weight", "quantity", "skip"
]
"""item_id, title: of a catalogue; text, list, flag: its attributes (list: several values in one field; flag: 0 or 1, many of
which become one list of the columns' names); user, item, time, clock (the time of day, where `time` has days alone), weight (such
as a rating), quantity (negative: a cancellation): of a log, which may say item_id's title and attributes, too; skip: not read."""
Sure = Literal["certain", "likely", "unsure"]

ROLES: dict[str, tuple[Role, ...]] = {
    "catalogue": ("item_id", "title", "text", "list", "flag", "skip"),
    "log": ("user", "item", "time", "clock", "weight", "quantity", "title", "text", "list", "flag", "skip"),
}
"""A log may say what its items are called, too: where there is no catalogue, one is made of it."""
NEEDED: dict[str, tuple[Role, ...]] = {"catalogue": ("item_id",), "log": ("user", "item")}
ONCE: tuple[Role, ...] = ("item_id", "title", "user", "item", "time", "clock", "weight", "quantity")
ROLE_WORDS: dict[str, str] = {
    "item_id": "item id", "title": "title", "text": "attribute", "list": "attribute with several values",
    "flag": "yes or no", "user": "user", "item": "item", "time": "time", "clock": "time of day",
    "weight": "rating or weight", "quantity": "quantity", "skip": "not used",
}  # fmt: skip
ENCODINGS: dict[str, str] = {
    "utf-8": "UTF-8", "utf-16": "UTF-16", "utf-16-le": "UTF-16 (LE)", "utf-16-be": "UTF-16 (BE)",
    "cp1252": "Windows-1252 (Western)", "latin-1": "Latin-1 (Western)", "cp1250": "Windows-1250 (Central European)",
    "cp1251": "Windows-1251 (Cyrillic)", "koi8-r": "KOI8-R (Cyrillic)", "cp949": "CP949 (Korean)",
    "cp932": "Shift-JIS (Japanese)", "euc-jp": "EUC-JP (Japanese)", "gb18030": "GB18030 (Chinese)", "big5": "Big5 (Chinese)",
}  # fmt: skip
"""Encodings that may be chosen, as Python and as people call them."""
DELIMITERS: dict[str, str] = {
    ",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar |", "::": "double colon ::", " ": "blanks", "^": "caret ^",
    "␁": "Ctrl-A (Hive)",
}  # fmt: skip
"""SOH stands in lines by its picture (engine/tabular/text.py)."""
QUOTES: dict[str, str] = {'"': 'double "', "'": "single '", "": "none"}
SEPARATORS: dict[str, str] = {"|": "vertical bar |", ",": "comma", ";": "semicolon", "/": "slash /", " ": "blank"}
UNITS: dict[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
TIMES: dict[str, str] = {
    "s": "unix seconds", "ms": "unix milliseconds", "us": "unix microseconds", "ns": "unix nanoseconds",
    "iso": "ISO 8601 (2024-03-31, 2024-03-31 18:05:00, …)",
}  # fmt: skip
"""Formats of time with a name; any other is a pattern such as %d.%m.%Y."""
_LONGEST_NAME = 100
PATTERN = re.compile(r"(?=.*%)(?:%-?[aAbBdHIjmMpSyYfgznuUW%]|[^%\x00-\x1f']){1,60}")
"""What a pattern of times may be made of."""


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UploadColumn(Record):
    """One column of a file."""

    name: str
    """As the file calls it, or "column 3" where it has no header."""
    role: Role
    called: str = ""
    """What an attribute or flag is to be called; "" takes `name`."""
    separator: str = "|"
    """role list: what stands between the values."""


class Reading(Record):
    """How to read one file."""

    format: Format
    gzip: bool = False
    encoding: str = "utf-8"
    """A key of ENCODINGS. Parquet: no matter."""
    encoding_guessed: bool = False
    """Neither the bytes prove it nor did the visitor choose it."""
    delimiter: str = ","
    """delimited: a key of DELIMITERS, or another character."""
    quote: str = '"'
    """delimited: a key of QUOTES."""
    header: bool = True
    """delimited: the first row names the columns."""
    columns: tuple[UploadColumn, ...] = ()
    """delimited: all columns, in their order; else: those that are known."""
    time: str | None = None
    """log: a key of TIMES, or a pattern. None where no column has the role time."""
    flags: str = "tags"
    """catalogue: what the list is called that the columns with the role flag are folded into."""
    ties: Literal["file", "shuffle"] = "file"
    """log: the order among events of one user at one time: as in the file, or drawn by lot."""
    drop_negative: bool = False
    """log: events of a negative quantity (cancellations) are left out."""
    min_rating: float | None = None
    """log: events rated lower are left out; None: none is."""
    repeats: Literal["count", "first"] | None = None
    """log: items that a user comes back to count, or the first event of each pair alone is used; None: as measured."""

    def column(self, role: Role) -> UploadColumn | None:
        """The one column with this role."""
        return next((column for column in self.columns if column.role == role), None)

    def with_role(self, name: str, role: Role) -> Reading:
        """The same with another role for one column; who had it before, where only one may, is an attribute or not used."""
        changed = []
        for column in self.columns:
            if column.name == name:
                column = column.model_copy(update={"role": role})
            elif role in ONCE and column.role == role:
                column = column.model_copy(update={"role": "text" if role in ROLES["catalogue"] else "skip"})
            changed.append(column)
        return self.model_copy(update={"columns": tuple(changed)})

    def faults(self, kind: FileKind) -> list[str]:
        """Why the file cannot be read like this, a sentence each; empty where it can."""
        faults = []
        roles = [column.role for column in self.columns]
        if missing := [f"the {ROLE_WORDS[role]}" for role in NEEDED[kind] if role not in roles]:
            holding = "column that holds" if len(missing) == 1 else "columns that hold"
            faults.append(f"Choose the {holding} {' and '.join(missing)}.")
        for role in ONCE:
            if roles.count(role) > 1:
                named = " and ".join(f"“{column.name}”" for column in self.columns if column.role == role)
                faults.append(f"Only one column can be the {ROLE_WORDS[role]}; now it is {named}.")
        if strange := set(roles) - set(ROLES[kind]):
            faults.append(f"A {kind} has no column for {', '.join(sorted(ROLE_WORDS[role] for role in strange))}.")
        if len({column.name for column in self.columns}) < len(self.columns):
            faults.append("Two columns have the same name.")
        if self.format != "parquet" and self.encoding not in ENCODINGS:
            faults.append(f"The encoding “{self.encoding}” is not known here.")
        if self.format == "delimited":
            if not 0 < len(self.delimiter) <= 4 or any(c in "\r\n\x00" for c in self.delimiter):
                faults.append("The delimiter must be one to four characters.")
            if self.quote not in QUOTES or self.quote == self.delimiter:
                faults.append("The quote must be \" or ' or none, and not the delimiter.")
        if "clock" in roles and "time" not in roles:
            faults.append("Choose the column of the days that the times of day belong to as the time.")
        if "time" in roles and (self.time is None or not (self.time in TIMES or PATTERN.fullmatch(self.time))):
            faults.append("Choose the format of the times: a unit, ISO 8601, or a pattern such as %d.%m.%Y %H:%M.")
        return faults


def column_names(fields: Sequence[str]) -> list[str]:
    """What columns are called whose header has these fields: one line each, none empty, none twice."""
    names: list[str] = []
    for index, field in enumerate(fields):
        name = " ".join(field.split())[:_LONGEST_NAME] or f"column {index + 1}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def texts(names: Sequence[str]) -> tuple[UploadColumn, ...]:
    """Columns that are all read as they stand."""
    return tuple(UploadColumn(name=name, role="text") for name in names)


class ReadingChoice(Record):
    """One thing about a file that was guessed."""

    about: Literal["encoding", "delimiter", "quote", "header", "columns", "time"]
    value: str
    sure: Sure
    why: str
    """A sentence; nothing in it needs escaping."""
    others: tuple[str, ...] = ()
    """What else it may be, the likeliest first."""


class Seen(Record):
    """What a column looks like. Values are as they are: the page escapes them."""

    name: str
    samples: tuple[str, ...] = ()
    """The first three different values, shortened."""
    filled: float = 0.0
    """Share of rows (of those that were looked at) with a value."""
    distinct: int = 0


class Guess(Record):
    """What a file seems to be."""

    what: FileKind
    reading: Reading
    choices: tuple[ReadingChoice, ...] = ()
    seen: tuple[Seen, ...] = ()
    rows: int = 0
    """Parquet: rows; else: lines."""
    size: int = 0
    """Bytes, unpacked."""
    head: tuple[str, ...] = ()
    """The first lines as they stand, shortened."""
    foreign: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Encoding → the first lines that it decides on, as it reads them. Empty where it makes no difference."""
    seems: FileKind | None = None
    """The other kind, where the file is rather of that: events where a catalogue was expected, items where a log was."""
    stop: str = ""
    """Why the file cannot be read at all like this, and what to change; "" where it can."""

    def choice(self, about: str) -> ReadingChoice | None:
        return next((choice for choice in self.choices if choice.about == about), None)


assert set(get_args(Role)) == set(ROLE_WORDS)


# --- limits


MB = 1 << 20


class Limits(Record):
    """Of the reading of one file that somebody else brings. Everything beyond ends in words."""

    upload: int = 25 * MB
    """Bytes of a file as it comes."""
    text: int = 512 * MB
    """Bytes of a file once it is unpacked and decoded."""
    ratio: int = 200
    """Times that a compressed file may grow; small ones may grow as they like."""
    rows: int = 5_000_000
    columns: int = 200
    cell: int = 10_000
    """Characters of an attribute that are kept."""
    memory: int = 1024 * MB
    """Bytes for DuckDB and for what Python holds, beside the programs themselves."""
    seconds: int = 300
    threads: int = 2
    disk: int = 1024 * MB
    """Bytes of all files that one step writes, those included that go when it ends."""


UNLIMITED = Limits(text=1 << 62, ratio=1 << 62, rows=1 << 58, columns=1 << 20, disk=1 << 62)
"""Of files that are one's own."""
