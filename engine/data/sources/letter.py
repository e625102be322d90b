"""``letter``: one JSON document of user -> items, oldest first (NAME.inter.json, the form of LETTER and of LC-Rec)."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.catalogue import as_text
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.sources.base import Opened, Source, Workshop, beside, matching_file, read_document
from engine.data.sources.items import open_items
from engine.errors import SeqscopeError
from engine.tabular.findings import Findings
from engine.tabular.json_rows import entries_of
from engine.tabular.reading import Reading, UploadColumn

_SCHEMA = pa.schema([("user", pa.string()), ("item", pa.string())])


def _open(options: ImportOptions, workshop: Workshop) -> Opened:
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
    "not stated in the files", 0, _open,
)  # fmt: skip
