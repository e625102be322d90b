"""``table``: any log as CSV, TSV, JSON lines or Parquet, and any item file in one of these."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.rows import Layout, Mapping, first_row, header, parquet_columns
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.sources.records import json_records
from engine.data.text import Text, inspect, kind_by_content
from engine.errors import SeqscopeError, UsageError
from engine.tabular.columns import NAMES, called

DELIMITERS = (",", "\t", ";", "|")
ROLES = ("user", "item", "time", "rating", "quantity")


def table_layout(path: Path, options: ImportOptions, workshop: Workshop) -> tuple[Layout, list[str]]:
    """How `path` holds rows, and the names of its columns (numbers from 1 where it has no header)."""
    if kind_by_content(path) == "parquet":
        return Layout("parquet"), list(parquet_columns(workshop.con, path))
    text = inspect(path, options.encoding)
    if looks_like_json_lines(text):
        # Optional keys may be missing from the first line.
        beginning = islice(json_records(path, options.encoding, None), 100)
        names = list(dict.fromkeys(key for _, record in beginning for key in record))
        if not names:
            raise SeqscopeError(f"{path}: no line of it is a JSON object.")
        return Layout("jsonl", encoding=options.encoding), names
    delimiter = options.delimiter or find_delimiter(text, workshop)
    layout = Layout("delimited", delimiter, header=options.header, encoding=options.encoding)
    names = header(text, layout)[0] if options.header else first_row(text, layout)[1]
    if len(names) == 1:
        raise SeqscopeError(_one_column(path, delimiter, names[0]))
    if not options.header:
        return replace(layout, fields=len(names)), [str(number + 1) for number in range(len(names))]
    return layout, names


def looks_like_json_lines(text: Text) -> bool:
    return next(
        ((line or "").lstrip().startswith("{") for _, line in text.lines() if line is None or line.strip()), False
    )


def find_delimiter(text: Text, workshop: Workshop) -> str:
    """The delimiter that makes most fields of the first row."""
    first = next((line for _, line in text.lines() if line and line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", first)
    counts = {delimiter: bare.count(delimiter) for delimiter in DELIMITERS}
    best = max(DELIMITERS, key=lambda delimiter: counts[delimiter])
    if not counts[best]:
        raise SeqscopeError(
            f"{text.path}: only one column was found; the first line is {first.strip()[:80]!r}, without comma, tab, ; or |. "
            'Name the delimiter with --delimiter; for "user item" lines use --source user-item.'
        )
    if best != ",":
        workshop.say(f"{text.path.name}: fields are separated by {_name(best)}")
    return best


def choose_columns(path: Path, names: list[str], options: ImportOptions, workshop: Workshop) -> Mapping:
    """Which columns are user, item, time, rating and quantity: as told, else by their names."""
    given = {role: getattr(options.columns, role) for role in ROLES}
    chosen: dict[str, str | None] = {}
    guessed = []
    for role, name in given.items():
        if name == "-" and role in ("time", "rating", "quantity"):
            chosen[role] = None
        elif name is not None:
            if name not in names:
                raise UsageError(f"{path.name} has no column {name!r} for --{role}-column; it has {', '.join(names)}")
            chosen[role] = name
        else:
            unavailable = {*chosen.values(), *given.values()}
            candidates = [candidate for candidate in called(NAMES[role], names) if candidate not in unavailable]
            chosen[role] = candidates[0] if candidates and options.header else None
            if chosen[role]:
                guessed.append(f"{role} = {chosen[role]}")
    for role in ("user", "item"):
        if chosen[role] is None:
            raise UsageError(
                f"{path.name}: which column is the {role}? Name it with --{role}-column; there are {', '.join(names)}"
            )
    used = [name for name in chosen.values() if name]
    if len(set(used)) < len(used):
        raise UsageError(f"one column of {path.name} was named for two purposes: {', '.join(used)}")
    if guessed:
        workshop.say(f"{path.name}: columns guessed from their names: {', '.join(guessed)}")
    if chosen["time"] is None and given["time"] != "-":
        workshop.say(
            f"{path.name}: no time column, so the order of the rows is the order of events (--time-column names one)"
        )
    if options.min_rating is not None and chosen["rating"] is None:
        raise UsageError(
            f"--min-rating needs a rating column; name it with --rating-column; there are {', '.join(names)}"
        )
    if options.drop_negative and chosen["quantity"] is None:
        raise UsageError(
            f"--drop-negative needs a quantity column; name it with --quantity-column; there are {', '.join(names)}"
        )
    mapping = Mapping(
        chosen["user"] or "", chosen["item"] or "", *(chosen[role] for role in ("time", "rating", "quantity"))
    )
    return mapping if options.header else _numbers(mapping)


def _numbers(mapping: Mapping) -> Mapping:
    """Positions from 0 for columns that are called by numbers from 1."""
    positions = [
        None if name is None else int(name) - 1
        for name in (mapping.user, mapping.item, mapping.time, mapping.rating, mapping.quantity)
    ]
    return Mapping(positions[0] or 0, positions[1] or 0, *positions[2:])


def _one_column(path: Path, delimiter: str, first: str) -> str:
    better = next((other for other in DELIMITERS if other in first), None)
    advice = (
        f"It looks separated by {_name(better)}: --delimiter {better!r}."
        if better
        else "Name another with --delimiter."
    )
    return f"{path}: only one column was found with the delimiter {_name(delimiter)}; the first line is {first[:80]!r}. {advice}"


def _name(delimiter: str) -> str:
    return {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "|", " ": "blanks"}.get(delimiter, repr(delimiter))


def _open(options: ImportOptions, workshop: Workshop) -> Reading:
    first, *others = options.paths
    if first.is_dir():
        files = sorted(
            path
            for path in first.iterdir()
            if path.suffix in (".parquet", ".csv", ".tsv", ".jsonl", ".json", ".txt", ".gz")
        )
        raise SeqscopeError(
            f"{first} is a folder; table reads files. Name those of the log"
            + (f", such as {files[0]}." if files else ".")
        )
    layout, names = table_layout(first, options, workshop)
    mapping = choose_columns(first, names, options, workshop)
    for path in others:
        layout_here, names_here = table_layout(path, options, workshop)
        mapping = _shared(mapping, path, names_here, options, workshop)
        used = {mapping.user, mapping.item, mapping.time, mapping.rating, mapping.quantity}
        missing = used - {None, *names_here}
        if layout_here != layout or (options.header and missing):
            raise SeqscopeError(f"{path} has other columns than {first}. Import them as one log only where they agree.")
    return Reading(LogFiles(options.paths, layout, mapping))


def _shared(mapping: Mapping, path: Path, names: list[str], options: ImportOptions, workshop: Workshop) -> Mapping:
    """The mapping without the rating and the quantity where they were guessed, nothing asks for them and this file lacks them."""
    needed = {"rating": options.min_rating is not None, "quantity": options.drop_negative}
    for role, is_needed in needed.items():
        name = getattr(mapping, role)
        if isinstance(name, str) and name not in names and not is_needed and getattr(options.columns, role) is None:
            workshop.say(f"{path.name} has no column {name}, so it is used of no file (--{role}-column names another)")
            mapping = replace(mapping, rating=None) if role == "rating" else replace(mapping, quantity=None)
    return mapping


TABLE = Source("table", "Imported log", "A table of events, imported by its owner", "as its owner says", 0, _open)
