"""Item maps: lines "number id" that say what the item numbers of a preprocessed log stand for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from engine.data.problems import Problems
from engine.data.rows import WORDS, Layout, records
from engine.data.text import inspect
from engine.errors import SeqscopeError


def read_item_map(path: Path, encoding: str | None, problems: Problems) -> pa.Table:
    """Columns number and id (string), one to one; blanks, tabs or a comma may stand between them."""
    ids: dict[str, str] = {}
    for line, fields, _ in records(inspect(path, encoding), Layout("delimited", WORDS, quoting=False), width=0):
        words = fields[0].split(",") if len(fields) == 1 else fields
        if isinstance(words, str) or len(words) != 2:
            problems.add(path, line, "row", " ".join(words), "not a pair of item number and id")
        elif words[0] in ids:
            problems.add(path, line, "number", words[0], "second line of the same item number")
        else:
            ids[words[0]] = words[1]
    if len(set(ids.values())) < len(ids):
        seen: set[str] = set()
        twice = next(value for value in ids.values() if value in seen or seen.add(value))  # type: ignore[func-returns-value]
        raise SeqscopeError(
            f"{path}: several item numbers stand for {twice!r}, which would merge items. Is it the right file?"
        )
    return pa.table({"number": pa.array(ids.keys(), pa.string()), "id": pa.array(ids.values(), pa.string())})
