"""A log for a dataset that was brought as a catalogue alone: read, mapped, checked against that catalogue, used."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import streamlit as st

from app import home, work, zoo
from app.jobs import kinds
from app.parts import upload
from app.parts.upload_draft import Draft
from app.store.records import Dataset


def possible(dataset: Dataset) -> bool:
    """Whether it has none, and a catalogue that was accepted."""
    return not dataset.rows_events and _items(dataset).is_file()


def show(owner: str, dataset: Dataset) -> None:
    st.caption(
        "It is checked against the catalogue that is there. What was made of the catalogue stays until models, identifiers and "
        "maps of both are ready."
    )
    upload.show(owner, use=partial(_add, owner, dataset.id), later=_items(dataset), of=dataset.id)


def _items(dataset: Dataset) -> Path:
    return home.dataset(dataset.owner, dataset.id).path / kinds.ITEMS


def leave(dataset: str) -> None:
    """The visitor does not want to any more."""
    upload.leave(dataset)


def _add(owner: str, id: str, title: str, draft: Draft) -> None:
    work.add_log(owner, id, draft.folder, exports=zoo.root())
    home.discard(draft.folder)
