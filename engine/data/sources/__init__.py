"""One reader per public format; `SOURCES` names them, `guess_source` tells them by the layout of a log."""

from collections.abc import Sequence
from pathlib import Path

from engine.data.sources.amazon import AMAZON
from engine.data.sources.base import Opened, Source, Workshop, beside, first_lines, listing
from engine.data.sources.histories import LETTER, USER_ITEM, USER_ITEMS
from engine.data.sources.movielens import ML_1M, ML_20M, ML_100K, MOVIETWEETINGS
from engine.data.sources.table import TABLE
from engine.errors import SeqscopeError
from engine.tabular.dialect import parse_object
from engine.tabular.text import content_kind, named

SOURCES: dict[str, Source] = {
    s.name: s for s in (ML_1M, ML_100K, ML_20M, MOVIETWEETINGS, USER_ITEM, USER_ITEMS, LETTER, AMAZON, TABLE)
}

__all__ = ["SOURCES", "Opened", "Source", "Workshop", "guess_source"]

_LINES = 20
_FOLDERS = (
    ("ratings.dat", "ml-1m"),
    ("u.data", "ml-100k"),
    ("ratings.csv", "ml-20m"),
    ("*.inter.json", "letter"),
    ("reviews_*.json*", "amazon"),
)


def guess_source(paths: Sequence[Path], encoding: str | None, *, tested: bool = False) -> tuple[str, str]:
    """(name of the source, why). tested: a file of held-out items stands beside the log."""
    path = paths[0]
    if tested:
        return "user-items", "there is a file of held-out items"
    if path.is_dir():
        for pattern, name in _FOLDERS:
            matches = sorted(path.glob(pattern))
            if matches:
                return name, f"{path.name} holds {matches[0].name}"
        raise SeqscopeError(
            f"{path}: no known layout; it holds {listing(path)}. Name the log's file, or the format with --source."
        )
    for pattern, name in _FOLDERS:
        if path.match(pattern) and (name != "ml-20m" or beside(path, "movies.csv")):
            return name, f"the file is called {path.name}"
    with named(path):
        if content_kind(path) == "parquet":
            return "table", "it is a Parquet file"
    lines = [line.strip() for line in first_lines(path, encoding)[:_LINES]]
    first = lines[0]
    if first.startswith("{"):
        row = parse_object(first) or {}
        if {"reviewerID", "asin"} <= row.keys() or {"user_id", "parent_asin"} <= row.keys():
            return "amazon", "its lines are Amazon reviews"
        if not row or (len(row) > 1 and all(isinstance(value, list) for value in row.values())):
            return "letter", "it is one JSON object"
        return "table", "it holds JSON lines"
    if first.count("::") == 3:
        return "ml-1m", "its fields are separated by ::"
    if len(first.split()) == 2 and not set(",;|") & set(first) and all(word.isdecimal() for word in first.split()):
        return "user-item", "its lines are pairs of numbers"
    widths = {len(line.split()) for line in lines}
    if len(widths) > 1 and all(word.isdecimal() for line in lines for word in line.split(" ")):
        return "user-items", "its lines are numbers, some more and some fewer"
    return "table", "it is a table with the columns " + first[:60]
