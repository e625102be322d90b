"""``amazon``: Amazon review JSON lines with their metadata, of 2014 and 2018 (reviewerID, asin, unixReviewTime) or 2023 (user_id,
parent_asin, timestamp in milliseconds); plain or .gz."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.data.catalogue import ItemFile
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.sources.base import (
    Opened,
    Source,
    Workshop,
    first_lines,
    json_records,
    matching_file,
    packed,
)
from engine.errors import SeqscopeError
from engine.tabular.dialect import parse_object
from engine.tabular.reading import Reading, Role, UploadColumn

KEPT = ("title", "brand", "store", "price", "categories", "category", "main_category")
"""Attributes that describe an item; descriptions, images and related items would make the catalogue many times larger."""
_ROLES: tuple[dict[str, Role], ...] = (
    {"reviewerID": "user", "asin": "item", "unixReviewTime": "time", "overall": "weight"},
    {"user_id": "user", "parent_asin": "item", "timestamp": "time", "rating": "weight"},
)


def metadata(path: Path, encoding: str | None, workshop: Workshop) -> ItemFile:
    """Lines of metadata: JSON, or the Python literals of 2014."""
    identifier = "parent_asin" if "parent_asin" in (_first(path, encoding) or {}) else "asin"
    lines = json_records(workshop, path, encoding)

    def records() -> Iterator[tuple[int | None, dict[str, Any]]]:
        for line, record in lines():
            yield line, {name: record[name] for name in (identifier, *KEPT) if name in record}

    return ItemFile(path, records, (identifier,), "title")


def _first(path: Path, encoding: str | None) -> dict[str, Any] | None:
    """The first object of a file."""
    return next((record for line in first_lines(path, encoding) if (record := parse_object(line))), None)


def _open(options: ImportOptions, workshop: Workshop) -> Opened:
    paths = options.paths
    if len(paths) == 1 and paths[0].is_dir():
        paths = (matching_file(paths[0], "reviews_*.json*", "amazon"),)
    logs = tuple(path for path in paths if not path.name.startswith("meta_"))
    if not logs:
        raise SeqscopeError("amazon needs a file of reviews (reviews_NAME_5.json.gz) beside the metadata.")
    keys = (_first(logs[0], options.encoding) or {}).keys()
    roles = next((roles for roles in _ROLES if {*list(roles)[:3]} <= keys), None)
    if roles is None:
        raise SeqscopeError(
            f"{logs[0]}: the first review has {', '.join(keys) or 'no keys'}, not reviewerID, asin and unixReviewTime (2014, "
            "2018) or user_id, parent_asin and timestamp (2023). For other JSON lines use --source table."
        )
    metadata_files = [path for path in paths if path.name.startswith("meta_")] or _metadata_beside(logs[0])
    items = None
    if metadata_files and options.items is None:
        workshop.say(f"catalogue: {metadata_files[0].name}")
        items = metadata(metadata_files[0], options.encoding, workshop)
    columns = tuple(UploadColumn(name=name, role=role) for name, role in roles.items())
    readings = tuple(
        Reading(format="jsonl", gzip=packed(log), encoding=options.encoding or "utf-8", columns=columns) for log in logs
    )
    return Opened(LogFiles(logs, readings), items)


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
