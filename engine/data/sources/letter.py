"""``letter``: one JSON document of user -> items, oldest first (NAME.inter.json, the form of LETTER and of LC-Rec)."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.problems import Problems
from engine.data.rows import Layout, Mapping
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.sources.files import beside, matching_file
from engine.data.sources.items import open_items
from engine.data.sources.records import load_document
from engine.data.text import inspect
from engine.errors import SeqscopeError

_SCHEMA = pa.schema([("user", pa.string()), ("item", pa.string())])


def _open(options: ImportOptions, workshop: Workshop) -> Reading:
    if len(options.paths) != 1:
        raise SeqscopeError(f"letter reads one file, not {len(options.paths)}.")
    path = options.paths[0]
    if path.is_dir():
        path = matching_file(path, "*.inter.json", "letter")
    document = load_document(inspect(path, options.encoding))
    if not isinstance(document, dict):
        raise SeqscopeError(f"{path}: letter expects one JSON object of user -> list of items.")
    target = workshop.folder / path.name  # problems are reported under this name
    _write_events(target, path, document, workshop.problems)
    items = None
    catalogue = beside(path, "items.jsonl", f"{path.name.removesuffix('.inter.json')}.item.json", "item.json")
    if options.items is None and catalogue is not None:
        workshop.say(f"catalogue: {catalogue.name}, found beside the log")
        items = open_items(catalogue, options, workshop)
    return Reading(LogFiles((target,), Layout("parquet"), Mapping("user", "item")), items)


def _write_events(target: Path, path: Path, document: dict[str, Any], problems: Problems) -> None:
    """One row per event. What is no item is reported here, where user and position are known; the file's lines say nothing."""

    def events() -> Any:
        for user, items in document.items():
            if not isinstance(items, list):
                problems.add(path, None, f"user {user}", items, "not a list of items")
                continue
            for position, item in enumerate(items, start=1):
                if isinstance(item, bool) or not isinstance(item, (int, str)) or not str(item).strip():
                    problems.add(path, None, f"user {user}, position {position}", item, "not an item number or id")
                else:
                    yield {"user": user, "item": str(item)}

    rows = events()
    with pq.ParquetWriter(target, _SCHEMA) as writer:
        while batch := list(islice(rows, 100_000)):
            writer.write_table(pa.Table.from_pylist(batch, _SCHEMA))


LETTER = Source(
    "letter", "LETTER log", "One JSON object of user -> items, oldest first (the form of LETTER and LC-Rec)",
    "not stated in the files", 0, _open,
)  # fmt: skip
