"""Bringing a dataset: its files, how they are read, the check, and what becomes of them when the visitor says so.

    upload.add_dataset(owner)           # on the page Your data
    upload.add_log(owner, dataset)      # a log alone, for the catalogue of a dataset that is there

Nothing is read in this process (app/uploads). What is not finished belongs to the session, lies in a staged folder, counts
towards what its owner has, and goes when the session ends.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from app import guard, home, work, zoo
from app.jobs import kinds
from app.screens.your_data import check, columns, upload_file
from app.screens.your_data.upload_file import Draft
from app.store.quota import QuotaReached
from app.store.records import StoredDataset
from app.store.server import open_store
from app.text import md
from app.uploads import files
from app.uploads.limits import UploadLimits
from app.uploads.runner import UploadFailed
from engine.tabular.reading import MB

_STEPS = ("1 File", "2 Columns", "3 Check", "4 Use")
_KEY, _ROUND = "upload_draft", "upload_round"
_TAKEN = "upload_taken"  # (id of the dataset, round) of what came last

Use = Callable[[str, Draft], None]
"""Takes a title and a draft whose clean files are in use; its folder is the taker's from then on. Raises SeqscopeError."""


def _show(owner: str, use: Use, *, later: Path | None = None, of: str = "") -> None:
    """later, of: the clean items and the id of a dataset that is to get a log."""
    draft = _draft(owner, later, of)
    if draft is None:
        return
    if draft.todo is not None:
        _work(draft)
    st.markdown(_steps(draft))
    if not draft.names:
        most = draft.limits.upload // MB
        forms = "CSV, TSV, JSON or Parquet, plain, packed with gzip or both in a ZIP; files of RecBole, MovieLens and LETTER"
        alone = "" if draft.of else " A log alone will do; without titles the ids of its items stand in."
        st.caption(md(f"{forms}. Up to {most:,} MB each.{alone}"))
    for kind, place in zip(draft.kinds, st.columns(len(draft.kinds), gap="large"), strict=True):
        with place, st.container(key=draft.key("file_of", kind)), guard.watch(f"the {kind}"):
            upload_file.show(draft, kind)
    ready = [kind for kind in draft.kinds if kind in draft.readings]
    for kind in ready:
        with guard.watch(f"the columns of the {kind}"):
            columns.show(draft, kind)
    if ready:
        with st.container(key=draft.key("check_of")), guard.watch("the check"):
            check.show(draft, lambda title: _use(draft, title, use), lambda: _discard(draft))


def _steps(draft: Draft) -> str:
    """Where one is: the steps, the present one in bold."""
    now = 0 if not draft.readings else 1 if draft.checked is None else 2 if draft.checked.stopped else 3
    steps = [f"**{step}**" if place == now else f":gray[{step}]" for place, step in enumerate(_STEPS)]
    return " :gray[→] ".join(steps)


def _draft(owner: str, later: Path | None, of: str) -> Draft | None:
    """The session's; made where there is none. None where the owner may bring no more."""
    draft: Draft | None = st.session_state.get(_named(of))
    if draft is not None and (draft.staged is None or draft.staged.is_dir()):  # else it was swept, after a day
        return draft
    quota, limits = open_store().quota, UploadLimits.of_environment()
    try:
        quota.check(owner, datasets=0 if of else 1, rows=1, bytes=1)
    except QuotaReached as error:
        st.warning(md(guard.shown(error), 500), icon=":material/database:")
        return None
    left = quota.limits.rows - quota.usage(owner).rows
    draft = Draft(owner, limits.model_copy(update={"rows": left}), st.session_state.get(_ROUND, 0), of, later)
    st.session_state[_named(of)] = draft
    return draft


def _named(of: str) -> str:
    return f"{_KEY}_{of}" if of else _KEY


def _work(draft: Draft) -> None:
    """Does what is to be done next, with how far it is; the page that follows shows what came of it.

    Where the page is drawn anew before that, after a lost connection, say, it begins anew, unless a click took it back.
    """
    assert draft.todo is not None
    with st.container(border=True, key="upload_work"):
        bar = st.progress(0.0, text=md(draft.doing))
        st.button("Cancel", key=draft.key("cancel"), icon=":material/close:", on_click=draft.changed)

    def tell(done: float, words: str) -> None:
        bar.progress(min(1.0, max(0.0, done)), text=md(f"{words} …"))

    try:
        draft.todo(tell)
    except Exception:
        draft.todo = None
        raise
    draft.todo = None
    st.rerun()


def _use(draft: Draft, title: str, use: Use) -> None:
    if draft.checked is None:
        raise UploadFailed("The files have changed since they were checked. Check them again.")
    waiting, clean = draft.folder / files.WAITING, draft.folder / files.CLEAN
    if waiting.is_dir() or not clean.is_dir():  # else an earlier attempt was refused, and nothing was checked since
        files.accept(draft.folder, draft.checked, without_bad_rows=True)
    use(title, draft)
    _end(draft)


def _discard(draft: Draft) -> None:
    if draft.staged is not None:
        home.here().discard(draft.staged)
    _end(draft)


def _end(draft: Draft) -> None:
    st.session_state.pop(_named(draft.of), None)
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1


def leave(of: str) -> None:
    """Throws away what was begun for a dataset that is there."""
    draft: Draft | None = st.session_state.get(_named(of))
    if draft is not None:
        _discard(draft)


def add_dataset(owner: str) -> None:
    _show(owner, use=partial(_take_dataset, owner))


def _take_dataset(owner: str, title: str, draft: Draft) -> None:
    fingerprint, items = (draft.checked.fingerprint, draft.checked.items) if draft.checked else ("", 0)
    reading = files.as_stored(draft.folder)
    dataset = work.take(
        owner, title, draft.folder, exports=zoo.root(), reading=reading, fingerprint=fingerprint, items=items
    )
    st.session_state[_TAKEN] = (dataset.id, draft.round)


def taken() -> tuple[str, int]:
    """The dataset that this session brought, or gave a log, last, and a number that no other time has; ("", 0) for none."""
    latest: tuple[str, int] = st.session_state.get(_TAKEN, ("", 0))
    return latest


def can_add_log(dataset: StoredDataset) -> bool:
    """Whether it has none, and a catalogue that was accepted."""
    return not dataset.rows_events and _items(dataset).is_file()


def add_log(owner: str, dataset: StoredDataset) -> None:
    st.caption(
        "The log is checked against the catalogue of this dataset. Existing models stay until those that "
        "need no training are ready, seconds later; models that read texts, semantic IDs and maps are then rebuilt."
    )
    _show(owner, use=partial(_take_log, owner, dataset.id), later=_items(dataset), of=dataset.id)


def _items(dataset: StoredDataset) -> Path:
    return home.here().dataset(dataset.owner, dataset.id).path / kinds.ITEMS


def _take_log(owner: str, id: str, title: str, draft: Draft) -> None:
    work.add_log(owner, id, draft.folder, exports=zoo.root(), items=draft.checked.items if draft.checked else 0)
    home.here().discard(draft.folder)
    st.session_state[_TAKEN] = (id, draft.round)
