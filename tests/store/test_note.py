"""A store that lost rows: refused, not taken for an empty one, and nothing that it no longer knows is deleted."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app import home
from app.store import file, lost, migrations
from app.store.database import Store
from app.store.file import Incomplete
from app.store.sweep import Swept, sweep
from engine import cli
from tests.store import ANNA
from tests.store.test_datasets import uploaded

KILLED = f"""
import os, signal
from app import home
from app.store.database import Store
Store().close()  # its tables are in the file itself
store = Store()
for number in range(3):
    folder = home.here().stage()
    (folder / "clean").mkdir()
    (folder / "clean" / "note.txt").write_text("mine")
    store.datasets.add("{ANNA}", f"films {{number}}", staged=folder)
os.kill(os.getpid(), signal.SIGKILL)
"""


def wal() -> Path:
    return home.here().database.with_name("store.duckdb.wal")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size - 100])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "lost": Path.unlink,
    "cut": cut,
}


@pytest.fixture(scope="module")
def killed_home(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a server that was killed."""
    path = tmp_path_factory.mktemp("killed") / "home"
    env = {**os.environ, "SEQSCOPE_HOME": str(path)}
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=root, env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    return path


@pytest.fixture
def killed(own_home: Path, killed_home: Path) -> list[Path]:
    """The folders of its three datasets: their rows are in the write-ahead log."""
    shutil.copytree(killed_home, own_home)
    assert wal().stat().st_size
    return sorted(own_home.glob("owners/*/datasets/*"))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_store_without_its_log_is_refused_and_all_can_be_had_again(
    killed: list[Path], damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    DAMAGE[damage](wal())
    left = wal().read_bytes() if wal().exists() else b""
    for _ in range(2):  # asked again, as pages do
        with pytest.raises(Incomplete, match="seqscope store accept"):
            Store()
    assert [path for path in killed if not path.is_dir()] == []
    assert (wal().read_bytes() if wal().exists() else b"") == left  # for whoever can mend it

    assert cli.main(["store", "accept"]) == 0
    with closing(Store()) as store:
        rows = {dataset.id for dataset in store.datasets.of(ANNA)}
        sweep(store)
    gone = [path for path in killed if path.name not in rows]
    assert gone and not any(path.exists() for path in gone)

    capsys.readouterr()
    assert cli.main(["store", "lost"]) == 0
    listed = capsys.readouterr().out
    assert all(path.name in listed for path in gone)
    assert cli.main(["store", "recover", "--all"]) == 0
    with closing(Store()) as store:
        assert {dataset.id for dataset in store.datasets.of(ANNA)} == {path.name for path in killed}
        assert sweep(store) == Swept() and lost.entries(home.here()) == []
        assert all((path / "clean" / "note.txt").read_text() == "mine" for path in killed)


def test_an_older_store_copied_back_is_refused(store: Store, tmp_path: Path) -> None:
    first = uploaded(store)
    store.close()
    shutil.copy(home.here().database, tmp_path / "older")
    with closing(Store()) as store:
        store.datasets.delete(ANNA, first.id)
    shutil.copy(tmp_path / "older", home.here().database)
    with pytest.raises(Incomplete, match="1 change "):
        Store()


def test_a_store_that_is_gone_is_refused(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = uploaded(store)
    store.close()
    home.here().database.unlink()
    with pytest.raises(Incomplete):
        Store()
    for words in (["check"], ["backup", str(tmp_path / "a.tar")]):
        assert cli.main(["store", *words]) == 1
        assert "that it had" in capsys.readouterr().err
    assert not home.here().database.exists()
    assert cli.main(["store", "accept"]) == cli.main(["store", "recover", "--all"]) == 0
    with closing(Store()) as store:
        assert [again.id for again in store.datasets.of(ANNA)] == [dataset.id]


def test_a_note_that_cannot_be_read_or_is_missing_is_made_anew(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    uploaded(store)
    store.close()
    path = file.note_path(home.here().database)
    path.write_text("{")
    with caplog.at_level(logging.WARNING):
        Store().close()
    assert "cannot be read" in caplog.text
    noted = file.read_note(home.here().database)
    assert noted is not None and noted.changes == 1
    path.unlink()
    Store().close()
    assert file.read_note(home.here().database) is not None


def test_what_an_owner_deletes_is_deleted_for_good(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the server ends between row and folder."""
    first, second = uploaded(store), uploaded(store)
    store.datasets.delete(ANNA, first.id)
    with monkeypatch.context() as patch:
        patch.setattr(home.Home, "discard", lambda at, path: None)
        store.datasets.delete(ANNA, second.id)
    assert home.here().dataset(ANNA, second.id).path.is_dir()
    store.close()
    with closing(Store()) as again:  # it lacks nothing
        assert sweep(again) == Swept(deleted=1)
        assert not home.here().dataset(ANNA, second.id).path.exists() and lost.entries(home.here()) == []
        assert again.file.ask("select * from deleted") == []


def test_a_store_of_before_opens(own_home: Path) -> None:
    home.here().ready()
    with duckdb.connect(str(home.here().database)) as connection:
        migrations.apply(connection, migrations.STEPS[:1])
        connection.execute(
            """insert into dataset values
            ('aaaaaaaaaaaaaaaa', ?, 'films', now(), now() + interval 6 day, 'checked', 1, 0, 1, '{}', '')""",
            [ANNA],
        )
        connection.execute(
            """insert into job values
            ('bbbbbbbbbbbbbbbb', ?, 'sample', 'batch', '{}', 'done', now(), now(), now() - interval 2 day, '')""",
            [ANNA],
        )
    with closing(Store()) as store:
        assert [dataset.title for dataset in store.datasets.of(ANNA)] == ["films"]
        assert store.file.ask("select date_diff('day', ended, expires) from job") == [(7,)]
        assert store.file.ask("select date_diff('hour', seen, now() at time zone 'UTC') from clock") == [(24,)]


def test_bringing_back_that_is_interrupted_is_finished_by_the_next_call(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = uploaded(store)
    with store.file.transaction() as transaction:
        transaction.execute("delete from dataset")
    sweep(store)
    (entry,) = lost.entries(store.home)
    place = home.Home.place
    for moved in (False, True):

        def interrupted(self: home.Home, *paths: Path, moved: bool = moved) -> None:
            if moved:
                place(self, *paths)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(home.Home, "place", interrupted)
            with pytest.raises(KeyboardInterrupt):
                lost.recover(store, entry)
    assert lost.recover(store, entry).left == [] and lost.entries(store.home) == []
    (again,) = store.datasets.of(ANNA)
    assert again.id == first.id and store.home.dataset(ANNA, first.id).path.is_dir()


def test_what_cannot_be_made_anew_is_said(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged file, and what is saved over a dataset, which is rows alone."""
    damaged = "clean/items.parquet"
    folder = home.here().dataset(ANNA, home.new_id()).path
    (folder / "clean").mkdir(parents=True)
    for name in ("items", "log"):
        pq.write_table(pa.table({"item_id": ["a", "b"]}), folder / "clean" / f"{name}.parquet")
    (folder / damaged).write_bytes(b"PAR1 and no more")
    assert cli.main(["store", "accept"]) == cli.main(["store", "recover", "--all"]) == 0
    out = capsys.readouterr().out
    assert f"{damaged} is damaged" in out and "histories, comparisons, reports" in out
    with closing(Store()) as store:
        (found,) = store.datasets.of(ANNA)
        assert (found.state, found.rows_items + found.rows_events) == ("failed", 2)


@pytest.mark.parametrize("words", [["accept"], ["lost"], ["recover", "--all"], ["check"]])
def test_where_there_never_was_a_store_none_is_made(
    own_home: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["store", *words]) == 1
    assert f"There is no store in {own_home}" in capsys.readouterr().err
    assert not own_home.exists()


def test_nothing_to_bring_back_is_said(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.close()
    assert cli.main(["store", "recover", "--all"]) == 0
    assert "nothing to bring back" in capsys.readouterr().out
