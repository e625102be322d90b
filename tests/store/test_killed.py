"""Killed in the middle of anything, the store opens again with all that it had acknowledged, and with nothing half done."""

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from app import home
from app.store import migrations
from app.store.database import Store
from app.store.sweep import sweep
from tests.store import ANNA
from tests.store.test_datasets import uploaded

BIG = (
    "create table big (number bigint, text varchar); "
    "insert into big select i, repeat('x', 50) || i from range(20000) t(i); "
    "alter table history add column note varchar default 'none'; "
    "update history set note = 'migrated'",
    "create table after_big as select count(*) as rows from big; update dataset set title = title || '!'",
)
"""Migrations of several statements, which write more than a page."""
DYING = """
import os, signal, sys
import duckdb
from app.store import file, migrations
from app.store.database import Store
from tests.store import ANNA
from tests.store.test_datasets import uploaded
from tests.store.test_killed import BIG

action, left, words = sys.argv[1], int(sys.argv[2]), sys.argv[3]

class Deadly:
    def __init__(self, connection):
        self.connection = connection
    def execute(self, sql, *values):
        global left
        for statement in filter(None, (part.strip() for part in sql.split(";"))):
            if left == 0 and statement.startswith(words):
                os.kill(os.getpid(), signal.SIGKILL)
            left -= statement == "commit"
            answer = self.connection.execute(statement, *values)
        return answer
    def __getattr__(self, name):
        return getattr(self.connection, name)

def note(*change):
    if left < 0 and words == "note":
        os.kill(os.getpid(), signal.SIGKILL)
    write_note(*change)

connect, write_note = duckdb.connect, file.write_note
duckdb.connect, file.write_note = lambda *given, **named: Deadly(connect(*given, **named)), note
store = Store(steps=(*migrations.STEPS, *(BIG if action == "migrate" else ())))
(first,) = store.datasets.of(ANNA)
store.histories.save(ANNA, "sample", "acknowledged", ["b"])
print("acknowledged", flush=True)
uploaded(store) if action == "add" else store.datasets.delete(ANNA, first.id)
"""
"""python -c DYING ACTION COMMITS WORDS: killed after so many commits, before the statement that begins with WORDS, or before that
is noted."""


def killed(root: Path, action: str, commits: int, words: str) -> str:
    """What it said before."""
    command = [sys.executable, "-c", DYING, action, str(commits), words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def westerns(own_home: Path) -> None:
    """A dataset and a history."""
    with closing(Store()) as store:
        uploaded(store)
        store.histories.save(ANNA, "sample", "westerns", ["a", "b"])


@pytest.mark.parametrize(
    ("action", "words", "datasets"),
    [("add", "commit", 1), ("add", "note", 2), ("delete", "commit", 1), ("delete", "note", 0)],
)
def test_everything_acknowledged_is_there_after_sigkill(
    own_home: Path, westerns: None, root: Path, action: str, words: str, datasets: int
) -> None:
    assert killed(root, action, 1, words) == "acknowledged\n"
    with closing(Store()) as store:
        assert [history.items for history in store.histories.of(ANNA)] == [("b",), ("a", "b")]
        sweep(store)
        rows = {dataset.id for dataset in store.datasets.of(ANNA)}
        folders = [path for path in own_home.glob("owners/*/datasets/*") if (path / "upload" / "items.csv").read_text()]
        assert len(rows) == datasets and {path.name for path in folders} == rows


@pytest.mark.parametrize(("commits", "words"), [(0, "update history"), (0, "commit"), (1, "begin")])
def test_a_migration_that_is_killed_has_not_happened_or_is_done(
    westerns: None, root: Path, commits: int, words: str
) -> None:
    assert killed(root, "migrate", commits, words) == ""
    assert between_steps() == commits
    with closing(Store(steps=(*migrations.STEPS, *BIG))) as migrated:
        assert migrated.datasets.of(ANNA)[0].title == "Films!"
        assert migrated.histories.of(ANNA)[0].items == ("a", "b")
    assert between_steps() == len(BIG)


def between_steps() -> int:
    """How many of the steps the store has seen; nothing of the next one is there."""
    with duckdb.connect(str(home.here().database)) as connection:
        number = migrations.reached(connection) - len(migrations.STEPS)
        tables = {name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()}
        assert ("big" in tables, "after_big" in tables) == (number >= 1, number >= 2)
        if number >= 1:
            assert connection.execute("select count(*) from big").fetchall() == [(20_000,)]
            assert connection.execute("select distinct note from history").fetchall() == [("migrated",)]
        assert connection.execute("select title from dataset").fetchall() == [("Films" + "!" * (number == 2),)]
        return number
