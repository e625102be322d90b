"""How often the store was changed, noted beside it: what shows that it has lost something.

DuckDB opens a file whose write-ahead log is missing, cut or damaged without a word, and has the older rows then. The store
counts its changes in a table; every change that was acknowledged is noted in a file of its own, `store.changes`. A store that has
counted fewer than were noted is not the one that was last written.

The note is overwritten in place, in one small write: that needs no room on a full disk, and nobody finds half of it.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

log = logging.getLogger("seqscope.store")
SUFFIX = ".changes"
_SIZE = 128  # bytes, always


@dataclass(frozen=True)
class Noted:
    """The last change that was acknowledged."""

    changes: int
    at: str
    """UTC, to the second."""


def path_of(store: Path) -> Path:
    return store.with_suffix(SUFFIX)


def read(store: Path) -> Noted | None:
    """None where there is none, as beside a store of before; also where it cannot be read, which is logged."""
    path = path_of(store)
    try:
        values = json.loads(path.read_text("utf-8"))
        return Noted(int(values["changes"]), str(values["at"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read (%s): whether the store is complete is not known", path, error)
        return None


def write(store: Path, changes: int) -> None:
    """Called when the change is on the disk: a note that cannot be written is logged, and only older than the store."""
    text = json.dumps({"changes": changes, "at": datetime.now(UTC).isoformat(timespec="seconds")})
    try:
        file = os.open(path_of(store), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, f"{text:<{_SIZE - 1}}\n".encode(), 0)
            os.fdatasync(file)
        finally:
            os.close(file)
    except OSError as error:
        log.warning("%s cannot be written (%s)", path_of(store), error)
