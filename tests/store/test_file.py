"""The file itself: who may hold it, what a newer or broken one says, and what happens when it cannot be written."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from app import home
from app.store import migrations
from app.store.database import Store
from app.store.file import Held, Unavailable
from app.store.server import open_store
from engine.errors import SeqscopeError
from tests.store import ANNA, BEN, another_server


def python(root: Path, words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(words)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_a_second_process_gets_one_clear_message(store: Store, root: Path) -> None:
    done = python(
        root,
        """
        from app.store.server import open_store
        from engine.errors import SeqscopeError
        try:
            open_store()
        except SeqscopeError as error:
            print(error)
        """,
    )
    assert done.stderr == ""
    line = done.stdout.removesuffix("\n")
    assert "\n" not in line
    assert "Another Seqscope server (process " in line and str(home.here().database) in line and "SEQSCOPE_HOME" in line
    store.datasets.add(ANNA, "goes on")


def test_it_opens_when_the_other_one_has_gone(own_home: Path, root: Path) -> None:
    with another_server(root) as process, pytest.raises(Held, match=f"process {process}"):
        open_store()
    found = open_store()
    assert open_store() is found
    found.close()
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
    again = Store()
    assert again.file.ask("select count(*) from duckdb_tables() where table_name = 'half'") == [(0,)]
    again.close()


def test_a_migration_keeps_the_rows(own_home: Path) -> None:
    first = Store()
    id = first.datasets.add(ANNA, "films").id
    first.close()
    later = Store(steps=(*migrations.STEPS, "alter table dataset add column note varchar default 'old'"))
    assert later.datasets.get(ANNA, id).title == "films"
    assert later.file.ask("select note from dataset") == [("old",)]
    later.close()


def test_a_broken_file_says_what_to_do(own_home: Path) -> None:
    home.here().ready()
    home.here().database.write_bytes(b"not a database" * 1000)
    with pytest.raises(Unavailable, match="restore"):
        Store()


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(SeqscopeError, match="SEQSCOPE_HOME"):
        Store()


def test_others_on_the_machine_cannot_read_it(store: Store, own_home: Path) -> None:
    store.datasets.add(ANNA, "films")
    for path in (own_home, *(path for path in own_home.rglob("*") if path.is_dir())):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_full_disk_is_said_and_gets_over(own_home: Path, root: Path) -> None:
    """A limit on the size of files stands for the disk."""
    done = python(
        root,
        f"""
        import resource, signal
        from app.store.database import Store
        from engine.errors import SeqscopeError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store = Store()
        store.histories.save("{ANNA}", "sample", "before", ["a"])
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        refused = 0
        for number in range(40):
            try:
                store.histories.save("{ANNA}", "sample", f"full {{number}}", ["x" * 400] * 20)
            except SeqscopeError as error:
                refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.histories.save("{ANNA}", "sample", "after", ["b"])
        names = [history.name for history in store.histories.of("{ANNA}")]
        print(refused > 0, "before" in names, "after" in names, len(names) == 42 - refused)
        """,
    )
    assert done.stdout == "True True True True\n", done.stderr[-2000:]


def test_many_threads_write_and_read_at_once(store: Store) -> None:
    problems: list[str] = []

    def work(owner: str, number: int) -> None:
        try:
            for turn in range(8):
                saved = store.histories.save(owner, "sample", f"{number} {turn}", [f"{number}-{turn}"])
                if store.histories.get(owner, saved.id).items != (f"{number}-{turn}",):
                    problems.append("another one's row")
                if any(history.owner != owner for history in store.histories.of(owner)):
                    problems.append("another owner's row")
        except Exception as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=((ANNA, BEN)[number % 2], number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(store.histories.of(ANNA)) == len(store.histories.of(BEN)) == 32


def test_a_transaction_within_another_is_part_of_it(store: Store) -> None:
    with pytest.raises(RuntimeError), store.file.transaction():
        store.datasets.add(ANNA, "films")
        store.histories.save(ANNA, "sample", "westerns", ["a"])
        raise RuntimeError
    assert store.datasets.of(ANNA) == [] and store.histories.of(ANNA) == []
