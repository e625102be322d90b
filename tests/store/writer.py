"""A process that writes to the store until it is killed, and says after every write what is true from then on.

python -m tests.store.writer SEED     one line of JSON per acknowledged write
python -m tests.store.writer migrate COMMITS WORDS     killed after so many commits, before the statement that begins with WORDS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from typing import Any

import duckdb

from app import home
from app.store import migrations
from app.store.database import Store
from tests.store import ANNA, CLARA

FILES = 5  # of each dataset
BIG = (
    "create table big (number bigint, text varchar); "
    "insert into big select i, repeat('x', 50) || i from range(20000) t(i); "
    "alter table history add column note varchar default 'none'; "
    "update history set note = 'migrated'",
    "create table after_big as select count(*) as rows from big; update dataset set title = title || '!'",
)
"""Migrations of several statements, which write more than a page."""


def say(what: str, id: str, value: Any) -> None:
    print(json.dumps([what, id, value]), flush=True)


class Writer:
    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random = store, random.Random(seed)
        self.owner = self.random.choice([ANNA, CLARA])
        self.number = seed * 1_000_000
        self.datasets = [dataset.id for dataset in store.datasets.of(self.owner)]
        self.histories = [history.id for history in store.histories.of(self.owner)]
        self.jobs = [job.id for job in store.jobs.of(self.owner)]

    def step(self) -> None:
        ways: list[Callable[[], None]] = [
            self.add_dataset, self.change_dataset, self.change_dataset, self.delete_dataset, self.save_history,
            self.save_history, self.delete_history, self.add_job, self.change_job,
        ]  # fmt: skip
        self.number += 1
        self.random.choice(ways)()
        if self.random.random() < 0.1:
            with self.store.file.alone() as connection:
                connection.execute("checkpoint")

    def add_dataset(self) -> None:
        if len(self.datasets) >= 15:
            return
        folder = home.here().stage()
        for place in range(FILES):
            (folder / f"{place}.txt").write_text(str(self.number) * 500)
        title = f"dataset {self.number}"
        found = self.store.datasets.add(self.owner, title, staged=folder, reading={"number": self.number})
        say("dataset", found.id, [self.owner, title, self.number, 0])
        self.datasets.append(found.id)

    def change_dataset(self) -> None:
        if self.datasets:
            id, title = self.random.choice(self.datasets), f"changed {self.number}"
            found = self.store.datasets.change(
                self.owner, id, title=title, rows_items=self.number % 1000, reading={"number": self.number}
            )
            say("dataset", id, [self.owner, title, self.number, found.rows_items])

    def delete_dataset(self) -> None:
        if len(self.datasets) > 5:
            id = self.datasets.pop(self.random.randrange(len(self.datasets)))
            self.store.datasets.delete(self.owner, id)
            say("dataset", id, None)

    def save_history(self) -> None:
        if len(self.histories) < 300:
            name, items = f"history {self.number}", [f"item-{self.number}-{i}" for i in range(self.number % 60 + 1)]
            found = self.store.histories.save(self.owner, "sample", name, items)
            say("history", found.id, [self.owner, name, items])
            self.histories.append(found.id)

    def delete_history(self) -> None:
        if self.histories:
            id = self.histories.pop(self.random.randrange(len(self.histories)))
            self.store.histories.delete(self.owner, id)
            say("history", id, None)

    def add_job(self) -> None:
        if sum(job.state == "queued" for job in self.store.jobs.of(self.owner)) < 5:
            found = self.store.jobs.add(self.owner, "sample", "train", {"number": self.number})
            say("job", found.id, [self.owner, "queued", ""])
            self.jobs.append(found.id)

    def change_job(self) -> None:
        if self.jobs:
            id, words = self.random.choice(self.jobs), f"ended {self.number}"
            self.store.jobs.change(self.owner, id, "failed", words)
            say("job", id, [self.owner, "failed", words])


def main() -> None:
    seed = int(sys.argv[1])
    store = Store()
    print("open", flush=True)
    writer = Writer(store, seed)
    while True:
        writer.step()


class Deadly:
    """A connection, statement by statement, that kills the process before one of them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, commits: int, words: str) -> None:
        self.connection, self.commits, self.words = connection, commits, words

    def execute(self, sql: str, *values: Any) -> Any:
        for statement in filter(None, (part.strip() for part in sql.split(";"))):
            if self.commits == 0 and statement.startswith(self.words):
                os.kill(os.getpid(), signal.SIGKILL)
            self.commits -= statement == "commit"
            answer = self.connection.execute(statement, *values)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


def migrate(commits: int, words: str) -> None:
    connect = duckdb.connect
    duckdb.connect = lambda *given, **named: Deadly(connect(*given, **named), commits, words)  # type: ignore[assignment]
    Store(steps=(*migrations.STEPS, *BIG))
    print("done", flush=True)


if __name__ == "__main__":
    migrate(int(sys.argv[2]), sys.argv[3]) if sys.argv[1] == "migrate" else main()
