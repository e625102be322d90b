"""Jobs' rows: states and times, the queue that the server sees, and what goes when a job is deleted."""

import pytest

from app import home
from app.store.database import Store
from app.store.quota import QuotaReached
from engine.errors import SeqscopeError
from tests.store import ANNA, BEN


def test_a_jobs_way(store: Store) -> None:
    queued = store.jobs.add(ANNA, "sample", "train", {"models": ["sasrec"]})
    assert (queued.state, queued.started, queued.ended, queued.spec) == ("queued", None, None, {"models": ["sasrec"]})
    running = store.jobs.change(ANNA, queued.id, "running")
    assert running.started is not None and running.ended is None
    failed = store.jobs.change(ANNA, queued.id, "failed", "The catalogue has no titles.")
    assert failed.started == running.started
    assert failed.ended is not None and failed.ended >= running.started
    assert failed.message == "The catalogue has no titles."
    again = store.jobs.change(ANNA, queued.id, "queued")
    assert (again.started, again.ended, again.message) == (None, None, "")


def test_the_queue_is_everybodys_in_order(store: Store) -> None:
    first = store.jobs.add(ANNA, "sample", "train", {})
    second = store.jobs.add(BEN, "sample", "batch", {})
    third = store.jobs.add(ANNA, "sample", "prepare", {})
    store.jobs.change(ANNA, first.id, "running")
    assert [job.id for job in store.unfinished()] == [first.id, second.id, third.id]
    store.jobs.change(ANNA, first.id, "done")
    assert [job.id for job in store.jobs.of(ANNA)] == [third.id, first.id]


def test_one_that_goes_on_is_not_deleted(store: Store) -> None:
    job = store.jobs.add(ANNA, "sample", "train", {})
    home.here().job(job.id).mkdir()
    with pytest.raises(SeqscopeError, match="Cancel"):
        store.jobs.delete(ANNA, job.id)
    store.jobs.change(ANNA, job.id, "cancelled")
    store.jobs.delete(ANNA, job.id)
    assert store.jobs.of(ANNA) == [] and not home.here().job(job.id).exists()


def test_so_many_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_JOBS", "2")
    first = store.jobs.add(ANNA, "sample", "train", {})
    store.jobs.add(ANNA, "sample", "train", {})
    with pytest.raises(QuotaReached, match="2 jobs of yours wait or run"):
        store.jobs.add(ANNA, "sample", "train", {})
    store.jobs.add(BEN, "sample", "train", {})
    store.jobs.change(ANNA, first.id, "done")
    store.jobs.add(ANNA, "sample", "train", {})
    with pytest.raises(QuotaReached):  # trying again is a job, too
        store.jobs.change(ANNA, first.id, "queued")


def test_kinds_and_states_are_known(store: Store) -> None:
    with pytest.raises(ValueError, match="not a kind"):
        store.jobs.add(ANNA, "sample", "format", {})
    job = store.jobs.add(ANNA, "sample", "train", {})
    with pytest.raises(ValueError, match="not a state of a job"):
        store.jobs.change(ANNA, job.id, "gone")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a state of a dataset"):
        store.datasets.add(ANNA, "films", state="done")  # type: ignore[arg-type]
    films = store.datasets.add(ANNA, "films")
    with pytest.raises(ValueError, match="not a state of a dataset"):
        store.datasets.change(ANNA, films.id, state="done")  # type: ignore[arg-type]
