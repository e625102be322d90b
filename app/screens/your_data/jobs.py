"""The jobs of a dataset on the page Your data: how far they are, looked at every other second as long as one is at work."""

import json
from pathlib import Path

import streamlit as st

from app import export, guard, home, work, zoo
from app.components import jobs
from app.figures import metrics as figures
from app.store.records import JobKind, NotFound, StoredDataset
from app.text import md, span
from app.work import Work
from engine.runtime import Zoo
from engine.writing import count

EVERY = 2.0  # seconds
FIRST: tuple[JobKind, ...] = ("baselines", "prepare")
"""What begins by itself."""
_MARKS = {
    "done": ":material/check:",
    "failed": ":material/error:",
    "left out": ":material/block:",
    "running": ":material/sync:",
}


def show(owner: str, dataset: StoredDataset, works: list[Work]) -> None:
    """All that wait or run; where none does, the latest, and the first jobs that were not finished or could not be asked for."""
    jobs.batches_of(owner, [job for job in works if job.row.kind == "batch"])
    works = [job for job in works if job.row.kind != "batch"]
    active = [job for job in works if not job.over]
    for job in reversed(active):
        st.fragment(_watch, run_every=EVERY)(owner, dataset, job.row.id)
    latest = {job.row.kind: job for job in reversed(works)}
    first = [latest[kind] for kind in FIRST if kind in latest]
    failed = [job for job in first if job.over and job.row.state != "done"]
    if not active and works and works[0] not in failed:
        _ended(owner, works[0])
    for job in failed:
        _ended(owner, job)
    if not active and (kinds := work.unasked(owner, dataset.id, works)):
        _begin(owner, dataset, "Prepare it" if "prepare" in kinds else "Fit the models that need no training")


def _begin(owner: str, dataset: StoredDataset, label: str) -> None:
    if words := work.refusal(dataset.id):
        st.warning(md(f"It could not begin by itself. {words}", 1_000), icon=":material/block:")
    st.button(
        label, key=f"data_prepare_{dataset.id}", icon=":material/play_arrow:", on_click=guard.callback(_began, owner, dataset.id),
        help="Models that need no training or read texts, semantic IDs and maps",
    )  # fmt: skip


def _began(owner: str, id: str) -> None:
    work.begin(owner, id, exports=zoo.root())


# --- while it waits or runs


def _watch(owner: str, dataset: StoredDataset, id: str) -> None:
    with guard.watch("the job"):
        try:
            job = work.get(owner, id)
        except NotFound:
            st.rerun()
        key = f"data_seen_{id}"
        seen = (job.over, Zoo.stamp(home.here().dataset(owner, dataset.id).exports))
        if st.session_state.setdefault(key, seen) != seen:
            st.session_state[key] = seen
            st.rerun()  # the card around it has more to say
        if job.over:
            return
        jobs.progress(job)
        _steps(job)
        _curve(owner, dataset, job)
        jobs.cancel(owner, job)


def _steps(job: Work) -> None:
    if job.job is None:
        return
    now, many = job.status, len(job.job.steps)
    label = (
        f"{now.step} of {count(many, 'step')} done"
        if now.state == "queued"
        else f"Step {min(now.step + 1, many)} of {many}"
    )
    with st.expander(label, key=f"data_steps_{job.row.id}"):
        parts = now.parts
        for number, step in enumerate(job.job.steps):
            part = parts[number] if number < len(parts) else None
            state = part.state if part is not None else "waiting"
            took = f" · {span(part.seconds)}" if part is not None and part.seconds >= 0.5 else ""
            st.caption(f"{_MARKS.get(state, ':material/circle:')} {md(step.title)} · {state}{took}")


def _curve(owner: str, dataset: StoredDataset, job: Work) -> None:
    """What the training in hand has learned so far."""
    if job.job is None or job.status.step >= len(job.job.steps):
        return
    run = job.job.steps[job.status.step].run
    if not run:
        return
    table = figures.run_curve(_read(home.here().dataset(owner, dataset.id).path / run / "curve.json"))
    if len(table) < 2:
        return
    export.figure(
        figures.run_so_far(table),
        key=f"data_curve_{job.row.id}",
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


def _ended(owner: str, job: Work) -> None:
    row, notes = job.row, job.status.notes
    title = job.job.title if job.job is not None else row.kind
    if row.state == "failed":
        st.error(
            md(row.message or "It failed without a reason given.", 1_000),
            title=md(f"{title} failed"),
            icon=":material/error:",
        )
    elif row.state == "cancelled":
        steps = job.job.steps if job.job is not None else ()
        ready = any(step.goal and part.state == "done" for step, part in zip(steps, job.status.parts, strict=False))
        st.info(f"{md(title)} was cancelled.{' What was ready by then can be used.' * ready}", icon=":material/cancel:")
    for note in notes:
        st.warning(md(note, 1_000), icon=":material/block:")
    with st.container(horizontal=True, gap="small"):
        failed = row.state != "done" or any(part.state == "failed" for part in job.status.parts)
        if failed and (job.job is not None or row.kind != "prepare") and not work.is_outdated(row):
            st.button(
                "Try again", key=f"data_retry_{row.id}", icon=":material/refresh:",
                on_click=guard.callback(work.retry, owner, row.id),
                help="Goes on from the step that failed" if job.job is not None else "From the beginning",
            )  # fmt: skip
        jobs.log(owner, job)
