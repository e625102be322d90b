"""``user-item``: text lines "user item", oldest first, as the SASRec and BERT4Rec papers publish their sets. ``user-items``:
lines "user item item …", as NGCF and LightGCN publish their splits, one file to train, one to test.

Item maps are lines "number id"."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.sources.base import Opened, Source, Workshop, first_lines, fixed_reading, numbered_lines
from engine.errors import SeqscopeError


def _open_pairs(options: ImportOptions, workshop: Workshop) -> Opened:
    for path in options.paths:
        if path.is_dir():
            raise SeqscopeError(f"{path} is a folder; user-item reads text files. Name the file in it.")
        fields = first_lines(path, options.encoding)[0].split()
        if len(fields) != 2:
            raise SeqscopeError(
                f"{path}: the first row has {len(fields)} fields, not user and item. Rows of one user and many items (as NGCF "
                "and LightGCN publish) are --source user-items; for other tables use --source table."
            )
    return Opened(_log(options.paths, options))


def _open_lists(options: ImportOptions, workshop: Workshop) -> Opened:
    files = (*options.paths, *([options.test] if options.test else []))
    for path in files:
        if path.is_dir():
            raise SeqscopeError(f"{path} is a folder; user-items reads text files. Name the file in it.")
        first_lines(path, options.encoding)  # an empty file is a mistake
    return Opened(_log(files, options, lists=True, tested=1 if options.test else 0))


def _log(files: tuple[Path, ...], options: ImportOptions, *, lists: bool = False, tested: int = 0) -> LogFiles:
    columns = {"user": "user", "item": "item"}
    readings = (fixed_reading(path, " ", columns, encoding=options.encoding) for path in files)  # type: ignore[arg-type]
    return LogFiles(files, tuple(readings), lists, tested)


def read_item_map(workshop: Workshop, path: Path, encoding: str | None) -> pa.Table:
    """Columns number and id (string), one to one: what the item numbers of a preprocessed log stand for. Blanks, tabs or a comma
    may stand between the two."""
    ids: dict[str, str] = {}
    for line, text in numbered_lines(workshop, path, encoding):
        words = text.split() if len(text.split()) > 1 else text.strip().split(",")
        if len(words) != 2:
            workshop.findings.add_row(path.name, "not_pair", line, "", " ".join(words))
        elif words[0] in ids:
            workshop.findings.add_row(path.name, "number_again", line, "number", words[0])
        else:
            ids[words[0]] = words[1]
    if len(set(ids.values())) < len(ids):
        seen: set[str] = set()
        twice = next(value for value in ids.values() if value in seen or seen.add(value))  # type: ignore[func-returns-value]
        raise SeqscopeError(
            f"{path}: several item numbers stand for {twice!r}, which would merge items. Is it the right file?"
        )
    return pa.table({"number": pa.array(ids.keys(), pa.string()), "id": pa.array(ids.values(), pa.string())})


USER_ITEM = Source(
    "user-item", "User-item lines", "Text lines of user and item, oldest first (the form of the SASRec and BERT4Rec papers)",
    "not stated in the files", 0, _open_pairs,
)  # fmt: skip
USER_ITEMS = Source(
    "user-items", "User-items lines",
    "Text lines of a user and all of their items, without order (the form of NGCF and LightGCN)",
    "not stated in the files", 0, _open_lists, sets=True,
)  # fmt: skip
