"""A batch as a process of its own: it runs, is cancelled, fails in words; only so many at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.reports import child
from app.reports.child import Child, Done, Failed, Running
from engine.errors import SeqscopeError


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for process in child._running:
        process.kill()
        process.wait()
    child._running.clear()


def ended(run: Child) -> Done | Failed:
    deadline = time.monotonic() + 120
    while isinstance(found := run.state(), Running):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_it_runs(hostile: Path, tmp_path: Path) -> None:
    run = Child.start(tmp_path, hostile, "people", "lists.parquet", ["--models", "alpha", "-k", "3"])
    found = ended(run)
    assert isinstance(found, Done), found
    assert found.path.is_file() and found.words.startswith("4 histories, 12 rows")


def test_it_fails_in_words(hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("nothing\n")
    found = ended(Child.start(tmp_path, hostile, str(tmp_path / "h.csv"), "lists.parquet", []))
    assert isinstance(found, Failed) and "which column is the user" in found.words


def test_it_is_cancelled_and_makes_room(hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h.txt").write_text("toy-9 toy-12\n" * 200_000)
    run = Child.start(tmp_path, hostile, str(tmp_path / "h.txt"), "lists.csv", [])
    with pytest.raises(SeqscopeError, match="Another batch is running"):
        Child.start(tmp_path, hostile, "people", "other.csv", [])
    run.cancel()
    found = ended(run)
    assert isinstance(found, Failed) and not run.out.exists()
    again = tmp_path / "again"
    again.mkdir()
    assert isinstance(ended(Child.start(again, hostile, "people", "lists.csv", ["--models", "popular"])), Done)


def test_it_may_not_take_all_memory(hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MEMORY", 100)
    (tmp_path / "h.jsonl").write_text('["' + "x" * 10_000_000 + '"]\n')
    found = ended(Child.start(tmp_path, hostile, str(tmp_path / "h.jsonl"), "lists.csv", []))
    assert isinstance(found, Failed) and found.words
