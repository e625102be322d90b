"""What the visitor has saved under a name: histories, and comparisons, which are addresses. Opened, renamed, deleted, linked to.

Reports are saved on their own page. A link with ?saved=<id> opens any of them for its owner; everybody else reads
that there is no such thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar
from urllib.parse import parse_qs, urlsplit

import streamlit as st

from app import guard, zoo
from app.components import widgets
from app.reports.address import SAVED
from app.server import owner
from app.server.links import base_path
from app.session import state
from app.session.address import encode
from app.store.database import Store
from app.store.records import MAX_NAME, Comparison, History, NotFound, Report
from app.store.saved import Comparisons, Histories, Reports
from app.store.server import open_store
from app.text import clean, editable, md
from engine.errors import SeqscopeError
from engine.writing import count

_SHOWN = 30  # rows of a list: five hundred would take seconds
_TAKEN = "saved_taken"  # (kind, name) that is to be replaced, if the visitor says so


def show(page: str, pages: Mapping[str, Any]) -> None:
    """The button. page: the path of the one that is shown; pages: path → st.Page."""
    if st.button("Saved …", key="saved_open", icon=":material/bookmark:", width="stretch"):
        for name in (OUTCOME, DOING, _TAKEN):
            st.session_state.pop(name, None)
        _dialog(page, pages)


def follow(datasets: list[str], pages: Mapping[str, Any]) -> str | None:
    """Takes an address with ?saved=<id> for the one that it stands for, or says why it cannot; to be called before the state is
    read from it."""
    id = st.query_params.get(PARAM)
    if id is None:
        return None
    del st.query_params[PARAM]
    try:
        entry = _find(id)
        if entry.dataset not in datasets:
            raise NotFound(f"The dataset of the {kind_of(entry)} “{entry.name}” is not here any more.")
    except SeqscopeError as error:
        return guard.shown(error)
    if isinstance(entry, Comparison):
        _go(entry, pages)
    if isinstance(entry, Report):
        st.switch_page(pages["report"], query_params={"ds": entry.dataset, SAVED: entry.id})
    address: dict[str, str | Iterable[str]] = {"ds": entry.dataset, "h": encode(entry.items)}
    st.query_params.from_dict(address)
    return None


@st.dialog("Saved", width="medium", icon=":material/bookmark:")
def _dialog(page: str, pages: Mapping[str, Any]) -> None:
    with guard.watch("what you saved"):
        who = owner.get()
        if who is None:
            st.info("Sign in to save histories and comparisons under a name.", icon=":material/login:")
            return
        store = open_store()
        _save(store, who.id, page)
        show_outcome()
        histories, comparisons = store.histories.of(who.id), store.comparisons.of(who.id)
        if not histories and not comparisons:
            st.caption(
                "Nothing is saved yet. A history is a list of items; a comparison is a page with all that is chosen on it. "
                "Reports are saved on the page Report."
            )
        name, entry = search(histories, comparisons, key="saved_find"), partial(_entry, zoo.datasets(), pages)
        rows(store, who.id, histories, name, entry, title="Histories")
        rows(store, who.id, comparisons, name, entry, title="Comparisons")


# --- saving


def _save(store: Store, who: str, page: str) -> None:
    now = state.get()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input("Name", key="saved_name", max_chars=MAX_NAME, placeholder="Space operas, say")
        st.button(
            "Save the history",
            key="saved_history",
            disabled=not now.current,
            help=f"Its {count(len(now.current), 'item')}",
            on_click=guard.callback(_save_this, store, who, "history", page, False),
        )
        st.button(
            "Save the comparison",
            key="saved_comparison",
            help="This page: dataset, history, models and what is chosen on it",
            on_click=guard.callback(_save_this, store, who, "comparison", page, False),
        )
    kind = st.session_state.get(_TAKEN, ("", ""))[0]
    ask_to_replace(_TAKEN, (name or "").strip(), _save_this, store, who, kind, page, True, key="saved_replace")


def _save_this(store: Store, who: str, kind: Kind, page: str, replace: bool) -> None:
    name = str(st.session_state.get("saved_name") or "")
    if kind == "history":
        keep(store.histories, who, name, state.get().current, replace, field="saved_name", taken=_TAKEN)
    else:
        keep(store.comparisons, who, name, state.link(f"/{page}"), replace, field="saved_name", taken=_TAKEN)


def keep(
    table: Histories | Comparisons | Reports,
    who: str,
    name: str,
    content: Any,
    replace: bool,
    *,
    field: str,
    taken: str,
) -> None:
    """Saves under a name and empties its text field. taken: where the session notes (kind, name) of one that would be replaced,
    instead."""
    dataset, kind = state.get().dataset, table.table
    st.session_state.pop(taken, None)
    if not replace and any(entry.name == clean(name, MAX_NAME) for entry in table.of(who, dataset)):
        st.session_state[taken] = (kind, name.strip())
        return
    try:
        made = table.save(who, dataset, name, content, replace=replace)
    except SeqscopeError as error:
        remember_outcome("warning", guard.shown(error))
        return
    st.session_state[field] = ""
    remember_outcome("success", f"Saved the {kind} “{made.name}”.")


def ask_to_replace(taken: str, name: str, on_replace: Callable[..., None], *args: object, key: str) -> None:
    """Asks whether what has the name is to be replaced, while that name stands in the text field. taken: as of `keep`."""
    kind, taken_name = st.session_state.get(taken, ("", ""))
    if kind and taken_name == name:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"There is a {kind} named “{md(name, 60)}” already.")
            st.button("Replace it", key=key, on_click=guard.callback(on_replace, *args))


# --- what is there


def _entry(titles: Mapping[str, str], pages: Mapping[str, Any], entry: History | Comparison) -> None:
    there = entry.dataset in titles
    icon = ":material/history:" if isinstance(entry, History) else ":material/compare_arrows:"
    if st.button(md(entry.name, 60), key=f"saved_go_{entry.id}", type="tertiary", icon=icon, disabled=not there):
        _open(entry, pages)
    contents = count(len(entry.items), "item") if isinstance(entry, History) else _page_name(entry, pages)
    where = titles[entry.dataset] if there else "a dataset that is not here any more"
    st.caption(f"{md(contents)} · {md(where, 40)} · {entry.changed:%-d %b %Y}")


# --- opening


def _find(id: str) -> History | Comparison | Report:
    """Raises SeqscopeError; the words do not tell what is somebody else's from what is not there."""
    who, store = owner.required(), open_store()
    for table in (store.histories, store.comparisons, store.reports):
        with suppress(NotFound):
            return table.get(who.id, id)
    raise NotFound(
        "The link names something saved that was not found. It may have expired or been deleted, or it is somebody else’s."
    )


