"""Datasets: whole or not there, expiring where they should, and gone without a trace."""

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from app import home
from app.store import records
from app.store.database import Store
from app.store.file import DiskFull
from app.store.quota import QuotaReached
from app.store.records import NotFound, StoredDataset
from engine.errors import SeqscopeError
from tests.store import ANNA, BEN, CLARA


def uploaded(store: Store, owner: str = ANNA, text: str = "item_id,title\n") -> StoredDataset:
    staged = home.here().stage()
    (staged / "upload").mkdir()
    (staged / "upload" / "items.csv").write_text(text)
    return store.datasets.add(owner, "Films", staged=staged, rows_items=2, rows_events=3, reading={"delimiter": ","})


def at(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """From now on it is so many days later."""
    later = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=days)
    monkeypatch.setattr(records, "now", lambda: later)


class NoRoom:
    """A connection that can commit nothing more."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, sql: str, *values: Any) -> Any:
        if sql == "commit":
            raise duckdb.IOException(os.strerror(errno.ENOSPC))
        return self.connection.execute(sql, *values)


class TestAdd:
    @pytest.mark.parametrize("owner", [ANNA, CLARA], ids=["browser", "account"])
    def test_what_was_staged_becomes_its_folder(self, store: Store, owner: str) -> None:
        found = uploaded(store, owner)
        folder = home.here().dataset(owner, found.id)
        assert (folder.path / "upload" / "items.csv").read_text() == "item_id,title\n"
        assert found == store.datasets.get(owner, found.id)
        assert store.datasets.of(owner) == [found]
        assert (found.title, found.state, found.rows_items, found.rows_events) == ("Films", "uploaded", 2, 3)
        assert found.reading == {"delimiter": ","} and found.bytes == len("item_id,title\n")
        assert list((home.root() / "tmp").iterdir()) == []

    def test_ids_cannot_be_guessed(self, store: Store) -> None:
        ids = {home.new_id() for _ in range(1000)}
        assert len(ids) == 1000 and all(home.ID.fullmatch(id) for id in ids)

    def test_titles_are_one_line(self, store: Store) -> None:
        assert store.datasets.add(ANNA, "  My\n\x00films\u202e ").title == "My films"
        for unseen in (" \n", "\u200b\u2060"):
            with pytest.raises(SeqscopeError, match="title"):
                store.datasets.add(ANNA, unseen)

    def test_of_what_is_refused_or_cannot_be_placed_nothing_stays(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(OSError):
            store.datasets.add(ANNA, "films", staged=home.root() / "tmp" / "not-there")
        assert store.datasets.of(ANNA) == []
        monkeypatch.setenv("SEQSCOPE_QUOTA_DATASETS", "1")
        uploaded(store)
        staged = home.here().stage()
        with pytest.raises(QuotaReached):
            store.datasets.add(ANNA, "more", staged=staged)
        assert staged.is_dir()
        assert len(list((home.here().datasets(ANNA)).iterdir())) == len(store.datasets.of(ANNA)) == 1

    def test_where_the_disk_is_too_full_for_its_row_what_was_staged_stays(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.datasets.of(ANNA)
        staged = home.here().stage()
        (staged / "items.csv").write_text("item_id,title\n")
        with monkeypatch.context() as patch, pytest.raises(DiskFull):
            patch.setattr(store.file, "_connection", NoRoom(store.file._connection))
            store.datasets.add(ANNA, "films", staged=staged)
        assert (staged / "items.csv").is_file() and not any(home.here().datasets(ANNA).iterdir())
        assert store.datasets.of(ANNA) == []
        assert store.datasets.add(ANNA, "films", staged=staged) == store.datasets.of(ANNA)[0]


class TestChange:
    def test_what_is_not_named_stays_and_bytes_are_counted_anew(self, store: Store) -> None:
        before = uploaded(store)
        after = store.datasets.change(ANNA, before.id, state="checked", rows_items=10, fingerprint="f")
        assert (after.state, after.rows_items, after.fingerprint) == ("checked", 10, "f")
        assert (after.title, after.rows_events, after.reading) == (before.title, before.rows_events, before.reading)
        found = uploaded(store, text="x" * 10)
        (home.here().dataset(ANNA, found.id).path / "more").write_text("y" * 32)
        assert store.datasets.measure(ANNA, found.id).bytes == 42


class TestExpiry:
    def test_what_has_expired_is_not_found_even_before_it_is_swept(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found, kept = uploaded(store), uploaded(store, CLARA)
        at(monkeypatch, 7.01)
        assert store.datasets.of(ANNA) == []
        with pytest.raises(NotFound):
            store.datasets.get(ANNA, found.id)
        assert store.datasets.get(CLARA, kept.id) == kept

    def test_use_renews_it_and_again_soon_writes_nothing(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        dataset = uploaded(store)
        assert store.datasets.use(ANNA, dataset.id).expires == dataset.expires
        dataset = uploaded(store)
        at(monkeypatch, 6.9)
        renewed = store.datasets.use(ANNA, dataset.id)
        assert renewed.expires is not None and dataset.expires is not None
        assert renewed.expires - dataset.expires > timedelta(days=6.8)
        at(monkeypatch, 13)
        assert store.datasets.get(ANNA, dataset.id) == renewed

    def test_the_number_of_days_is_the_servers(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SEQSCOPE_KEEP_DAYS", "0.5")
        expires = uploaded(store).expires
        assert expires is not None and timedelta(hours=11) < expires - datetime.now(UTC) < timedelta(hours=13)
        for wrong in ("soon", "0", "-3", "nan", "inf"):
            monkeypatch.setenv("SEQSCOPE_KEEP_DAYS", wrong)
            with pytest.raises(SeqscopeError, match="SEQSCOPE_KEEP_DAYS"):
                uploaded(store)


class TestDelete:
    def test_everything_that_was_made_of_it_goes(self, store: Store) -> None:
        found, other = uploaded(store), uploaded(store)
        folder = home.here().dataset(ANNA, found.id)
        for path in (folder.exports / "sasrec", folder.cache, folder.path / "runs" / "sasrec"):
            path.mkdir(parents=True)
            (path / "weights").write_text("w" * 1000)
        for dataset in (found, other):
            store.histories.save(ANNA, dataset.id, "h", ["a"])
            store.comparisons.save(ANNA, dataset.id, "c", "/?h=a")
            store.reports.save(ANNA, dataset.id, "r", {"a": 1})
            home.here().job(store.jobs.add(ANNA, dataset.id, "train", {}).id).mkdir(parents=True)
        running = store.jobs.of(ANNA, found.id)[0]
        heard: list[Path] = []
        for _ in range(2):  # one listener alone
            store.on_delete(heard.append)
        store.datasets.delete(ANNA, found.id)
        assert heard == [folder.path] and not folder.path.exists()
        assert store.datasets.of(ANNA) == [other]
        for part in (store.histories, store.comparisons, store.reports, store.jobs):
            assert [one.dataset for one in part.of(ANNA)] == [other.id]  # type: ignore[attr-defined]
        assert (home.here().job(running.id) / "cancel").is_file()  # its runner is asked to stop
        assert home.here().dataset(ANNA, other.id).path.is_dir()
        assert list((home.root() / "tmp").iterdir()) == []

    def test_the_folder_is_renamed_before_anything_in_it_is_deleted(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = uploaded(store)
        deleted: list[Path] = []
        monkeypatch.setattr(home, "delete", deleted.append)  # as if it were killed here
        store.datasets.delete(ANNA, found.id)
        assert len(deleted) == 1 and deleted[0].parent == home.root() / "tmp"
        assert (deleted[0] / "upload" / "items.csv").is_file()
        assert not home.here().dataset(ANNA, found.id).path.exists()

    def test_killed_between_row_and_folder_nobody_sees_it(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        found = uploaded(store)

        def die(at: home.Home, path: Path) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(home.Home, "discard", die)
        with pytest.raises(KeyboardInterrupt):
            store.datasets.delete(ANNA, found.id)
        assert store.datasets.of(ANNA) == []


def test_paths_are_made_of_ids_alone(store: Store) -> None:
    for owner, id in (
        (ANNA, "../../etc"),
        ("../" * 11, "a" * 16),
        (ANNA, "a" * 15),
        (ANNA, "A" * 16),
        (BEN + "\n", "a" * 16),
    ):
        with pytest.raises(ValueError, match="not an id"):
            home.here().dataset(owner, id)
    for wrong in ("", "..", "a/b"):
        with pytest.raises(ValueError, match="not an id"):
            home.here().job(wrong)
