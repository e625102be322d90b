"""``amazon``: Amazon review JSON lines with their metadata, of 2014 and 2018 (reviewerID, asin, unixReviewTime) or 2023 (user_id,
parent_asin, timestamp in milliseconds); plain or .gz."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from engine.data.catalogue import ItemFile
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.problems import Problems
from engine.data.rows import Layout, Mapping
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.sources.files import matching_file
from engine.data.sources.records import json_records
from engine.errors import SeqscopeError

KEPT = ("title", "brand", "store", "price", "categories", "category", "main_category")
"""Attributes that describe an item; descriptions, images and related items would make the catalogue many times larger."""
_MAPPINGS = (
    Mapping("reviewerID", "asin", "unixReviewTime", "overall"),
    Mapping("user_id", "parent_asin", "timestamp", "rating"),
)


def metadata(path: Path, encoding: str | None, problems: Problems) -> ItemFile:
    """Lines of metadata: JSON, or the Python literals of 2014."""

    def records(identifier: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for line, record in json_records(path, encoding, problems):
            yield line, {name: record[name] for name in (identifier, *KEPT) if name in record}

    first = next((record for _, record in islice(json_records(path, encoding, None), 1)), {})
    identifier = "parent_asin" if "parent_asin" in first else "asin"
    return ItemFile(path, partial(records, identifier), (identifier,), "title")


def _open(options: ImportOptions, workshop: Workshop) -> Reading:
    paths = options.paths
    if len(paths) == 1 and paths[0].is_dir():
        paths = (matching_file(paths[0], "reviews_*.json*", "amazon"),)
    logs = tuple(path for path in paths if not path.name.startswith("meta_"))
    if not logs:
        raise SeqscopeError("amazon needs a file of reviews (reviews_NAME_5.json.gz) beside the metadata.")
    keys = next((record for _, record in json_records(logs[0], options.encoding, None)), {}).keys()
    mapping = next((m for m in _MAPPINGS if {m.user, m.item, m.time} <= keys), None)
    if mapping is None:
        raise SeqscopeError(
            f"{logs[0]}: the first review has {', '.join(keys) or 'no keys'}, not reviewerID, asin and unixReviewTime (2014, "
            "2018) or user_id, parent_asin and timestamp (2023). For other JSON lines use --source table."
        )
    metadata_files = [path for path in paths if path.name.startswith("meta_")] or _metadata_beside(logs[0])
    items = None
    if metadata_files and options.items is None:
        workshop.say(f"catalogue: {metadata_files[0].name}")
        items = metadata(metadata_files[0], options.encoding, workshop.problems)
    return Reading(LogFiles(logs, Layout("jsonl", encoding=options.encoding), mapping), items)


def _metadata_beside(log: Path) -> list[Path]:
    """meta_Beauty.json.gz for reviews_Beauty_5.json.gz."""
    category = log.name.split(".")[0].removeprefix("reviews_").removesuffix("_5")
    return [
        path
        for path in sorted(log.parent.glob(f"meta_{category}.json*"))
        if path.is_file() and not path.name.endswith(".part")
    ]


AMAZON = Source(
    "amazon", "Amazon reviews", "Amazon product reviews, collected by J. McAuley's group (UCSD): jmcauley.ucsd.edu/data/amazon",
    "no licence stated; offered for research, cite McAuley et al. (2015)", 5, _open,
)  # fmt: skip
