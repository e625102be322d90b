"""What a person can choose about an import, with its default. dataset.json keeps every choice."""

import io
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.data.repeats import RULES
from engine.data.split import SplitOptions
from engine.errors import UsageError
from engine.tabular.reading import PATTERN, UNITS

DUPLICATES = ("exact", "keep")
REPEATS = (*RULES, "auto")
TIES = ("file", "known", "item", "shuffle")


@dataclass(frozen=True)
class Columns:
    """Names of columns in a table. None: guessed from the names that are there, and said."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    """"-" says that the rows have no time and stand in order."""
    clock: str | None = None
    """The time of day, where `time` has days alone."""
    rating: str | None = None
    quantity: str | None = None
    """Negative ones are cancellations."""
    item_id: str | None = None
    """In the item file: the column whose values the log's item column holds."""
    title: str | None = None
    """In the item file."""


@dataclass(frozen=True)
class ImportOptions:
    """One import."""

    paths: tuple[Path, ...]
    """Files of the log, read in this order, or one folder that holds them."""
    out: Path
    """The dataset folder to write."""
    test: Path | None = None
    """A file of the same format that holds the held-out items, which makes the split a given one."""
    source: str | None = None
    """The format (a key of `engine.data.sources.SOURCES`). None: guessed from the layout, and said."""
    items: Path | None = None
    """A file with the catalogue. None: the one that the format keeps beside its log, where it does."""
    item_map: Path | None = None
    """Lines "number id": the log's item number and the item's id in the catalogue. The dataset keeps the latter."""
    columns: Columns = field(default_factory=Columns)
    header: bool = True
    """The first row of a delimited table names its columns. Without it, columns are numbers from 1."""
    delimiter: str | None = None
    """Between the fields of a delimited table. None: found in the first line, and said."""
    encoding: str | None = None
    """Of text files. None: UTF-8, and latin-1 for the MovieLens files that are written in it."""
    time_unit: str | None = None
    """Of numeric times: s, ms, us or ns. None: the one that puts most rows between 1970 and 2100."""
    time_format: str | None = None
    """A pattern such as %d.%m.%Y %H:%M. None: numbers and ISO dates, or one of the usual patterns where most are neither."""
    list_columns: tuple[str, ...] = ()
    """Columns of a delimited item table that hold several values with | between them, besides genres, categories and tags."""

    min_rating: float | None = None
    """Events rated lower are left out. None: every event counts, whatever its rating."""
    drop_negative: bool = False
    """Leave out events of a negative quantity: cancellations."""
    duplicates: str = "exact"
    """Events logged twice, with the same user, item and time: "exact" drops the copies (logs without times have none), "keep"
    keeps them."""
    repeats: str = "auto"
    """Items that a user comes back to (engine/data/repeats.py): "count" keeps all events, "first" the first of each user and
    item, "auto" measures and takes one of the two."""
    k_core: int | None = None
    """Users and items with fewer events are left out, again and again until none is. None: the format's convention."""
    min_history: int = 1
    """Users with fewer events are left out, in the same iteration as the k-core."""
    ties: str = "file"
    """Order among events of one user at one time: "file" (as in the files), "known" (as in the files, which hold
    the true order: times were rounded), "item" (by item number), "shuffle" (by `seed`)."""
    seed: int = 0
    """For ties "shuffle", and for splits that draw."""
    keep_unused_items: bool = False
    """Keep items that no user has. They can be recommended but never learned."""
    split: SplitOptions = field(default_factory=SplitOptions)

    name: str | None = None
    """The dataset's name in addresses and of its recipes. None: the last part of `out`."""
    title: str | None = None
    """The dataset's name for people. None: the format's."""
    about: str | None = None
    """Where the log comes from, in a sentence. None: the format's."""
    licence: str | None = None
    """The terms of the data. None: the format's."""
    strict: bool = False
    """Any bad row stops the import."""
    report: Path | None = None
    """A CSV file for every bad row."""
    overwrite: bool = False
    """Replace the dataset at `out`."""
    memory: str = "2GB"
    """DuckDB's share of memory; what does not fit goes to a file in the staging folder."""
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)

    def __post_init__(self) -> None:
        checks = [
            (
                self.duplicates in DUPLICATES,
                f"--duplicates {self.duplicates}: one of {', '.join(DUPLICATES)}; "
                "--repeats first keeps one event per user and item",
            ),
            (self.repeats in REPEATS, f"--repeats {self.repeats}: one of {', '.join(REPEATS)}"),
            (self.ties in TIES, f"--ties {self.ties}: one of {', '.join(TIES)}"),
            (self.time_unit in (None, *UNITS), f"--time-unit {self.time_unit}: one of {', '.join(UNITS)}"),
            (
                self.time_format is None or PATTERN.fullmatch(self.time_format) is not None,
                f"--time-format {self.time_format}: write a pattern such as %d.%m.%Y %H:%M",
            ),
            (self.time_format is None or self.time_unit is None, "--time-format and --time-unit exclude each other"),
            (
                self.columns.time != "-" or (self.time_unit, self.time_format) == (None, None),
                "--time-column - says that there are no times: leave out --time-unit and --time-format",
            ),
            (
                self.min_rating is None or math.isfinite(self.min_rating),
                f"--min-rating {self.min_rating}: give a number",
            ),
            (
                self.report is None or not any(self.report.resolve() == path.resolve() for path in self.read),
                f"--report {self.report}: that file is read; choose another",
            ),
            (self.k_core is None or self.k_core >= 0, "--k-core cannot be negative; 0 turns it off"),
            (self.min_history >= 1, "--min-history starts at 1"),
            (min(self.seed, self.split.seed) >= 0, "--seed starts at 0"),
            (len((self.title or "").splitlines()) < 2, "--title: write it on one line"),
            (self.delimiter is None or len(self.delimiter) > 0, "--delimiter cannot be empty"),
            (
                self.encoding is None or _is_encoding(self.encoding),
                f"--encoding {self.encoding}: Python knows no such encoding. Common ones: utf-8, latin-1, cp1252, utf-16",
            ),
            (len(self.paths) > 0, "name at least one file of the log"),
            (len({path.resolve() for path in self.paths}) == len(self.paths), "a file of the log is named twice"),
        ]
        for holds, message in checks:
            if not holds:
                raise UsageError(message)

    @property
    def read(self) -> tuple[Path, ...]:
        """All files (of the log, perhaps a folder) that are named."""
        return tuple(path for path in (*self.paths, self.test, self.items, self.item_map) if path is not None)

    def record(self, source: str, k_core: int, repeats: str) -> dict[str, Any]:
        """The options as dataset.json keeps them, with what was decided on the way: file names without folders, nothing about
        this machine."""
        record = asdict(self)
        for machine in ("out", "name", "report", "overwrite", "memory", "threads", "strict"):
            del record[machine]
        record["paths"] = [path.name for path in self.paths]
        record |= {name: record[name] and record[name].name for name in ("test", "items", "item_map")}
        record["list_columns"] = list(self.list_columns)
        return record | {"source": source, "k_core": k_core, "repeats": repeats}


def _is_encoding(name: str) -> bool:
    try:
        io.TextIOWrapper(io.BytesIO(), name)
    except LookupError:  # also of what makes bytes of bytes, such as base64
        return False
    return True
