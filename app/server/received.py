"""Files that visitors have sent and that no page has taken yet: whose they are, and how many bytes of the server's memory.

Streamlit keeps whatever is sent to a live session until that session ends; whether a widget waits for it, it does not ask. So
the front door (door.py) counts here what comes, what no page takes goes after a minute, and pages say what they do with
a file:

    received.drop(upload)                  # it lies on the disk now: the copy in memory goes
    received.hold(upload, "report_batch")  # until this place of the session's page has another file, or the session ends

An upload that is not finished has a folder of its session, which goes with it:

    folder = received.begin_draft(owner)   # in a script run; the session is the one that runs
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import guard, home
from engine.errors import SeqscopeError

UNTAKEN_SECONDS = 60
"""How long a file may wait for a page to take it: a run, on a busy server, after a connection that was lost."""
SILENT_SECONDS = 30
"""How long a sender may send nothing in the middle of a file."""
LEAST = 1 << 16
"""Bytes that every file counts for: many empty ones are not for nothing."""
_MB = 1 << 20


class ReceivedLimits(NamedTuple):
    """Bytes in memory at the same time."""

    session: int
    owner: int
    all: int

    @classmethod
    def of_config(cls) -> ReceivedLimits:
        """Of files as large as one may be: two of a tab, four of an owner, sixteen of all."""
        largest = (int(st.get_option("server.maxUploadSize")) + 1) * _MB  # with the form around the file
        return cls(2 * largest, 4 * largest, 16 * largest)


@dataclass(eq=False)
class ReceivedFile:
    """One that is on its way or in memory."""

    session: str
    id: str
    owner: str
    bytes: int = LEAST
    place: str | None = None
    """Of the page that holds it."""
    refusal: str = ""
    """Why it is not taken, in words for its sender."""


class Files:
    """What the door counts. Its methods may be called from any thread but `arrived`, which needs the event loop's.

    A tab and an owner send no more than their share. Where all together have sent as much as fits, the file that has been here
    longest makes room: nobody keeps the others out by leaving files here.
    """

    def __init__(self) -> None:
        self._coming: set[ReceivedFile] = set()
        self._here: dict[tuple[str, str], ReceivedFile] = {}
        """(session, id) → file, the one that has been here longest first."""
        self._lock = threading.Lock()

    def begin(self, session: str, id: str, owner: str, size: int = 0) -> ReceivedFile:
        """A file that comes; size: what its sender says, in bytes. Raises SeqscopeError where there is no room for that."""
        file = ReceivedFile(session, id, owner)
        with self._lock:
            self._forget_removed()
            self._check_shares(file, max(LEAST, size))
            self._coming.add(file)
        return file

    def grow(self, file: ReceivedFile, size: int) -> None:
        """It has come as far as `size` bytes. Raises SeqscopeError where there is no room for them."""
        size = max(LEAST, size)
        with self._lock:
            self._check_shares(file, size)
            self._make_room(size - file.bytes)
            file.bytes = size

    def arrived(self, file: ReceivedFile) -> None:
        """It lies in memory; it goes from there unless a page takes it."""
        with self._lock:
            self._coming.discard(file)
            self._here.pop((file.session, file.id), None)  # the new one took its place
            self._here[file.session, file.id] = file
        asyncio.get_running_loop().call_later(UNTAKEN_SECONDS, self._drop_untaken, file)

    def refused(self, file: ReceivedFile) -> None:
        """It did not arrive."""
        with self._lock:
            self._coming.discard(file)

    def hold(self, session: str, id: str, place: str) -> None:
        """A page needs it in this place; what it held there before goes."""
        with self._lock:
            for key, file in list(self._here.items()):
                if key == (session, id):
                    file.place = place
                elif file.session == session and file.place == place:
                    self._remove(file)

    def _check_shares(self, file: ReceivedFile, size: int) -> None:
        limits, others = (
            ReceivedLimits.of_config(),
            [each for each in (*self._coming, *self._here.values()) if each is not file],
        )
        for most, whose, of_same in (
            (limits.session, "tab", sum(other.bytes for other in others if other.session == file.session)),
            (limits.owner, "browser or account", sum(other.bytes for other in others if other.owner == file.owner)),
        ):
            if size + of_same > most:
                raise SeqscopeError(
                    f"Files of {most // _MB} MB are the most that one {whose} may have on their way at the same time. Wait until "
                    "the others have been read, then send this one again."
                )

    def _make_room(self, more: int) -> None:
        most = ReceivedLimits.of_config().all - more
        if sum(file.bytes for file in self._coming) > most:
            raise SeqscopeError(
                "Many people are sending files to this server just now. Send this one again in a minute."
            )
        while sum(file.bytes for file in (*self._coming, *self._here.values())) > most:
            self._remove(next(iter(self._here.values())))

    def _drop_untaken(self, file: ReceivedFile) -> None:
        with self._lock:
            if self._here.get((file.session, file.id)) is file and file.place is None:
                self._remove(file)

    def _remove(self, file: ReceivedFile) -> None:
        del self._here[file.session, file.id]
        if exists():
            get_instance().uploaded_file_mgr.remove_file(file.session, file.id)  # type: ignore[attr-defined]

    def _forget_removed(self) -> None:
        """Streamlit removes files itself: when its browser or a page says so, and when their session ends."""
        stored = get_instance().uploaded_file_mgr.file_storage if exists() else {}  # type: ignore[attr-defined]
        self._here = {key: file for key, file in self._here.items() if file.id in stored.get(file.session, ())}


FILES = Files()


def say_refused(session: str, words: str) -> None:
    """The session's page says why a file was not taken: Streamlit's uploader shows the number of the answer alone."""
    live = get_instance()._session_mgr.get_active_session_info(session) if exists() else None
    if live is not None:
        live.session.session_state[guard.PENDING] = ("The file was not taken", words)
        state = ClientState()
        state.CopyFrom(live.session._client_state)
        state.ClearField("fragment_id")  # the whole page
        live.session.request_rerun(state)


# --- for pages


def drop(upload: Any) -> None:
    """The page has it on the disk. upload: what st.file_uploader gave."""
    if context := get_script_run_ctx():
        context.uploaded_file_mgr.remove_file(context.session_id, upload.file_id)  # type: ignore[attr-defined]


def hold(upload: Any, place: str) -> None:
    """The page reads it again in runs to come; the file that it held in this place before goes."""
    if context := get_script_run_ctx():
        FILES.hold(context.session_id, upload.file_id, place)


# --- drafts


log = logging.getLogger("seqscope.uploads")
TICK = 1.0
"""Seconds between two looks."""


@dataclass
class _Draft:
    session: str
    home: home.Home
    connected: float
    """When its session was last seen, in seconds of `time.monotonic`."""


_lock = threading.Lock()
_drafts: dict[Path, _Draft] = {}
_watching: threading.Thread | None = None


def begin_draft(owner: str) -> Path:
    """A new folder of this session. Raises SeqscopeError where there is no room for one."""
    global _watching  # noqa: PLW0603
    here = home.here()
    folder = here.draft(owner)
    context = get_script_run_ctx(suppress_warning=True)
    with _lock:
        _drafts[folder] = _Draft("" if context is None else context.session_id, here, time.monotonic())
        if _watching is None:
            _watching = threading.Thread(target=_watch, name="drafts", daemon=True)
            _watching.start()
    return folder


def _watch() -> None:
    global _watching  # noqa: PLW0603
    while True:
        time.sleep(TICK)
        with _lock:
            for folder in [folder for folder, draft in _drafts.items() if _is_over(folder, draft)]:
                draft = _drafts.pop(folder)
                try:
                    draft.home.discard(folder)
                except (OSError, SeqscopeError):  # the sweep takes it
                    log.exception("a draft could not be taken away")
            if not _drafts:
                _watching = None
                return


def _is_over(folder: Path, draft: _Draft) -> bool:
    """Used, discarded, or of a session that does not come back."""
    if not folder.is_dir():
        return True
    if not exists() or get_instance().is_active_session(draft.session):
        draft.connected = time.monotonic()
    return time.monotonic() - draft.connected > float(st.get_option("server.disconnectedSessionTTL")) + TICK
