"""A catalogue without a log: a dataset of items that nobody has taken yet. Models that know items by their words serve it.

Its folder has the files of every other dataset, with nobody in users.parquet and nothing in interactions.parquet.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine import __version__
from engine.data.catalogue import Notices, attribute_table, choose_id_column, read_catalogue
from engine.data.dataset import Dataset, DatasetInfo
from engine.data.options import ImportOptions
from engine.data.prepare import (
    SHOWN_PROBLEMS,
    ImportResult,
    check_paths,
    open_workshop,
    stop_for_bad_rows,
    write_report,
)
from engine.data.sources import Workshop
from engine.data.sources.items import open_items
from engine.data.write import write_events

NO_LOG = "none"
"""The split of a dataset without a log."""
SOURCE = "A catalogue without a log."
LICENCE = "Not stated."


def import_catalogue(options: ImportOptions, say: Callable[[str], None] = lambda line: None) -> ImportResult:
    """Make a dataset of the one item file in `options.paths`; what is said of logs in `options` plays no part."""
    check_paths(options)
    with open_workshop(options, say) as (folder, workshop):
        return _import(options.paths[0], options.name or options.out.name, options, workshop, folder)


def _import(path: Path, name: str, options: ImportOptions, workshop: Workshop, folder: Path) -> ImportResult:
    findings, notices = workshop.findings, Notices()
    source = open_items(path, options, workshop)
    if len(source.id_columns) > 1:
        workshop.say(
            f"{path.name}: the items' ids are in the column {choose_id_column(source, set())} "
            "(--item-id-column names another)"
        )
    ids, titles, attributes, _ = read_catalogue(source, [], findings, notices, keep_unused=True)
    counts = findings.bad_rows()
    if not ids or (counts and options.strict):
        stop_for_bad_rows(
            workshop, options, "nothing was written, because of --strict" if ids else "no good row is left"
        )
    if options.report:
        write_report(workshop, options.report)
    info = fill_catalogue(
        folder, name=name, title=options.title or "A catalogue", source=options.about or SOURCE,
        licence=options.licence or LICENCE, items=attribute_table(ids, titles, attributes), options=_record(path, options),
        left_out=counts,
    )  # fmt: skip
    lines = [f"{count:,} {notice}" for notice, count in notices.counts.items() if count]
    return ImportResult(info, findings.first(SHOWN_PROBLEMS, by_line=True), counts, lines)


def fill_catalogue(
    folder: Path,
    *,
    name: str,
    title: str,
    source: str,
    licence: str,
    items: pa.Table,
    options: Mapping[str, Any] | None = None,
    left_out: Mapping[str, int] | None = None,
) -> DatasetInfo:
    """Write the files of a dataset without a log into a folder that exists. items: as `write_dataset` takes it."""
    info = DatasetInfo(
        name=name, title=title, source=source, licence=licence, simulated=False,
        counts={"users": 0, "items": items.num_rows, "events": 0, "train": 0, "valid": 0, "test": 0},
        lengths={"min": 0.0, "median": 0.0, "mean": 0.0, "max": 0.0},
        sparsity=1.0,
        time={"unit": "order", "first": None, "last": None, "ties": 0},
        split={"kind": NO_LOG},
        options=dict(options or {}),
        left_out=dict(left_out or {}),
        fingerprint=fingerprint(items),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        created_by=f"seqscope {__version__}",
        attributes=[column for column in items.column_names if column not in ("item_id", "title")],
    )  # fmt: skip
    numbers = pa.array(np.arange(items.num_rows, dtype=np.int32))
    table = items.select(["item_id", "title", *info.attributes]).add_column(0, "item", numbers)
    pq.write_table(table, folder / "items.parquet", compression="zstd")
    nobody = pa.table({"user": pa.array([], pa.int32()), "user_id": pa.array([], pa.string())})
    pq.write_table(nobody, folder / "users.parquet")
    nothing = np.empty(0, np.int32)
    write_events(folder / "interactions.parquet", nothing, nothing, None, nothing.astype(np.int8))
    (folder / "dataset.json").write_text(info.to_json(), "utf-8")
    Dataset(folder)
    return info


def fingerprint(items: pa.Table) -> str:
    """sha256 (hex) over ids and texts: without a log, what is said of the items is all that a model goes by."""
    digest = hashlib.sha256(b"a catalogue without a log\0")
    for name in items.column_names:
        digest.update(json.dumps(name).encode() + b"\1")
        for value in items[name].to_pylist():
            digest.update(json.dumps(value, default=str).encode() + b"\0")
    return digest.hexdigest()


def _record(path: Path, options: ImportOptions) -> dict[str, Any]:
    """The options as dataset.json keeps them."""
    columns = {"item_id": options.columns.item_id, "title": options.columns.title}
    return {
        "source": "catalogue", "items": path.name, "columns": columns, "delimiter": options.delimiter,
        "encoding": options.encoding, "list_columns": list(options.list_columns),
    }  # fmt: skip
