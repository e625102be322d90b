"""The jobs of a dataset on the page Your data: how far they are, looked at every other second as long as one is at work."""

from __future__ import annotations

import json
from pathlib import Path

import streamlit as st

from app import export, guard, home, work, zoo
from app.components import jobs
from app.figures import training
from app.store.records import NotFound, StoredDataset
from app.text import md
from app.work import Work
from engine.runtime import Zoo

EVERY = 2.0  # seconds
_MARKS = {
    "done": ":material/check:",
    "failed": ":material/error:",
    "left out": ":material/block:",
    "running": ":material/sync:",
}


def show(owner: str, dataset: StoredDataset, works: list[Work]) -> None:
    """All that wait or run; where none does, the latest, and the preparation where that was not finished."""
    jobs.batches_of(owner, [job for job in works if job.row.kind == "batch"])
    works = [job for job in works if job.row.kind != "batch"]
    active = [job for job in works if not job.over]
    for job in reversed(active):
        st.fragment(_watch, run_every=EVERY)(owner, dataset, job.row.id)
    if not active:
        unprepared = next((job for job in works[1:] if job.row.kind == "prepare"), None)
        unread = bool(dataset.rows_events) and work.log_prepared(home.dataset(owner, dataset.id)) is False
        if works and not (unread and works[0].row.state == "done"):
            _ended(owner, dataset, works[0])
            if unprepared is not None and works[0].row.kind != "prepare" and unprepared.row.state != "done":
                _ended(owner, dataset, unprepared)
        elif unread or dataset.state in ("checked", "failed"):
            _begin(owner, dataset)


def _begin(owner: str, dataset: StoredDataset) -> None:
    st.button(
        "Prepare it", key=f"data_prepare_{dataset.id}", icon=":material/play_arrow:", on_click=guard.callback(_prepare),
        args=(owner, dataset.id), help="Models that read words, identifiers and maps",
    )  # fmt: skip


def _prepare(owner: str, id: str) -> None:
    work.prepare(owner, id, exports=zoo.root())


# --- while it waits or runs


def _watch(owner: str, dataset: StoredDataset, id: str) -> None:
    with guard.watch("the job"):
        try:
            job = work.one(owner, id)
        except NotFound:
            st.rerun()
        key = f"data_seen_{id}"
        seen = (job.over, Zoo.stamp(home.dataset(owner, dataset.id).exports))
        if st.session_state.setdefault(key, seen) != seen:
            st.session_state[key] = seen
            st.rerun()  # the card around it has more to say
        if job.over:
            return
        jobs.progress(job)
        _steps(job)
        _curve(owner, dataset, job)
        jobs.cancel(owner, job)


def _steps(one: Work) -> None:
    if one.job is None:
        return
    with st.expander(f"Step {min(one.status.step + 1, len(one.job.steps))} of {len(one.job.steps)}"):
        parts = one.status.parts
        for number, step in enumerate(one.job.steps):
            part = parts[number] if number < len(parts) else None
            state = part.state if part is not None else "waiting"
            took = f" · {training.span(part.seconds)}" if part is not None and part.seconds >= 0.5 else ""
            st.caption(f"{_MARKS.get(state, ':material/circle:')} {md(step.title)} · {state}{took}")


def _curve(owner: str, dataset: StoredDataset, one: Work) -> None:
    """What the training in hand has learned so far."""
    if one.job is None or one.status.step >= len(one.job.steps):
        return
    run = one.job.steps[one.status.step].run
    if not run:
        return
    table = training.curve(_read(home.dataset(owner, dataset.id).path / run / "curve.json"))
    if len(table) < 2:
        return
    export.figure(
        training.figure(table),
        key=f"data_curve_{one.row.id}",
        alt="Training loss and NDCG@10 on the validation items, epoch by epoch, so far.",
        table=table,
        name="training so far",
    )


def _read(path: Path) -> list[dict[str, object]]:
    try:
        parsed = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return parsed if isinstance(parsed, list) else []


# --- when it is over


def _ended(owner: str, dataset: StoredDataset, one: Work) -> None:
    row, notes = one.row, one.status.notes
    title = one.job.title if one.job is not None else row.kind
    if row.state == "failed":
        st.error(
            md(row.message or "It failed without a reason given.", 1_000),
            title=md(f"{title} failed"),
            icon=":material/error:",
        )
    elif row.state == "cancelled":
        st.info(f"{md(title)} was cancelled.", icon=":material/cancel:")
    for note in notes:
        st.warning(md(note, 1_000), icon=":material/block:")
    with st.container(horizontal=True, gap="small"):
        if one.job is None and row.state != "done" and row.kind == "prepare":
            _begin(owner, dataset)
        elif row.state != "done" or notes:
            st.button(
                "Try again", key=f"data_retry_{row.id}", icon=":material/refresh:", on_click=guard.callback(work.retry),
                args=(owner, row.id),
                help="Goes on from the step that failed" if one.job is not None else "From the beginning",
            )  # fmt: skip
        jobs.log(owner, one)
