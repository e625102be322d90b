"""Jobs at work and over, whatever they do: how far each is, a button that cancels it, its log; and the lists of batches.

On the pages Report and Your data; on all others, that what jobs make is shown as soon as it is there.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from app import batches, guard, home, work
from app.jobs.queue import WAITING
from app.server import downloads
from app.store.records import NotFound
from app.text import md, span
from app.work import Work
from engine.runtime import Zoo

_CALLED = {"baselines": "models that need no training", "prepare": "preparation", "train": "training"}
_CANCEL = {"baselines": "Cancel fitting", "prepare": "Cancel preparation", "train": "Cancel training"}

_STATUS = 1 << 16
"""Bytes that a job needs free to say how far it is, and to go on."""


def progress(job: Work) -> None:
    """How far a job is that runs; of one that waits, what for."""
    now = job.status
    if home.free_bytes(home.root()) < _STATUS:
        st.warning(f"{home.DISK_FULL} The job goes on when there is room.", icon=":material/error:")
    if now.state == "queued":
        waits = job.ahead.words("job", "jobs")
        words = waits if now.words in ("", WAITING) else f"{now.words}. {waits}"
        title = "" if job.job is None else f"**{md(job.job.title)}.** "
        st.markdown(f":material/hourglass_empty: {title}{md(words, 300)}")
    else:
        left = "" if now.left is None else f", about {span(now.left)} left"
        st.progress(now.progress, text=md(f"{now.words}{left}", 300))
    st.caption("It goes on when you close this page; come back whenever you like.")


def cancel(owner: str, job: Work) -> None:
    label = "Cancelling …" if job.cancelling else _CANCEL.get(job.row.kind, "Cancel")
    st.button(
        label, key=f"data_cancel_{job.row.id}", icon=":material/cancel:",
        disabled=job.cancelling, on_click=guard.callback(work.cancel, owner, job.row.id),
    )  # fmt: skip


def log(owner: str, job: Work) -> None:
    row = job.row
    popover = st.popover(
        f"Log of the {_CALLED.get(row.kind, row.kind)}",
        key=f"data_log_{row.id}",
        on_change="rerun",
        icon=":material/article:",
    )
    if popover.open:
        with popover:
            st.caption(md(_summary(job)))
            st.code(work.log(owner, row.id)[-8_000:] or "Nothing was written.", language=None, wrap_lines=True)


def _summary(job: Work) -> str:
    row = job.row
    if row.started is None or row.ended is None:
        return row.state
    return f"{row.state} after {span((row.ended - row.started).total_seconds())}, {row.ended:%-d %b %Y %H:%M} UTC"


FOLLOW_EVERY = 2.0  # seconds


def follow(owner: str, dataset: str, drawn: str) -> None:
    """Draws the page anew when jobs that are at work on a visitor's own dataset have made something to be looked at.

    drawn: the stamp (`Zoo.stamp`) of what the page shows.
    """
    if any(not job.over for job in work.of(owner, dataset)):
        st.fragment(_follow, run_every=FOLLOW_EVERY)(owner, dataset, drawn)


def _follow(owner: str, dataset: str, drawn: str) -> None:
    with guard.watch("the jobs"):
        if Zoo.stamp(home.here().dataset(owner, dataset).exports) != drawn or all(
            job.over for job in work.of(owner, dataset)
        ):
            st.rerun()


BATCH_EVERY = 1.0  # seconds


def batches_of(owner: str, works: Sequence[Work], titles: Mapping[str, str] | None = None) -> None:
    """titles: dataset → how it is called, where that is to be said."""
    for batch in works:
        with st.container(border=True, key=f"batch_{batch.row.id}"):
            said = [] if titles is None else [titles.get(batch.row.dataset, batch.row.dataset)]
            named = batch.row.spec.get("model_titles") or batch.row.spec.get("models", [])
            said += [", ".join(map(str, named)), f"top {batch.row.spec.get('k')}"]
            st.caption(
                md(f"Lists for many histories · {' · '.join(said)} · {batch.row.created:%-d %b %Y %H:%M} UTC", 400)
            )
            if batch.over:
                _batch_ended(owner, batch)
            else:
                st.fragment(_watch_batch, run_every=BATCH_EVERY)(owner, batch.row.id)


def _watch_batch(owner: str, id: str) -> None:
    with guard.watch("the batch"):
        try:
            batch = work.get(owner, id)
        except NotFound:
            st.rerun()
        if batch.over:
            st.rerun()
        progress(batch)
        cancel(owner, batch)


def _batch_ended(owner: str, job: Work) -> None:
    row, path = job.row, batches.result(job)
    if path is not None:
        st.success(md(batches.summary(job), 1_000), icon=":material/check:")
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
            "Delete", key=f"batch_delete_{row.id}", icon=":material/delete:", on_click=guard.callback(work.forget, owner, row.id),
        )  # fmt: skip
        log(owner, job)
