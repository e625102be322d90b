"""Users and their items, and nothing else, as papers publish them. ``user-item``: text lines "user item", oldest first (SASRec,
BERT4Rec). ``user-items``: lines "user item item …", one file to train, one to test (NGCF, LightGCN). ``letter``: a JSON document
of user -> items, oldest first (NAME.inter.json: LETTER, LC-Rec).

Item maps are lines "number id"."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.catalogue import as_text
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.sources.base import (
    Opened,
    Source,
    Workshop,
    beside,
    first_lines,
    fixed_reading,
    matching_file,
    numbered_lines,
    read_document,
)
from engine.data.sources.items import open_items
from engine.errors import SeqscopeError
from engine.tabular.findings import Findings
from engine.tabular.json_rows import entries_of
from engine.tabular.reading import Reading, UploadColumn


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


# --- letter


_SCHEMA = pa.schema([("user", pa.string()), ("item", pa.string())])


def _open_letter(options: ImportOptions, workshop: Workshop) -> Opened:
    if len(options.paths) != 1:
        raise SeqscopeError(f"letter reads one file, not {len(options.paths)}.")
    path = options.paths[0]
    if path.is_dir():
        path = matching_file(path, "*.inter.json", "letter")
    document = read_document(path, options.encoding)
    if not isinstance(document, dict):
        raise SeqscopeError(f"{path}: letter expects one JSON object of user -> list of items.")
    target = workshop.folder / path.name  # problems are reported under this name
    _write_events(target, path, document, workshop.findings)
    items = None
    catalogue = beside(path, "items.jsonl", f"{path.name.removesuffix('.inter.json')}.item.json", "item.json")
    if options.items is None and catalogue is not None:
        workshop.say(f"catalogue: {catalogue.name}, found beside the log")
        items = open_items(catalogue, options, workshop)
    columns = (UploadColumn(name="user", role="user"), UploadColumn(name="item", role="item"))
    return Opened(LogFiles((target,), (Reading(format="parquet", columns=columns),)), items)


def _write_events(target: Path, path: Path, document: dict[str, Any], findings: Findings) -> None:
    """One row per event. What is no item is reported here, where user and position are known; the file's lines say nothing."""

    def events() -> Any:
        for user, items in entries_of(document):
            if not isinstance(items, list):
                findings.add_row(path.name, "not_items", None, "", f"user {user}: {json.dumps(items)}")
                continue
            for position, item in enumerate(items, start=1):
                if isinstance(item, bool) or not isinstance(item, (int, str)) or not str(item).strip():
                    place = f"user {user}, position {position}: {json.dumps(item)}"
                    findings.add_row(path.name, "not_item", None, "", place)
                else:
                    yield {"user": as_text(user), "item": as_text(item)}

    rows = events()
    with pq.ParquetWriter(target, _SCHEMA) as writer:
        while batch := list(islice(rows, 100_000)):
            writer.write_table(pa.Table.from_pylist(batch, _SCHEMA))


LETTER = Source(
    "letter", "LETTER log", "One JSON object of user -> items, oldest first (the form of LETTER and LC-Rec)",
    "not stated in the files", 0, _open_letter,
)  # fmt: skip
