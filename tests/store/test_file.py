"""The file itself: who may hold it, what a newer or broken one says, and what happens when it cannot be written."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from app import home
from app.store import file, migrations
from app.store.database import Store
from app.store.file import Held
from app.store.server import open_store
from engine.errors import SeqscopeError
from tests.store import ANNA, another_server


def test_it_opens_when_the_other_one_has_gone(own_home: Path, root: Path) -> None:
    with another_server(root) as process:
        left = home.here().draft(ANNA), home.here().stage(home.MADE)  # of its sessions
        with pytest.raises(
            Held, match=rf"process {process}\) holds the store .*{home.here().database}.*SEQSCOPE_HOME"
        ) as held:
            open_store()
        assert "\n" not in str(held.value) and all(map(Path.exists, left))
    with closing(open_store()) as found:
        assert open_store() is found and not any(map(Path.exists, left))
    assert open_store() is not found
    open_store().close()


def test_a_newer_store_is_refused_in_words_and_left_alone(own_home: Path) -> None:
    Store(steps=(*migrations.STEPS, "create table later (x integer)")).close()
    before = home.here().database.read_bytes()
    with pytest.raises(SeqscopeError, match="written by a newer Seqscope"):
        Store()
    assert home.here().database.read_bytes() == before


def test_a_migration_that_fails_leaves_the_store_as_it_was(own_home: Path) -> None:
    Store().close()
    with pytest.raises(SeqscopeError, match="could not be opened"):
        Store(steps=(*migrations.STEPS, "create table half (x integer); select no_such_column from dataset"))
    with closing(Store()) as again:
        assert again.file.ask("select count(*) from duckdb_tables() where table_name = 'half'") == [(0,)]


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(SeqscopeError, match="SEQSCOPE_HOME"):
        Store()


def test_others_on_the_machine_cannot_read_it(store: Store, own_home: Path) -> None:
    store.datasets.add(ANNA, "films")
    for path in (own_home, *(path for path in own_home.rglob("*") if path.is_dir())):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_transaction_within_another_is_part_of_it(store: Store) -> None:
    with pytest.raises(RuntimeError), store.file.transaction():
        store.datasets.add(ANNA, "films")
        store.histories.save(ANNA, "sample", "westerns", ["a"])
        raise RuntimeError
    assert store.datasets.of(ANNA) == [] and store.histories.of(ANNA) == []


def test_it_needs_no_call_that_linux_alone_has(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fdatasync", "posix_fallocate"):  # macOS has neither
        monkeypatch.delattr(os, name, raising=False)
    with closing(Store()) as store:
        store.datasets.add(ANNA, "films")
        file.keep_reserve(own_home)
        assert store.datasets.of(ANNA) and (own_home / file.RESERVE).stat().st_size == file.RESERVE_SIZE
