"""Your data: what the visitor brought, what models can do with it, and training on it."""

from datetime import UTC, datetime

import streamlit as st

from app import batches, guard, home, work, zoo
from app.components import sidebar, widgets
from app.components.jobs import batches_of
from app.screens.your_data import abilities, jobs, training, upload
from app.server import owner, received
from app.server.owner import Owner
from app.session import state
from app.store import records
from app.store.records import MAX_NAME, StoredDataset
from app.store.server import open_store
from app.text import amount, clean, editable, md
from app.uploads.limits import UploadLimits
from engine.errors import SeqscopeError
from engine.tabular.reading import MB
from engine.writing import count

_DOING = "data_doing"  # (what, id) that a card asks about
_SAID = "data_said"
_STATES = {
    "uploaded": ("Not checked yet", "gray", ":material/hourglass_empty:"),
    "checked": ("Not prepared yet", "gray", ":material/hourglass_empty:"),
    "ready": ("Ready", "green", ":material/check:"),
    "failed": ("Preparation failed", "red", ":material/error:"),
}


def show() -> None:
    st.title("Your data")
    who = owner.get()
    if who is None:
        st.markdown(
            "Upload a catalogue and a log of interactions, or one file of transactions, which is split into both."
        )
        st.info("What you bring belongs to your account: sign in first.", icon=":material/login:")
        sidebar.sign_in("page")
        return
    try:
        open_store()
    except SeqscopeError as error:
        st.error(md(guard.shown(error), 1_000), title="Nothing can be kept here now", icon=":material/error:")
        return
    st.markdown(_whose(who))
    with guard.watch("your datasets"):
        there = _datasets(who.id)
        if there:
            used, most = open_store().quota.usage(who.id), open_store().quota.limits
            st.caption(f"{there} of {count(most.datasets, 'dataset')}, {amount(used.bytes)} of {amount(most.bytes)}")
    with guard.watch("your lists"):
        _lists(who.id)
    st.header("Add a dataset", anchor="add")
    with guard.watch("the upload"):
        upload.add_dataset(who.id)


def _whose(who: Owner) -> str:
    if who.kind == "account":
        return "What you bring belongs to your account. It is kept until you delete it, and nobody else sees it."
    lifetime = records.kept_for()
    if who.kind == "session":
        return (
            "This browser sent no cookie, so what you bring belongs to this tab alone and is lost to you when it is closed; "
            f"it is deleted after {lifetime}."
        )
    return (
        f"What you bring belongs to this browser, and nobody else sees it. It is deleted {lifetime} after it was last used. "
        "With your key (*Access key* in the sidebar) you can open it in another browser, too."
    )


def _lists(who: str) -> None:
    """For many histories, of the server's datasets: those of one's own are on its card."""
    own_ids = {dataset.id for dataset in open_store().datasets.of(who)}
    works = [batch for batch in batches.of(who) if batch.row.dataset not in own_ids]
    if works:
        st.header("Lists for many histories", anchor="lists")
        batches_of(who, works, zoo.datasets())


def _datasets(owner: str) -> int:
    """How many there are."""
    said = st.session_state.pop(_SAID, "")
    if said:
        st.success(md(said), icon=":material/check:")
    datasets = open_store().datasets.of(owner)
    for dataset in datasets:
        with st.container(border=True, key=f"data_card_{dataset.id}"), guard.watch("the dataset"):
            _card(owner, dataset)
    latest, time = upload.taken()
    if latest in {dataset.id for dataset in datasets}:
        widgets.reveal(f"data_card_{latest}", key="taken", once=f"{latest} {time}")
    return len(datasets)


def _card(owner: str, dataset: StoredDataset) -> None:
    works = work.of(owner, dataset.id)
    active = next((job for job in works if not job.over), None)
    ready = home.here().dataset(owner, dataset.id).opens
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader(md(dataset.title, 100), anchor=False, width="content")
        words, colour, icon = _STATES[dataset.state]
        if active is not None:
            words = "At work" if active.row.kind == "train" else "Being prepared"
            colour, icon = "blue", ":material/sync:"
        st.badge(words, color=colour, icon=icon)  # type: ignore[arg-type]
        if dataset.id == upload.taken()[0]:
            st.badge("New", color="violet", icon=":material/new_releases:")
    widgets.announced(f"{dataset.title}: {words}{', can be opened' if ready else ''}", key=f"data_{dataset.id}")
    st.caption(md(" · ".join(_facts(dataset)), 400))
    doing, which = st.session_state.get(_DOING, ("", ""))
    if which == dataset.id and doing == "open":
        _leave()
        st.switch_page("screens/compare/page.py", query_params={"ds": dataset.id})
    elif which == dataset.id and doing == "rename":
        _rename(owner, dataset)
    elif which == dataset.id and doing == "delete":
        _delete(owner, dataset, active is not None)
    else:
        adding = which == dataset.id and doing == "log" and active is None and upload.can_add_log(dataset)
        _buttons(dataset, ready, busy=active is not None, adding=adding)
        if adding:
            with st.container(key=f"data_adding_{dataset.id}"), guard.watch("the log"):
                upload.add_log(owner, dataset)
        elif which == dataset.id and doing == "index" and active is None and ready:
            with guard.watch("the semantic IDs"):
                _index(owner, dataset)
    if not home.here().dataset(owner, dataset.id).path.is_dir():
        st.error(f"{work.GONE} Bring it again, and delete this one.", icon=":material/error:")
        return
    jobs.show(owner, dataset, works)
    if ready:
        abilities.show(owner, dataset)
    training.show(owner, dataset, active is not None)


