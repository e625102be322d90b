"""Reports that the visitor keeps under a name: the document as it was, from which every form is made anew."""

from __future__ import annotations

import json
from functools import partial

import streamlit as st

from app import guard, owner
from app.components import saved
from app.reports.address import SAVED
from app.reports.document import Report, read
from app.session import state
from app.store import records
from app.store.database import Store
from app.store.records import MAX_NAME, NotFound
from app.store.server import open_store
from app.text import clean, md
from engine.errors import SeqscopeError

_NAME, _TAKEN = "report_save_name", "report_save_taken"
"""Keys of the text field, and of what is to be replaced if the visitor says so."""


def opened() -> Report | None:
    """The saved report that the address names, with a word on what it is; None where it names none, or none of this visitor's."""
    id = state.get().own.get(SAVED)
    if id is None:
        return None
    try:
        entry = open_store().reports.get(owner.required().id, id)
        if entry.dataset != state.get().dataset:
            raise NotFound(f"The report “{entry.name}” is of another dataset.")
    except SeqscopeError as error:
        state.choose(**{SAVED: None})
        st.warning(md(guard.shown(error), 1_000), icon=":material/link_off:")
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="report_opened"):
        st.info(
            f"“{md(entry.name, 100)}”, as it was saved on {entry.changed:%-d %B %Y, %H:%M} UTC. The models were not asked again.",
            icon=":material/bookmark:",
        )
        st.button(
            "Close it", key="report_close", icon=":material/close:", on_click=guard.callback(state.choose, **{SAVED: None}),
        )  # fmt: skip
    return read(json.dumps(entry.document).encode(), f"The saved report “{clean(entry.name, 60)}”")


def show(report: Report) -> None:
    """Saves what is shown; lists what was saved of this dataset."""
    who = owner.get()
    if who is None:
        st.caption("Sign in to save reports under a name.")
        return
    store = open_store()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input("Save as", key=_NAME, max_chars=MAX_NAME, placeholder=clean(report.title, 60), width=320)
        st.button(
            "Save this report",
            key="report_save",
            icon=":material/bookmark_add:",
            help="As it is now: it stays the same when models or data change",
            on_click=guard.callback(_save, store, who.id, report, False),
        )
    saved.ask_to_replace(_TAKEN, _name(report), _save, store, who.id, report, True, key="report_save_replace")
    saved.show_outcome()
    entries = store.reports.of(who.id, state.get().dataset)
    if entries:
        with st.expander(
            f"Saved reports ({len(entries)})", key="report_saved", icon=":material/bookmark:", type="compact"
        ):
            for entry in entries:
                saved.row(store, who.id, entry, partial(_entry, entry))


def _entry(entry: records.Report) -> None:
    st.button(
        md(entry.name, 60),
        key=f"saved_go_{entry.id}",
        type="tertiary",
        icon=":material/description:",
        on_click=guard.callback(_open, entry.id),
    )
    st.caption(f"{entry.changed:%-d %b %Y, %H:%M} UTC")


def _name(report: Report) -> str:
    """What was written, else the report's own title."""
    return clean(st.session_state.get(_NAME) or report.title, MAX_NAME)


def _save(store: Store, who: str, report: Report, replace: bool) -> None:
    content = report.model_dump(mode="json")
    saved.keep(store.reports, who, _name(report), content, replace, field=_NAME, taken=_TAKEN)


def _open(id: str) -> None:
    saved.end_doing()
    state.choose(**{SAVED: id})
