"""A row of what the visitor has saved: opened, renamed, deleted, linked to. One form for all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from app import guard, widgets
from app.store.database import Store
from app.store.records import MAX_NAME, Comparison, History, Report
from app.store.saved import Comparisons, Histories, Reports
from app.text import md
from engine.errors import SeqscopeError

PARAM = "saved"
Kind = Literal["history", "comparison", "report"]
One = History | Comparison | Report
SAID, DOING = "saved_said", "saved_doing"  # what is told; (what, id) that a row is asked for
_RENAME, _LINK, _DELETE = "Rename", "Copy link", "Delete"


def show(store: Store, who: str, one: One, entry: Callable[[], None]) -> None:
    """entry: draws the name to open it by, and what it is."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"saved_row_{one.id}"):
        if st.session_state.get(DOING) == (_RENAME, one.id):
            _rename(store, who, one)
            return
        with st.container(gap=None):
            entry()
        st.menu_button(
            "More",
            [_RENAME, _LINK, _DELETE],
            key=f"saved_do_{one.id}",
            type="tertiary",
            help=f"Rename or delete {md(one.name, 40)}, or copy a link to it",
            on_click=guard.callback(_do),
            args=(store, who, one),
        )
    if st.session_state.get(DOING) == (_LINK, one.id):
        address = (st.context.url or "").partition("?")[0].partition("#")[0]
        base = address.removesuffix(urlsplit(address).path) if address else ""
        link = f"{base}{_base_path()}/?{PARAM}={one.id}"
        widgets.copy("Copy again", link, key=f"saved_link_{one.id}", opened=True)
        st.caption("It opens for you alone: in this browser, or where you are signed in or have brought your key.")


def _rename(store: Store, who: str, one: One) -> None:
    st.text_input(
        "New name",
        one.name,
        key=f"saved_new_{one.id}",
        max_chars=MAX_NAME,
        label_visibility="collapsed",
        width="stretch",
    )
    st.button("Rename", key=f"saved_rename_{one.id}", on_click=guard.callback(_renamed), args=(store, who, one))
    st.button("Cancel", key=f"saved_cancel_{one.id}", on_click=leave)


def _renamed(store: Store, who: str, one: One) -> None:
    name = str(st.session_state.get(f"saved_new_{one.id}") or "")
    try:
        _table(store, one).rename(who, one.id, name)
    except SeqscopeError as error:
        tell("warning", guard.shown(error))
        return
    leave()


def _do(store: Store, who: str, one: One) -> None:
    what = st.session_state.get(f"saved_do_{one.id}")
    leave()
    if what == _DELETE:
        _table(store, one).delete(who, one.id)
        tell("success", f"Deleted the {kind(one)} “{one.name}”.")
    elif what in (_RENAME, _LINK):
        st.session_state[DOING] = (what, one.id)


def leave() -> None:
    """No row is asked for anything any more."""
    st.session_state.pop(DOING, None)


def kind(one: One) -> Kind:
    return "history" if isinstance(one, History) else "comparison" if isinstance(one, Comparison) else "report"


def _table(store: Store, one: One) -> Histories | Comparisons | Reports:
    tables: dict[Kind, Histories | Comparisons | Reports] = {
        "history": store.histories,
        "comparison": store.comparisons,
        "report": store.reports,
    }
    return tables[kind(one)]


def _base_path() -> str:
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def tell(tone: Literal["success", "warning"], words: str) -> None:
    st.session_state[SAID] = (tone, words)


def said() -> None:
    """What the last step came to, once."""
    tone, words = st.session_state.pop(SAID, ("", ""))
    if tone == "success":
        st.success(md(words, 300), icon=":material/check:")
    elif tone == "warning":
        st.warning(md(words, 300), icon=":material/error:")
