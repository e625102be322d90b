"""The store's file: one connection, one statement or transaction at a time, and what goes wrong said in words.

One process may hold a DuckDB file. Within it, whoever comes second waits for a few milliseconds; in return there are no
conflicts between transactions, and what was counted for a quota still holds when the row is written.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from app.home import DISK_FULL, free_bytes, says_full
from app.store import migrations
from engine.errors import SeqscopeError
from engine.machine import now
from engine.tabular.database import first_line, settings
from engine.writing import count

log = logging.getLogger("seqscope.store")
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
                give_up_reserve(self.path.parent)
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
                    with suppress(duckdb.Error):  # a failed commit has rolled back already
                        connection.execute("rollback")
                    raise
                write_note(self.path, int(changes))
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
            noted = None if self._accept else read_note(self.path)
            if noted is not None and not self.path.is_file():
                raise _incomplete(self.path, noted, 0)
            new = not self.path.exists()
            try:
                connection = duckdb.connect(str(self.path), config=settings("512MB", 2))
            except duckdb.Error as error:
                if new and says_full(str(error)):  # what there is of the file could never be opened
                    self.path.unlink(missing_ok=True)
                raise _refused(self.path, error) from error
            try:
                changes = migrations.changes(connection)
                if noted is not None and changes < noted.changes:
                    # what is left of the log stays as it is
                    connection.execute("pragma disable_checkpoint_on_shutdown")
                    raise _incomplete(self.path, noted, changes)
                migrations.apply(connection, self._steps)
                if noted is None or noted.changes != changes:
                    write_note(self.path, changes)
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
        if says_full(str(error)):
            return _full(self.path)
        return Unavailable(f"The store {self.path} could not be used: {_sentence(error)}")


def _incomplete(path: Path, noted: Noted, changes: int) -> Incomplete:
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
    if says_full(str(error)):
        return _full(path)
    return Unavailable(
        f"The store {path} could not be opened: {_sentence(error)} "
        "“seqscope store restore” brings back a backup (docs/deployment.md)."
    )


def _full(path: Path) -> DiskFull:
    return DiskFull(f"The store {path} could not be written: {os.strerror(errno.ENOSPC)}. Make room there.")


def _sentence(error: duckdb.Error) -> str:
    line = first_line(error)
    return line if line.endswith((".", "!", "?")) else f"{line}."


# --- how often the store was changed, noted beside it: what shows that it has lost something
#
# DuckDB opens a file whose write-ahead log is missing, cut or damaged without a word, and has the older rows then. The store
# counts its changes in a table; every change that was acknowledged is noted in a file of its own, `store.changes`. A store that
# has counted fewer than were noted is not the one that was last written. The note is overwritten in place, in one small write:
# that needs no room on a full disk, and nobody finds half of it.

NOTE_SUFFIX = ".changes"
_NOTE_SIZE = 128  # bytes, always


@dataclass(frozen=True)
class Noted:
    """The last change that was acknowledged."""

    changes: int
    at: str
    """UTC, to the second."""


def note_path(store: Path) -> Path:
    return store.with_suffix(NOTE_SUFFIX)


def read_note(store: Path) -> Noted | None:
    """None where there is none, as beside a store of before; also where it cannot be read, which is logged."""
    path = note_path(store)
    try:
        values = json.loads(path.read_text("utf-8"))
        return Noted(int(values["changes"]), str(values["at"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read (%s): whether the store is complete is not known", path, error)
        return None


def write_note(store: Path, changes: int) -> None:
    """Called when the change is on the disk: a note that cannot be written is logged, and only older than the store."""
    text = json.dumps({"changes": changes, "at": now()})
    try:
        file = os.open(note_path(store), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, f"{text:<{_NOTE_SIZE - 1}}\n".encode(), 0)
            getattr(os, "fdatasync", os.fsync)(file)  # macOS has the second alone
        finally:
            os.close(file)
    except OSError as error:
        log.warning("%s cannot be written (%s)", note_path(store), error)


# --- room on the disk that is given up so that deleting still works where the disk is full: a deletion is a write, too

RESERVE = "reserve"
RESERVE_SIZE = 16_000_000  # bytes; DuckDB writes less than a tenth of it for the deletion of a dataset


def keep_reserve(home: Path) -> None:
    """Called every ten minutes: nothing where it is there, or where it would take the last room."""
    path = home / RESERVE
    if path.exists() or free_bytes(home) < 3 * RESERVE_SIZE:
        return
    staged = home / "tmp" / RESERVE
    try:
        staged.write_bytes(os.urandom(RESERVE_SIZE))  # no file system stores it in less
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        log.warning("no room could be reserved in %s (%s): deleting may fail where the disk is full", home, error)


def give_up_reserve(home: Path) -> None:
    """Before what frees room. Nothing where there is room without it."""
    if free_bytes(home) < RESERVE_SIZE // 2 and (home / RESERVE).exists():
        (home / RESERVE).unlink(missing_ok=True)
        log.warning("the disk of %s is full: the room that was reserved for deletions is given up", home)
