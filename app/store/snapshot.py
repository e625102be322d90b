"""A copy of the store's tables, also while a server holds them.

The process that holds the file is the only one that can read it. A command therefore asks: it makes a staging folder with a
file named `wanted` in it, and the server's server answers with store.duckdb there, or with words in `refused`.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from app import home
from app.store.database import Store
from app.store.file import Held
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.store")
_WANTED, _REFUSED = "wanted", "refused"
NAME = "store.duckdb"


def take(folder: Path, patience: float = 60.0) -> Path:
    """Writes the copy into a staging folder (home.stage()). Raises SeqscopeError where it cannot be had.

    patience: seconds to wait for the server that holds the store, if one does.
    """
    if not home.database().is_file():
        raise SeqscopeError(
            f"There is no store in {home.root()} yet: nothing was uploaded or saved. (SEQSCOPE_HOME names the folder.)"
        )
    try:
        store = Store()
    except Held as error:
        return _asked(folder, patience, error)
    try:
        return write(store, folder)
    finally:
        store.close()


def write(store: Store, folder: Path) -> Path:
    """Writes the copy: as the tables are between two writes."""
    staged, path = folder / f"{NAME}.part", folder / NAME
    with store.file.alone() as connection:
        (database,) = connection.execute("select current_database()").fetchall()[0]
        connection.execute(f"attach '{_quoted(staged)}' as copy")
        try:
            connection.execute(f'copy from database "{database}" to copy').fetchall()
            connection.execute("checkpoint copy").fetchall()
        finally:
            connection.execute("detach copy")
    staged.replace(path)
    return path


def answer(store: Store) -> int:
    """Writes the copies that commands wait for; how many."""
    done = 0
    for request in (store.home.path / "tmp").glob(f"*/{_WANTED}"):
        request.unlink(missing_ok=True)
        try:
            write(store, request.parent)
            done += 1
        except Exception as error:
            log.error("a copy of the store could not be written", exc_info=error)
            (request.parent / _REFUSED).write_text(str(error), "utf-8")
    return done


def _asked(folder: Path, patience: float, held: Held) -> Path:
    (folder / _WANTED).touch()
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if (folder / NAME).is_file():
            return folder / NAME
        if (folder / _REFUSED).is_file():
            raise SeqscopeError((folder / _REFUSED).read_text("utf-8") or "The server could not copy its store.")
        time.sleep(0.05)
    raise SeqscopeError(f"{held} It did not answer within {patience:g} s when it was asked for a copy.")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
