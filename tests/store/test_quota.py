"""Quotas: per owner, in words, and held when many ask at the same time."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from app import home
from app.store import records
from app.store.database import Store
from app.store.quota import QuotaReached
from app.store.sweep import sweep
from engine.errors import SeqscopeError
from tests.store import ANNA, BEN


def of_size(size: int) -> Path:
    staged = home.here().stage()
    (staged / "file").write_bytes(b"x" * size)
    return staged


def test_defaults_are_those_that_are_documented(store: Store, root: Path) -> None:
    words = (root / "docs" / "deployment.md").read_text("utf-8")
    said = dict(re.findall(r"\| `SEQSCOPE_QUOTA_(\w+)` \| [^|]* \| ([0-9,]+) \|", words))
    assert {name.lower(): int(number.replace(",", "")) for name, number in said.items()} == vars(store.quota.limits)
    assert "| `SEQSCOPE_KEEP_DAYS` |" in words and records.keep_days() == 7


def test_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "1000")
    found = store.datasets.add(ANNA, "films", rows_items=400, rows_events=500)
    assert store.quota.usage(ANNA).rows == 900
    with pytest.raises(QuotaReached, match="101 rows more, and you have 900 of the 1,000"):
        store.datasets.add(ANNA, "more", rows_items=101)
    with pytest.raises(QuotaReached):
        store.datasets.change(ANNA, found.id, rows_events=601)
    assert store.datasets.get(ANNA, found.id).rows_events == 500
    store.datasets.change(ANNA, found.id, rows_items=300, rows_events=600)  # not more than before
    store.datasets.add(ANNA, "more", rows_items=100)
    store.datasets.add(BEN, "his", rows_items=1000)
    store.quota.check(ANNA)


def test_what_is_saved_and_what_is_being_made_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", "5000")
    dataset = store.datasets.add(ANNA, "films", staged=of_size(1000))
    store.histories.save(ANNA, "sample", "long", ["x" * 400] * 5)
    with pytest.raises(QuotaReached, match="kB more"):
        store.histories.save(ANNA, "sample", "longer", ["x" * 400] * 7)
    with pytest.raises(QuotaReached, match="kB more"):
        store.comparisons.save(ANNA, "sample", "long", "/" + "x" * 2_500)
    store.histories.save(ANNA, "sample", "long", ["x" * 400] * 7, replace=True)  # the one before goes
    job = store.jobs.add(ANNA, dataset.id, "train", {})
    store.jobs.change(ANNA, job.id, "running")
    assert store.quota.left(ANNA) > 0
    (home.here().dataset(ANNA, dataset.id).path / "checkpoint").write_bytes(
        b"x" * 2_000
    )  # noted only when the job is over
    assert store.quota.left(ANNA) < 0
    for ask in (
        lambda: store.jobs.add(ANNA, dataset.id, "prepare", {}),
        lambda: store.jobs.add(ANNA, "sample", "batch", {}),
    ):
        with pytest.raises(QuotaReached, match="is the most that it may"):
            ask()
    store.jobs.change(ANNA, job.id, "failed")
    store.datasets.measure(ANNA, dataset.id)
    with pytest.raises(QuotaReached, match="is the most that it may"):
        store.jobs.change(ANNA, job.id, "queued")


def test_the_server_as_a_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_SERVER", "5000")
    store.datasets.add(ANNA, "films", staged=of_size(3000))
    with pytest.raises(QuotaReached, match="This server has no room"):
        store.datasets.add(BEN, "his", staged=of_size(2500))
    store.reports.save(BEN, "sample", "r", {"text": "x" * 1_500})
    with pytest.raises(QuotaReached, match="This server has no room"):
        store.reports.save(BEN, "sample", "s", {"text": "x" * 1_500})


def test_a_quota_holds_when_many_ask_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_JOBS", "3")

    def ask(_: int) -> str:
        try:
            return store.jobs.add(ANNA, "sample", "train", {}).id
        except QuotaReached:
            return ""

    with ThreadPoolExecutor(10) as pool:
        answers = [*pool.map(ask, range(10))]
    assert (len(store.jobs.of(ANNA)), answers.count("")) == (3, 7)


def test_a_limit_that_is_no_number_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("-1", "１２", "9" * 30):
        monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", wrong)
        with pytest.raises(SeqscopeError, match="SEQSCOPE_QUOTA_ROWS"):
            store.quota.check(ANNA, rows=1)


def test_what_is_being_made_is_weighed_while_others_use_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = store.datasets.add(ANNA, "films", staged=of_size(1000))
    job = store.jobs.add(ANNA, dataset.id, "train", {})
    lists = store.jobs.add(ANNA, "sample", "batch", {})
    store.jobs.change(ANNA, job.id, "running")
    home.here().draft(ANNA)
    waited: list[Path] = []

    def weigh(path: Path) -> int:
        other = threading.Thread(target=store.jobs.of, args=(ANNA,), daemon=True)
        other.start()
        other.join(5)
        if other.is_alive():
            waited.append(path)
        return 1

    monkeypatch.setattr(home, "size", weigh)
    store.histories.save(ANNA, "sample", "h", ["a"])
    store.datasets.add(ANNA, "more", staged=home.here().stage())
    store.jobs.change(ANNA, lists.id, "failed")
    store.jobs.change(ANNA, lists.id, "queued")
    store.jobs.add(ANNA, "sample", "batch", {})
    assert waited == []


def test_what_is_in_lost_counts_for_the_server(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_SERVER", "5000")
    store.datasets.add(ANNA, "films", staged=of_size(3000))
    assert sweep(store, records.now() + timedelta(days=8)).datasets == 1
    store.quota.check(ANNA, bytes=1000)
    with pytest.raises(QuotaReached, match="server has no room"):
        store.quota.check(BEN, bytes=2001)
    sweep(store)  # its days count from here
    assert sweep(store, records.now() + timedelta(days=8)).deleted == 1
    store.quota.check(BEN, bytes=2001)


def test_drafts_count_for_their_owner_and_the_server_and_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", "5000")
    monkeypatch.setenv("SEQSCOPE_QUOTA_SERVER", "7000")
    draft = home.here().draft(ANNA)
    (draft / "file").write_bytes(b"x" * 4000)
    assert (store.quota.usage(ANNA).bytes, store.quota.usage(BEN).bytes) == (4000, 0)
    with pytest.raises(QuotaReached, match="4 kB of your 5 kB are taken"):
        store.quota.check(ANNA, bytes=1001)
    with pytest.raises(QuotaReached, match="server has no room"):
        store.quota.check(BEN, bytes=3001)
    store.datasets.add(ANNA, "films", staged=draft)
    assert store.quota.usage(ANNA).bytes == 4000


def test_what_has_expired_and_is_shown_to_nobody_takes_no_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_DATASETS", "1")
    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "10")
    store.datasets.add(ANNA, "First", rows_items=10)
    store.histories.save(ANNA, "sample", "Westerns", ["a"])
    with store.file.transaction() as transaction:
        for table in ("dataset", "history"):
            transaction.execute(f"update {table} set expires = expires - interval 8 day")
    used = store.quota.usage(ANNA)
    assert (used.datasets, used.rows, used.bytes) == (0, 0, 0) and used.server > 0
    store.datasets.add(ANNA, "Second", rows_items=10)
