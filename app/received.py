"""Files that visitors have sent and that no page has taken yet: whose they are, and how many bytes of the server's memory.

Streamlit keeps whatever is sent to a live session until that session ends; whether a widget waits for it, it does not ask. So
the front door (app/door.py) counts here what comes, what no page takes goes after a minute, and pages say what they do with
a file:

    received.drop(upload)                  # it lies on the disk now: the copy in memory goes
    received.hold(upload, "report_batch")  # until this place of the session's page has another file, or the session ends
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import streamlit as st
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.errors import SeqscopeError

UNTAKEN_SECONDS = 60
"""How long a file may wait for a page to take it: a run, on a busy server, after a connection that was lost."""
LEAST = 1 << 16
"""Bytes that every file counts for: many empty ones are not for nothing."""
_MB = 1 << 20


class Limits(NamedTuple):
    """Bytes in memory at the same time."""

    session: int
    owner: int
    all: int

    @classmethod
    def of_config(cls) -> Limits:
        """Of files as large as one may be: two of a tab, four of an owner, sixteen of all together."""
        largest = (int(st.get_option("server.maxUploadSize")) + 1) * _MB  # with the form around the file
        return cls(2 * largest, 4 * largest, 16 * largest)


@dataclass(eq=False)
class File:
    """One that is on its way or in memory."""

    session: str
    id: str
    owner: str
    bytes: int = LEAST
    here: bool = False
    """Whether it has arrived as a whole."""
    place: str | None = None
    """Of the page that holds it."""


class Files:
    """What the door counts. Its methods may be called from any thread but `arrived`, which needs the event loop's."""

    def __init__(self) -> None:
        self._files: set[File] = set()
        self._lock = threading.Lock()

    def begin(self, session: str, id: str, owner: str, size: int = 0) -> File:
        """A file that comes; size: what its sender says, in bytes. Raises SeqscopeError where there is no room for that."""
        with self._lock:
            self._forget_removed()
            file = File(session, id, owner)
            self._check(file, max(LEAST, size))
            self._files.add(file)
            return file

    def grow(self, file: File, size: int) -> None:
        """It has come as far as `size` bytes. Raises SeqscopeError where there is no room for them."""
        with self._lock:
            self._check(file, max(LEAST, size))
            file.bytes = max(LEAST, size)

    def arrived(self, file: File) -> None:
        """It lies in memory; it goes from there unless a page takes it."""
        with self._lock:
            self._files -= {old for old in self._files if old.here and (old.session, old.id) == (file.session, file.id)}
            file.here = True
        asyncio.get_running_loop().call_later(UNTAKEN_SECONDS, self._drop_untaken, file)

    def refused(self, file: File) -> None:
        """It did not arrive."""
        with self._lock:
            self._files.discard(file)

    def hold(self, session: str, id: str, place: str) -> Iterable[str]:
        """A page needs it; returns the ids of the files that were in that place before."""
        with self._lock:
            before = {file for file in self._files if file.session == session and file.place == place and file.id != id}
            self._files -= before
            for file in self._files:
                if (file.session, file.id) == (session, id):
                    file.place = place
            return [file.id for file in before]

    def _check(self, file: File, size: int) -> None:
        limits, others = Limits.of_config(), [other for other in self._files if other is not file]
        of_session = size + sum(other.bytes for other in others if other.session == file.session)
        of_owner = size + sum(other.bytes for other in others if other.owner == file.owner)
        if of_session > limits.session or of_owner > limits.owner:
            most = limits.session if of_session > limits.session else limits.owner
            raise SeqscopeError(
                f"Files of {most // _MB} MB are the most that may be on their way from one "
                f"{'tab' if of_session > limits.session else 'browser or account'} at the same time. Wait until the others "
                "have been read, then send this one again."
            )
        if size + sum(other.bytes for other in others) > limits.all:
            raise SeqscopeError(
                "Many people are sending files to this server just now. Send this one again in a minute."
            )

    def _drop_untaken(self, file: File) -> None:
        with self._lock:
            if file not in self._files or file.place is not None:
                return
            self._files.discard(file)
        if exists():
            _storage().remove_file(file.session, file.id)

    def _forget_removed(self) -> None:
        """Streamlit removes files itself: when its browser says so, and when their session ends."""
        stored = _storage().file_storage if exists() else {}
        self._files = {file for file in self._files if not file.here or file.id in stored.get(file.session, ())}


FILES = Files()


# --- for pages


def drop(upload: Any) -> None:
    """The page has it on the disk. upload: what st.file_uploader gave."""
    if context := get_script_run_ctx():
        _remove(context, upload.file_id)


def hold(upload: Any, place: str) -> None:
    """The page reads it again in runs to come; the file that it held in this place before goes."""
    if context := get_script_run_ctx():
        for before in FILES.hold(context.session_id, upload.file_id, place):
            _remove(context, before)


def _remove(context: Any, id: str) -> None:
    context.uploaded_file_mgr.remove_file(context.session_id, id)


def _storage() -> Any:
    return get_instance().uploaded_file_mgr
