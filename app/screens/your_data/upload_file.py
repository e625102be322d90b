"""The files of an upload that is not finished: chosen, dropped or pasted; or a template or sample to begin with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import streamlit as st

from app import guard
from app.screens.your_data import upload_words as views
from app.server import downloads, received
from app.store.server import open_store
from app.text import clean, listed, md
from app.uploads import OnProgress, files, samples
from app.uploads.limits import UploadLimits
from engine.errors import SeqscopeError
from engine.tabular.findings import CheckResult
from engine.tabular.reading import KINDS, MB, FileKind, Guess, Reading


@dataclass
class Draft:
    """What has been brought and how it is read; in the session until it is used or discarded."""

    owner: str
    limits: UploadLimits
    round: int
    """Part of the keys of all widgets: another draft begins with new ones."""
    of: str = ""
    """The dataset that it is for, where that is there already."""
    known: Path | None = None
    """The clean items of that dataset."""
    staged: Path | None = None
    names: dict[FileKind, str] = field(default_factory=dict)
    """What the visitor's files are called; shown, and no path."""
    guesses: dict[FileKind, Guess] = field(default_factory=dict)
    readings: dict[FileKind, Reading] = field(default_factory=dict)
    """As guessed, and changed by the visitor."""
    fixed: dict[FileKind, dict[str, str]] = field(default_factory=dict)
    notes: dict[FileKind, str] = field(default_factory=dict)
    """What was done with a file that nobody asked for."""
    moved: set[FileKind] = field(default_factory=set)
    """From where a file was taken for one of the other kind; the next one there stays."""
    faults: dict[FileKind, str] = field(default_factory=dict)
    """Why a file could not be read, or not like that."""
    checked: CheckResult | None = None
    fault: str = ""
    """Why the check came to nothing."""
    uploads: int = 0
    todo: Callable[[OnProgress], None] | None = None
    doing: str = ""

    @property
    def folder(self) -> Path:
        """Where its files lie; made when the first one comes."""
        if self.staged is None:
            self.staged = received.begin_draft(self.owner)
        return self.staged

    def bounded(self, more: int = 1) -> UploadLimits:
        """The limits of a step that begins now: it takes no more of the disk than its owner has left. more: bytes that it brings.

        Raises QuotaReached where they have nothing left.
        """
        quota = open_store().quota
        quota.check(self.owner, bytes=more)
        return self.limits.model_copy(update={"disk": max(MB, min(self.limits.disk, quota.left(self.owner)))})

    def key(self, *words: str) -> str:
        return "_".join(("later", self.of, *words, str(self.round)) if self.of else ("upload", *words, str(self.round)))

    @property
    def kinds(self) -> tuple[FileKind, ...]:
        """The files that it may have."""
        return ("log",) if self.of else KINDS

    @property
    def title(self) -> str:
        """What the dataset is called where nobody says it: as its first file, without folder and endings."""
        name = next((self.names[kind] for kind in KINDS if kind in self.names), "")
        return name.rpartition("/")[2].partition(".")[0].strip() or "My catalogue"

    def changed(self) -> None:
        """What was checked, or is being checked, is no longer what would be used."""
        self.checked, self.fault, self.todo = None, "", None

    def forget(self, kind: FileKind) -> None:
        for of_file in (self.names, self.guesses, self.readings, self.fixed, self.notes, self.faults):
            of_file.pop(kind, None)
        files.forget(self.folder, [kind])
        self.uploads += 1
        self.changed()


_MOST_PASTED = 500_000  # characters; more is better a file
_WORDS: dict[FileKind, tuple[str, str]] = {
    "catalogue": ("Catalogue", "One item per row: an id, a title where there is one, and what else is known about it."),
    "log": ("Log", "One event per row: a user, an item, and the time where it is known."),
}


def show(draft: Draft, kind: FileKind) -> None:
    title, words = _WORDS[kind]
    st.subheader(title if kind == "catalogue" or draft.of else f"{title} (optional)", anchor=False)
    if kind not in draft.names:
        st.caption(words)
        _choose(draft, kind)
        _begin(draft, kind)
    else:
        guess = draft.guesses.get(kind)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=draft.key("file", kind)):
            st.markdown(f"**{md(draft.names[kind], 60)}**", width="content")
            st.button(
                "Another file",
                key=draft.key("other", kind),
                type="tertiary",
                icon=":material/swap_horiz:",
                on_click=guard.callback(draft.forget, kind),
            )
        if guess is not None:
            st.caption(md(views.file_words(guess)))
        if kind in draft.notes:
            st.caption(md(draft.notes[kind], 500))
    if kind in draft.faults:
        st.error(md(draft.faults[kind], 1_000), icon=":material/error:")