def _facts(dataset: StoredDataset) -> list[str]:
    facts = [count(dataset.rows_items, "item")]
    facts.append(count(dataset.rows_events, "event") if dataset.rows_events else "no log")
    facts.append(amount(dataset.bytes))
    facts.append(f"from {dataset.created:%-d %b %Y}")
    if dataset.expires is not None:
        days = (dataset.expires - datetime.now(UTC)).total_seconds() / 86_400
        left = count(round(days), "day") if days >= 1.5 else f"{max(1, round(days * 24))} h"
        facts.append(f"deleted on {dataset.expires:%-d %b %Y} (in {left}) unless it is used")
    return facts


def _buttons(dataset: StoredDataset, ready: bool, *, busy: bool, adding: bool) -> None:
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Open in Compare", key=f"data_open_{dataset.id}", type="primary", icon=":material/compare_arrows:",
            disabled=not ready, help=None if ready else "Nothing is ready to be looked at yet",
            on_click=guard.callback(_ask, "open", dataset.id),
        )  # fmt: skip
        if adding:
            st.button("Add no log", key=f"data_nolog_{dataset.id}", on_click=guard.callback(_no_log, dataset.id))
        elif upload.can_add_log(dataset):
            st.button(
                "Add a log", key=f"data_addlog_{dataset.id}", icon=":material/playlist_add:", disabled=busy,
                help="When its preparation has ended" if busy else "Who interacted with what: models learn from it",
                on_click=guard.callback(_ask, "log", dataset.id),
            )  # fmt: skip
        if ready:
            st.button(
                "Add semantic IDs", key=f"data_index_{dataset.id}", icon=":material/account_tree:", disabled=busy,
                help="From an index.json of TIGER, LETTER or MiniOneRec", on_click=guard.callback(_ask, "index", dataset.id),
            )  # fmt: skip
        for action, icon in (("Rename", ":material/edit:"), ("Delete", ":material/delete:")):
            key = f"data_{action.lower()}_{dataset.id}"
            st.button(action, key=key, icon=icon, on_click=guard.callback(_ask, action.lower(), dataset.id))


def _ask(action: str, id: str) -> None:
    st.session_state[_DOING] = (action, id)


def _no_log(id: str) -> None:
    upload.leave(id)
    _leave()


def _leave() -> None:
    st.session_state.pop(_DOING, None)


def _index(owner: str, dataset: StoredDataset) -> None:
    st.caption(
        'An index.json that maps every item id to its codes, `{"17": ["<a_3>", "<b_90>"], …}`, is shown beside '
        "the tokenizers on Semantic IDs."
    )
    uploaded = st.file_uploader(
        "Semantic IDs",
        type="json",
        key=f"data_index_file_{dataset.id}",
        max_upload_size=UploadLimits.of_environment().upload // MB,
        label_visibility="collapsed",
    )
    if uploaded is not None:
        content = uploaded.getvalue()
        received.drop(uploaded)
        work.add_index(owner, dataset.id, content)
        _leave()
        st.rerun()
    st.button("Cancel", key=f"data_noindex_{dataset.id}", on_click=_leave)


def _rename(owner: str, dataset: StoredDataset) -> None:
    key = f"data_title_{dataset.id}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input("New title", editable(dataset.title), key=key, max_chars=MAX_NAME)
        st.button(
            "Save",
            key=f"data_renamed_{dataset.id}",
            type="primary",
            on_click=guard.callback(_renamed, owner, dataset.id),
        )
        st.button("Cancel", key=f"data_unnamed_{dataset.id}", on_click=_leave)


def _renamed(owner: str, id: str) -> None:
    dataset = work.rename(owner, id, clean(st.session_state.get(f"data_title_{id}") or "", MAX_NAME))
    _leave()
    st.session_state[_SAID] = f"It is called “{dataset.title}” now."


def _delete(owner: str, dataset: StoredDataset, busy: bool) -> None:
    also = "Its jobs are cancelled. " if busy else ""
    st.warning(
        f"Delete **{md(dataset.title, 100)}**, its files, models, reports, and the histories and comparisons saved of it? "
        f"{also}This cannot be undone.",
        icon=":material/delete:",
    )
    with st.container(horizontal=True, gap="small"):
        delete = guard.callback(_deleted, owner, dataset.id)
        st.button("Delete it all", key=f"data_deleted_{dataset.id}", type="primary", on_click=delete)
        st.button("Keep it", key=f"data_kept_{dataset.id}", on_click=_leave)


def _deleted(owner: str, id: str) -> None:
    _leave()
    store = open_store()
    title = store.datasets.get(owner, id).title
    store.datasets.delete(owner, id)
    others = zoo.datasets()
    if others and state.get().dataset == id:
        state.choose_dataset(next(iter(others)))
    st.session_state[_SAID] = f"Deleted “{title}” and everything that was made of it."


show()
