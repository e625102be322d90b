"""Batches of histories: how far they are, and what came out of them. On the page Report, and on Your data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from app import batches, downloads, guard, work
from app.parts import job_shown
from app.store.records import NotFound
from app.text import md
from app.work import Work

EVERY = 1.0  # seconds


def show(owner: str, works: Sequence[Work], titles: Mapping[str, str] | None = None) -> None:
    """titles: dataset → how it is called, where that is to be said."""
    for one in works:
        with st.container(border=True, key=f"batch_{one.row.id}"):
            said = [] if titles is None else [titles.get(one.row.dataset, one.row.dataset)]
            said += [", ".join(map(str, one.row.spec.get("models", []))), f"top {one.row.spec.get('k')}"]
            st.caption(
                md(f"Lists for many histories · {' · '.join(said)} · {one.row.created:%-d %b %Y %H:%M} UTC", 400)
            )
            if one.over:
                _ended(owner, one)
            else:
                st.fragment(_watch, run_every=EVERY)(owner, one.row.id)


def _watch(owner: str, id: str) -> None:
    with guard.watch("the batch"):
        try:
            one = work.one(owner, id)
        except NotFound:
            st.rerun()
        if one.over:
            st.rerun()
        job_shown.progress(one)
        job_shown.cancel(owner, one)


def _ended(owner: str, one: Work) -> None:
    row, path = one.row, batches.result(one)
    if path is not None:
        st.success(md(batches.summary(one), 1_000), icon=":material/check:")
    elif row.state == "done":
        st.info("What came out is not here any more.", icon=":material/delete:")
    elif row.state == "cancelled":
        st.info("Cancelled. Nothing of it was kept.", icon=":material/cancel:")
    else:
        st.error(md(row.message or "It failed without a reason given.", 1_000), icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if path is not None:
            downloads.button(
                f"Download {batches.FORMS['csv' if path.suffix == '.csv' else 'parquet']}",
                path,
                str(row.spec.get("name") or path.name),
                "text/csv" if path.suffix == ".csv" else "application/vnd.apache.parquet",
                key=f"batch_download_{row.id}",
            )
        st.button(
            "Delete", key=f"batch_delete_{row.id}", icon=":material/delete:", on_click=guard.callback(work.forget),
            args=(owner, row.id),
        )  # fmt: skip
        job_shown.log(owner, one)
