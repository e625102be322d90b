"""Folders of uploads that are not finished: each belongs to a session, and goes with it.

    folder = drafts.begin(owner)      # in a script run; the session is the one that runs
    drafts.forget()                   # where a server begins: no session outlives one

Streamlit has no hook for the end of a session, and the garbage collector may find one that is over much later. So a thread asks,
as long as there are drafts, which sessions are connected. One that lost its connection may come back for as long as Streamlit
keeps it (`server.disconnectedSessionTTL`).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import home
from engine.errors import SeqscopeError

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


def begin(owner: str) -> Path:
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


def forget() -> None:
    """Takes away what sessions of an earlier server have left."""
    here = home.here()
    for folder in here.drafts():
        here.discard(folder)


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
    if not runtime.exists() or runtime.get_instance().is_active_session(draft.session):
        draft.connected = time.monotonic()
    return time.monotonic() - draft.connected > float(st.get_option("server.disconnectedSessionTTL")) + TICK
