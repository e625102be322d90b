"""No traceback reaches a visitor: what goes wrong becomes one message with a number, and the log has the rest.

with guard.watch("the page Compare"):
    …                                      # a page, or a part of it that the rest can do without

st.button("Add", on_click=guard.callback(add, item_id))
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ParamSpec

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import home
from app.home import DISK_FULL, FULL
from app.text import md
from engine.errors import SeqscopeError

P = ParamSpec("P")

log = logging.getLogger("seqscope.app")
PENDING = "guard_pending"
"""The key in a session of (title, words) that `pending` shows."""


@contextmanager
def watch(part: str) -> Iterator[None]:
    """Shows what goes wrong within the block in place of its rest. `part` completes "… could not be shown"."""
    try:
        yield
    except Exception as error:  # reruns and stops are no Exceptions: they pass
        _show(*noted(error, part))


def spinner(text: str) -> AbstractContextManager[object]:
    """Tells a visitor what is waited for; nobody outside a page's run."""
    return nullcontext() if get_script_run_ctx(suppress_warning=True) is None else st.spinner(text)


def callback(function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Callable[[], None]:
    """A widget's callback, with all that it is called with; its failure is shown on the page by the next `pending()`."""

    def safe() -> None:
        try:
            function(*args, **kwargs)
        except Exception as error:
            st.session_state[PENDING] = noted(error, "the last step")

    return safe


def pending() -> None:
    """Shows what went wrong in a callback, once."""
    problem = st.session_state.pop(PENDING, None)
    if problem:
        _show(*problem)


def shown(error: SeqscopeError) -> str:
    """What a visitor reads of it: nothing of the server's files and processes."""
    from app.store.file import Unavailable  # DuckDB, which a server's start need not wait for

    return error.shown if isinstance(error, Unavailable) else home.shown(str(error))


def noted(error: Exception, part: str) -> tuple[str, str]:
    """(title, words to show); the log gets the same number."""
    number = secrets.token_hex(3)
    title = f"{part[:1].upper()}{part[1:]} could not be shown"
    if any(isinstance(cause, OSError) and cause.errno in FULL for cause in (error, error.__cause__, error.__context__)):
        log.error("%s: %s: %s", number, part, error)
        return title, f"{DISK_FULL} (Reference {number}.)"
    if isinstance(error, SeqscopeError):  # made to be read by people; the cause may still be worth a look
        log.warning("%s: %s: %s", number, part, error, exc_info=error.__cause__ is not None)
        return title, f"{shown(error)} (Reference {number}.)"
    log.error("%s: %s", number, part, exc_info=error)
    return title, f"Something failed that should not have. The rest of the app goes on working. (Reference {number}.)"


def _show(title: str, message: str) -> None:
    st.error(md(message, 2_000), title=md(title), icon=":material/error:")