def _open(record: History | Comparison, pages: Mapping[str, Any]) -> None:
    entry = _find(record.id)  # kept for longer from now on
    if isinstance(entry, Comparison):
        _go(entry, pages)
    assert isinstance(entry, History)
    if entry.dataset != state.get().dataset:
        state.choose_dataset(entry.dataset)
    models = zoo.open_zoo(entry.dataset)
    there = tuple(item for item in entry.items if models.position(item) is not None)
    gone = len(entry.items) - len(there)
    told = (f"{count(gone, 'item')} of “{entry.name}” are not in the catalogue any more.",) if gone else ()
    state.update(history=there, problems=told)
    st.rerun()


def _go(entry: Comparison, pages: Mapping[str, Any]) -> NoReturn:
    """Leads to the page with the parameters; the run ends here."""
    address = urlsplit(entry.address)
    page = pages.get(address.path.strip("/"), pages[""])
    st.switch_page(
        page,
        query_params={name: values[-1] for name, values in parse_qs(address.query, keep_blank_values=True).items()},
    )


def _page_name(entry: Comparison, pages: Mapping[str, Any]) -> str:
    page = pages.get(urlsplit(entry.address).path.strip("/"))
    return str(page.title) if page is not None else "a page"


PARAM = "saved"
Kind = Literal["history", "comparison", "report"]
Saved = History | Comparison | Report
_S = TypeVar("_S", bound=Saved)
OUTCOME, DOING = "saved_said", "saved_doing"  # what is told; (action, id) that a row is asked for
_RENAME, _LINK, _DELETE = "Rename", "Copy link", "Delete"


