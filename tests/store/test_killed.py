"""Killed in the middle of anything, the store opens again with all that it had acknowledged, and with nothing half done."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from app import home
from app.store import migrations
from app.store.database import Store
from app.store.records import NotFound
from app.store.sweep import sweep
from tests.store import ANNA, CLARA
from tests.store.writer import BIG, FILES

Facts = dict[tuple[str, str], Any]
"""(kind, id) → what the last acknowledged write said of it; None: it was deleted."""


def run(root: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.writer", *words],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_while_writing(root: Path, seed: int, acknowledged: int, later: float, facts: Facts) -> None:
    """Kills a writer so many seconds after so many acknowledged writes, and takes over everything that it said."""
    process = run(root, str(seed))
    assert process.stdout is not None and process.stderr is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if len(lines) > acknowledged:
            break
    time.sleep(later)
    assert process.poll() is None, process.stderr.read()
    process.kill()
    lines += process.stdout.readlines()
    process.wait()
    assert lines[0] == "open\n"
    for line in lines[1:]:
        if line.endswith("\n"):
            kind, id, value = json.loads(line)
            facts[kind, id] = value


def assert_kept(store: Store, facts: Facts, unsaid: int) -> None:
    """Everything that was acknowledged is there. unsaid: writes that may have happened without anybody hearing of it."""
    strange = 0
    for (kind, id), value in facts.items():
        owner = ANNA if value is None else value[0]
        found = {one.id: one for who in {owner, ANNA, CLARA} for one in part(store, kind).of(who)}.get(id)
        if (None if found is None else said(kind, found)) != value:
            strange += 1
    assert strange <= unsaid


def part(store: Store, kind: str) -> Any:
    return {"dataset": store.datasets, "history": store.histories, "job": store.jobs}[kind]


def said(kind: str, found: Any) -> list[Any]:
    if kind == "dataset":
        return [found.owner, found.title, found.reading["number"], found.rows_items]
    if kind == "history":
        return [found.owner, found.name, list(found.items)]
    return [found.owner, found.state, found.message]


def assert_whole(store: Store) -> None:
    for owner in (ANNA, CLARA):
        for dataset in store.datasets.of(owner):
            texts = [path.read_text() for path in home.here().dataset(owner, dataset.id).path.iterdir()]
            assert len(texts) == FILES
            assert len(set(texts)) == 1 and len(texts[0]) >= 500


def test_everything_acknowledged_is_there_after_sigkill(own_home: Path, root: Path) -> None:
    chance = random.Random(7)
    facts: Facts = {}
    for turn in range(4):
        killed_while_writing(root, turn + 1, chance.randint(2, 90), chance.random() * 0.03, facts)
        store = Store()
        # at most the one write that was going on may differ from what was heard
        assert_kept(store, facts, unsaid=1)
        assert_whole(store)
        sweep(store)
        assert_whole(store)
        rows = {id for owner in (ANNA, CLARA) for id in (dataset.id for dataset in store.datasets.of(owner))}
        folders = {path.name for path in own_home.glob("owners/*/datasets/*")}
        assert folders == rows  # what was half done is gone, and nothing else
        # what was not heard is taken as it is, so that it does not count twice
        facts = {key: value for key, value in facts.items() if value is not None}
        for kind, id in list(facts):
            try:
                facts[kind, id] = said(kind, part(store, kind).get(facts[kind, id][0], id))
            except NotFound:
                del facts[kind, id]
        store.close()
    assert len(facts) > 20


@pytest.mark.parametrize(("commits", "words"), [(0, "update history"), (0, "commit"), (1, "begin")])
def test_a_migration_that_is_killed_has_not_happened_or_is_done(
    own_home: Path, root: Path, commits: int, words: str
) -> None:
    store = Store()
    store.datasets.add(ANNA, "films")
    store.histories.save(ANNA, "sample", "westerns", ["a", "b"])
    store.close()
    process = run(root, "migrate", str(commits), words)
    output, _ = process.communicate()
    assert (process.returncode, output) == (-signal.SIGKILL, "")
    assert between_steps() == commits
    migrated = Store(steps=(*migrations.STEPS, *BIG))
    assert migrated.datasets.of(ANNA)[0].title == "films!"
    assert migrated.histories.of(ANNA)[0].items == ("a", "b")
    migrated.close()
    assert between_steps() == len(BIG)


def between_steps() -> int:
    """How many of the steps the store has seen; nothing of the next one is there."""
    with duckdb.connect(str(home.here().database)) as connection:
        number = migrations.reached(connection) - len(migrations.STEPS)
        tables = {name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()}
        assert ("big" in tables) == (number >= 1)
        assert ("after_big" in tables) == (number >= 2)
        if number >= 1:
            assert connection.execute("select count(*) from big").fetchall() == [(20_000,)]
            assert connection.execute("select distinct note from history").fetchall() == [("migrated",)]
        assert connection.execute("select title from dataset").fetchall() == [("films" + "!" * (number == 2),)]
        return number
