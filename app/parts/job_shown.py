"""What every job shows, whatever it does: how far it is, a button that cancels it, its log."""

from __future__ import annotations

import streamlit as st

from app import guard, work
from app.figures import training
from app.jobs.queue import WAITING
from app.text import md
from app.work import Work

_CALLED = {"prepare": "preparation", "train": "training"}


def progress(one: Work) -> None:
    now = one.status
    if now.state == "queued":
        words = one.ahead.words("job", "jobs") if now.words in ("", WAITING) else now.words
    else:
        left = "" if now.left is None else f", about {training.span(now.left)} left"
        words = f"{now.words}{left}"
    st.progress(now.progress, text=md(words, 300))
    st.caption("It goes on when you close this page; come back whenever you like.")


def cancel(owner: str, one: Work) -> None:
    st.button(
        "Cancelling …" if one.cancelling else "Cancel", key=f"data_cancel_{one.row.id}", icon=":material/cancel:",
        disabled=one.cancelling, on_click=guard.callback(work.cancel), args=(owner, one.row.id),
    )  # fmt: skip


def log(owner: str, one: Work) -> None:
    row = one.row
    popover = st.popover(
        f"Log of the {_CALLED.get(row.kind, row.kind)}",
        key=f"data_log_{row.id}",
        on_change="rerun",
        icon=":material/article:",
    )
    if popover.open:
        with popover:
            st.caption(md(_summary(one)))
            st.code(work.log(owner, row.id)[-8_000:] or "Nothing was written.", language=None, height=320)


def _summary(one: Work) -> str:
    row = one.row
    if row.started is None or row.ended is None:
        return row.state
    return (
        f"{row.state} after {training.span((row.ended - row.started).total_seconds())}, {row.ended:%-d %b %Y %H:%M} UTC"
    )
