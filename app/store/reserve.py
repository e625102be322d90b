"""Room on the disk that is given up so that deleting still works where the disk is full: a deletion is a write, too.

reserve.keep(folder)      # by the server, every ten minutes: makes it again when there is room
reserve.give_up(folder)   # before what frees room
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

log = logging.getLogger("seqscope.store")
NAME = "reserve"
SIZE = 16_000_000  # bytes; DuckDB writes less than a tenth of it for the deletion of a dataset


def keep(home: Path) -> None:
    """Nothing where it is there, or where it would take the last room."""
    path = home / NAME
    if path.exists() or _free(home) < 3 * SIZE:
        return
    staged = home / "tmp" / NAME
    try:
        with staged.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, SIZE)
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        log.warning("no room could be reserved in %s (%s): deleting may fail where the disk is full", home, error)


def give_up(home: Path) -> None:
    """Nothing where there is room without it."""
    if _free(home) < SIZE // 2 and (home / NAME).exists():
        (home / NAME).unlink(missing_ok=True)
        log.warning("the disk of %s is full: the room that was reserved for deletions is given up", home)


def _free(home: Path) -> int:
    """Bytes that this account may still write."""
    disk = os.statvfs(home)
    return disk.f_bavail * disk.f_frsize