def search(*lists: Sequence[Saved], key: str) -> str:
    """What names of `rows` are to have in them, asked where a list is longer than is shown of it."""
    if max(map(len, lists)) <= _SHOWN:
        return ""
    return st.text_input("Find by name", key=key, type="search", max_chars=MAX_NAME, live="300ms").strip().lower()


def rows(
    store: Store, who: str, saved: Sequence[_S], name: str, entry: Callable[[_S], None], *, title: str = ""
) -> None:
    """The latest of those that have `name` in theirs, under a title. entry: draws the name to open one by, and what it is."""
    fitting = [record for record in saved if name in record.name.lower()]
    if title and fitting:
        st.markdown(f"**{title}**")
    for record in fitting[:_SHOWN]:
        _row(store, who, record, partial(entry, record))
    if len(fitting) > _SHOWN:
        st.caption(f"The latest {_SHOWN} of {len(fitting)}.")


def _row(store: Store, who: str, record: Saved, entry: Callable[[], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"saved_row_{record.id}"):
        if st.session_state.get(DOING) == (_RENAME, record.id):
            _rename(store, who, record)
            return
        with st.container(gap=None):
            entry()
        st.menu_button(
            "More",
            [_RENAME, _LINK, _DELETE],
            key=f"saved_do_{record.id}",
            type="tertiary",
            help=f"Rename or delete {md(record.name, 40)}, or copy a link to it",
            on_click=guard.callback(_choose_doing, store, who, record),
        )
    if st.session_state.get(DOING) == (_LINK, record.id):
        address = (st.context.url or "").partition("?")[0].partition("#")[0]
        base = address.removesuffix(urlsplit(address).path) if address else ""
        link = f"{base}{base_path()}/?{PARAM}={record.id}"
        widgets.copy("Copy again", link, key=f"saved_link_{record.id}", opened=True)
        st.caption("It opens for you alone: in this browser, or where you are signed in or have brought your key.")


def _rename(store: Store, who: str, entry: Saved) -> None:
    st.text_input(
        "New name",
        editable(entry.name),
        key=f"saved_new_{entry.id}",
        max_chars=MAX_NAME,
        label_visibility="collapsed",
        width="stretch",
    )
    st.button("Rename", key=f"saved_rename_{entry.id}", on_click=guard.callback(_renamed, store, who, entry))
    st.button("Cancel", key=f"saved_cancel_{entry.id}", on_click=end_doing)


def _renamed(store: Store, who: str, entry: Saved) -> None:
    name = str(st.session_state.get(f"saved_new_{entry.id}") or "")
    try:
        _table(store, entry).rename(who, entry.id, name)
    except SeqscopeError as error:
        remember_outcome("warning", guard.shown(error))
        return
    end_doing()


def _choose_doing(store: Store, who: str, entry: Saved) -> None:
    action = st.session_state.get(f"saved_do_{entry.id}")
    end_doing()
    if action == _DELETE:
        _table(store, entry).delete(who, entry.id)
        remember_outcome("success", f"Deleted the {kind_of(entry)} “{entry.name}”.")
    elif action in (_RENAME, _LINK):
        st.session_state[DOING] = (action, entry.id)


def end_doing() -> None:
    """No row is asked for anything any more."""
    st.session_state.pop(DOING, None)


def kind_of(entry: Saved) -> Kind:
    return "history" if isinstance(entry, History) else "comparison" if isinstance(entry, Comparison) else "report"


def _table(store: Store, entry: Saved) -> Histories | Comparisons | Reports:
    tables = (store.histories, store.comparisons, store.reports)
    return next(table for table in tables if table.table == kind_of(entry))


def remember_outcome(tone: Literal["success", "warning"], words: str) -> None:
    st.session_state[OUTCOME] = (tone, words)


def show_outcome() -> None:
    """What the last step came to, once."""
    tone, words = st.session_state.pop(OUTCOME, ("", ""))
    if tone == "success":
        st.success(md(words, 300), icon=":material/check:")
    elif tone == "warning":
        st.warning(md(words, 300), icon=":material/error:")
