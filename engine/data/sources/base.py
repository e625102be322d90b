"""What a reader of one public format offers to the import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from engine.data.catalogue import ItemFile
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.data.problems import Problems


@dataclass(frozen=True)
class Workshop:
    """Where an import works."""

    con: duckdb.DuckDBPyConnection
    folder: Path
    """For intermediate files; removed in the end."""
    problems: Problems
    say: Callable[[str], None]
    """Tell the user what was guessed."""


@dataclass(frozen=True)
class Reading:
    """A source, opened: the log, and the catalogue where there is one."""

    log: LogFiles
    items: ItemFile | None = None
    item_map: pa.Table | None = None
    """Columns number and id (string)."""


@dataclass(frozen=True)
class Source:
    """One public format."""

    name: str
    title: str
    """The dataset's name for people, where the user gives none."""
    about: str
    """`DatasetInfo.source`."""
    licence: str
    k_core: int
    """The convention of the papers that use the format."""
    open: Callable[[ImportOptions, Workshop], Reading]
    sets: bool = False
    """A user's items have no order; a file beside the log may hold those that the test asks for."""
