"""The store's file: one connection, one statement or transaction at a time, and what goes wrong said in words.

One process may hold a DuckDB file. Within it, whoever comes second waits for a few milliseconds; in return there are no
conflicts between transactions, and what was counted for a quota still holds when the row is written.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from app.home import DISK_FULL
from app.store import migrations, note, reserve
from app.text import count
from engine.errors import SeqscopeError

Row = tuple[Any, ...]


class Unavailable(SeqscopeError):
    """The store cannot be opened or written now: why, for those who run the server, with files and processes."""

    shown = "What visitors bring cannot be had now. Those who run this server find out why in its log."
    """For visitors."""


class DiskFull(Unavailable):
    """There is no room for the store."""

    shown = DISK_FULL


class Held(Unavailable):
    """Another process holds the file."""


class Incomplete(Unavailable):
    """The file lacks changes that were acknowledged."""


class StoreFile:
    """An open DuckDB file with the store's tables. Safe to use from many threads."""

    def __init__(self, path: Path, steps: Sequence[str] = migrations.STEPS, *, accept: bool = False) -> None:
        """accept: it is taken as it is, even if it lacks changes; Raises Incomplete otherwise."""
        self.path = path
        self._steps = steps
        self._accept = accept
        self._lock = threading.RLock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._depth = 0
        self._closed = False
        with self._lock:
            self._open()

    def close(self) -> None:
        """For good: another process may have the file now."""
        with self._lock:
            self._closed = True
            self._drop()

    @contextmanager
    def transaction(self, *, freeing: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """All or nothing, and on the disk when the block has ended. One within another is part of it.

        freeing: what is written makes room, and may use what is reserved for that.
        """
        with self._lock:
            if freeing:
                reserve.give_up(self.path.parent)
            connection = self._open()
            self._depth += 1
            try:
                if self._depth > 1:
                    yield connection
                    return
                connection.execute("begin")
                try:
                    yield connection
                    ((changes,),) = connection.execute(
                        "update change set number = number + 1 returning number"
                    ).fetchall()
                    connection.execute("commit")
                except BaseException:
                    _rollback(connection)
                    raise
                note.write(self.path, int(changes))
            except duckdb.Error as error:
                raise self._failure(error) from error
            finally:
                self._depth -= 1

    @contextmanager
    def alone(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The connection itself, for what cannot be part of a transaction."""
        with self._lock:
            try:
                yield self._open()
            except duckdb.Error as error:
                raise self._failure(error) from error

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows of one statement, in the transaction that is going on, if one is."""
        with self._lock:
            try:
                return self._open().execute(sql, list(values)).fetchall()
            except duckdb.Error as error:
                raise self._failure(error) from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._closed:
            raise Unavailable(f"The store {self.path} was closed: the server is stopping.")
        if self._connection is None:
            noted = None if self._accept else note.read(self.path)
            if noted is not None and not self.path.is_file():
                raise _incomplete(self.path, noted, 0)
            try:
                connection = duckdb.connect(str(self.path), config=_CONFIG)
            except duckdb.Error as error:
                raise _refused(self.path, error) from error
            try:
                changes = migrations.changes(connection)
                if noted is not None and changes < noted.changes:
                    # what is left of the log stays as it is
                    connection.execute("pragma disable_checkpoint_on_shutdown")
                    raise _incomplete(self.path, noted, changes)
                migrations.apply(connection, self._steps)
                if noted is None or noted.changes != changes:
                    note.write(self.path, changes)
            except BaseException as error:
                connection.close()
                if isinstance(error, duckdb.Error):
                    raise _refused(self.path, error) from error
                raise
            self._connection = connection
        return self._connection

    def _failure(self, error: duckdb.Error) -> SeqscopeError:
        if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
            # DuckDB answers nothing more after such an error, a full disk say; a connection of its own begins afresh
            self._drop()
        if _full(error):
            return DiskFull(DISK_FULL)
        return Unavailable(f"The store {self.path} could not be used: {_first_line(error)}")


_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "512MB",
    "temp_directory": "",
    "threads": "2",
}


def _rollback(connection: duckdb.DuckDBPyConnection) -> None:
    with suppress(duckdb.Error):  # a failed commit has rolled back already
        connection.execute("rollback")


def _incomplete(path: Path, noted: note.Noted, changes: int) -> Incomplete:
    return Incomplete(
        f"The store {path} lacks {count(noted.changes - changes, 'change')} that it had, the last of {noted.at}: its "
        "write-ahead log was lost or damaged, or an older copy was put in its place. Nothing was deleted. Put store.duckdb and "
        "store.duckdb.wal back as they were, or a backup with “seqscope store restore”; “seqscope store accept” goes on with "
        "what is there (docs/deployment.md)."
    )


def _refused(path: Path, error: duckdb.Error) -> Unavailable:
    words = str(error)
    if "lock" in words.lower() and "conflict" in words.lower():
        holder = re.search(r"\(PID (\d+)", words)
        process = f" (process {holder[1]})" if holder else ""
        return Held(
            f"Another Seqscope server{process} holds the store {path}, and only one may. "
            "Stop that one, or give this one a folder of its own with SEQSCOPE_HOME."
        )
    if _full(error):
        return DiskFull(DISK_FULL)
    return Unavailable(
        f"The store {path} could not be opened: {_first_line(error)} "
        "“seqscope store restore” brings back a backup (docs/deployment.md)."
    )


def _full(error: duckdb.Error) -> bool:
    """DuckDB says what the system says."""
    return any(os.strerror(number) in str(error) for number in (errno.ENOSPC, errno.EDQUOT))


def _first_line(error: duckdb.Error) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line if line.endswith((".", "!", "?")) else f"{line}."
