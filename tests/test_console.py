"""Progress: what a terminal, a pipe and a program that looks on get of it."""

import io
import json
import threading
from pathlib import Path

import pytest

from engine import console
from engine.console import PROGRESS, Progress, stage


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(console, "time", found)
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "progress.json"
    monkeypatch.setenv(PROGRESS, str(path))
    return path


def read(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text("utf-8"))
    return found


def test_a_program_reads_how_far_it_is(clock: Clock, file: Path) -> None:
    progress = Progress(10, "embed", stream=io.StringIO())
    clock.now += 4
    progress.update(2, "é")
    assert read(file) == {"words": "embed é", "done": 2, "of": 10, "left": 16.0}
    clock.now += 0.5
    progress.update(3)  # too soon
    assert read(file)["done"] == 2
    clock.now += 0.6
    progress.update(3.5)
    assert (read(file)["done"], read(file)["words"]) == (3.5, "embed é")
    clock.now += 0.1
    progress.update(10)  # the end is never too soon
    assert read(file) == {"words": "embed é", "done": 10, "of": 10, "left": 0.0}
    stage("writing")
    assert read(file) == {"words": "writing", "done": 0, "of": 0, "left": None}
    assert [path.name for path in file.parent.iterdir()] == ["progress.json"]


def test_the_file_is_spared_names_and_figures_of_the_log(clock: Clock, file: Path) -> None:
    stream = io.StringIO()
    progress = Progress(9, "films/sasrec", title="", stream=stream)
    progress.update(0.5)
    assert read(file)["words"] == ""
    clock.now += 20
    progress.update(2, "epoch 2/9 loss 3.1", "epoch 2 of 9")
    assert read(file)["words"] == "epoch 2 of 9"
    clock.now += 20
    progress.update(2.5)
    assert read(file)["words"] == "epoch 2 of 9"
    assert all(
        line.startswith("films/sasrec ") and "epoch 2/9 loss 3.1 " in line for line in stream.getvalue().splitlines()
    )


@pytest.mark.parametrize(
    ("seconds", "done", "left"), [(5, 0, None), (5, 1, None), (5, 10, 495.0), (60, 0, None), (60, 1, 59_940.0)]
)
def test_next_to_no_work_says_nothing_of_the_rest(
    clock: Clock, file: Path, seconds: int, done: int, left: float | None
) -> None:
    progress = Progress(1_000, "evaluate", stream=io.StringIO())
    clock.now += seconds
    progress.update(done)
    assert read(file)["left"] == left


def test_work_goes_on_where_it_cannot_be_written(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path / "no" / "such" / "folder", tmp_path):
        monkeypatch.setenv(PROGRESS, str(place))
        Progress(1, "x", stream=io.StringIO()).update(1)
    monkeypatch.delenv(PROGRESS)
    Progress(1, "x", stream=io.StringIO()).update(1)
    assert not list(tmp_path.iterdir())


def test_a_reader_never_finds_half_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "EVERY", 0.0)
    done = threading.Event()

    def write() -> None:
        progress = Progress(1_000, "w" * 5_000, stream=io.StringIO())
        for number in range(1_000):
            progress.update(number)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    while not done.is_set():
        if file.exists():
            assert read(file)["of"] == 1_000
            seen += 1
    thread.join()
    assert seen


def test_a_pipe_gets_a_line_now_and_then(clock: Clock) -> None:
    stream = io.StringIO()
    progress = Progress(4, "train", stream=stream)
    for _ in range(4):
        clock.now += 6
        progress.update(1 + (clock.now - 106) / 6, f"at {clock.now:.0f}")
    assert stream.getvalue() == "train 50% at 112 12s left\ntrain 100% at 124 0s left\n"