def read(draft: Draft, kind: FileKind, fixed: dict[str, str]) -> None:
    """Looks at the upload (anew) before the page is drawn the next time. fixed: what the visitor has chosen."""

    def look(say: OnProgress) -> None:
        draft.faults.pop(kind, None)
        try:
            kinds = _unpacked(draft, kind, say) if files.is_archive(draft.folder, kind) else [kind]
            for part in kinds:
                _guess(draft, part, fixed if part == kind else {}, say)
        except SeqscopeError as error:
            draft.faults[kind] = guard.shown(error)

    draft.changed()
    draft.todo, draft.doing = look, f"Looking at the {kind}"


def _guess(draft: Draft, kind: FileKind, fixed: dict[str, str], say: OnProgress) -> None:
    guess = files.guess(draft.folder, kind, draft.bounded(), fixed=fixed, owner=draft.owner, on_progress=say)
    other = guess.seems
    if other in draft.kinds and other not in draft.names and kind not in draft.moved:
        draft.moved.add(kind)
        files.move(draft.folder, kind, other)
        draft.names[other] = draft.names.pop(kind)
        draft.notes[other] = (
            f"Its columns are those of a {other}, so it is read as one. Is it a {kind}? Give it there once more, and it stays."
        )
        kind = other
        guess = files.guess(draft.folder, kind, draft.bounded(), owner=draft.owner, on_progress=say)
    elif other is not None:
        needed = _WORDS[kind][1]
        words = f"Its columns are those of a {other}. A {kind} has {needed[:1].lower()}{needed[1:]}"
        draft.notes[kind] = f"{draft.notes.get(kind, '')} {words}".strip()
    draft.guesses[kind], draft.fixed[kind] = guess, fixed
    draft.readings[kind] = guess.reading


def _unpacked(draft: Draft, kind: FileKind, say: OnProgress) -> list[FileKind]:
    """The kinds of files that came out of an archive."""
    kinds = [part for part in draft.kinds if part == kind or part not in draft.names]
    unpacked = files.unpack(draft.folder, kind, kinds, draft.bounded(), owner=draft.owner, on_progress=say)
    archive = draft.names.pop(kind)
    for part, name in unpacked.names.items():
        draft.names[part] = clean(name, 80)
        rest = (
            f"; not used: {listed([clean(other, 40) for other in unpacked.left_out[:5]])}" if unpacked.left_out else ""
        )
        codes = f" Its items have the semantic IDs of {clean(unpacked.index, 40)}." if unpacked.index else ""
        draft.notes[part] = f"From {archive}{rest}.{codes if part == 'catalogue' else ''}"
    return list(unpacked.names)


def _choose(draft: Draft, kind: FileKind) -> None:
    most = draft.limits.upload // MB
    uploaded = st.file_uploader(
        f"{_WORDS[kind][0]} file",
        key=draft.key("file", kind, str(draft.uploads)),
        max_upload_size=most,
        label_visibility="collapsed",
    )
    if uploaded is not None:
        _keep(draft, kind, cast(BinaryIO, uploaded), uploaded.size, uploaded.name)
        received.drop(uploaded)
        st.rerun()


def _begin(draft: Draft, kind: FileKind) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with st.popover("Paste text", icon=":material/content_paste:"):
            key = draft.key("paste", kind, str(draft.uploads))
            st.text_area(
                "Rows with a header",
                key=key,
                max_chars=_MOST_PASTED,
                height=180,
                placeholder="item_id,title\nA100,Teapot"
                if kind == "catalogue"
                else "user,item,time\nanna,A100,2024-03-31",
            )
            st.button("Read it", key=draft.key("pasted", kind), on_click=guard.callback(_paste, draft, kind, key))
        for label, make in (("Template", samples.template), ("Sample", samples.sample)):
            downloads.button(
                label,
                partial(make, kind),
                f"seqscope-{kind}-{label.lower()}.csv",
                "text/csv",
                key=draft.key(label.lower(), kind),
                type="tertiary",
                help="With a few mistakes, to see what a check says" if label == "Sample" else "Rows to write over",
            )


def _paste(draft: Draft, kind: FileKind, key: str) -> None:
    text = st.session_state.get(key) or ""
    content = text[:_MOST_PASTED].encode("utf-8", "replace")
    _keep(draft, kind, content, len(content), "Pasted text")


def _keep(draft: Draft, kind: FileKind, content: BinaryIO | bytes, size: int, name: str) -> None:
    try:
        files.keep(draft.folder, kind, content, draft.bounded(max(1, size)))
    except SeqscopeError as error:
        draft.faults[kind] = guard.shown(error)
        draft.uploads += 1  # the browser's copy goes
        return
    draft.names[kind] = clean(name, 80) or "A file without a name"
    draft.faults.pop(kind, None)
    draft.uploads += 1
    read(draft, kind, {})
