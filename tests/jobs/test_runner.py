"""The process that carries a job out: killed, told to stop, cancelled or failed, it leaves what the next one needs."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.home import DISK_FULL
from app.jobs import runner as module
from app.jobs import status
from app.jobs.runner import CANCEL, LOG, PROGRESS, Failed, Gone, Runner
from app.jobs.spec import Job, JobStep
from app.jobs.status import Status
from tests.jobs.conftest import gone, job, step
from tests.waiting import wait

Begin = Callable[..., subprocess.Popen[bytes]]
CarryOut = Callable[[Job], Status]
Now = Callable[[], Status]
LINES = [str(number) for number in range(1, 11)]
ALIKE = pytest.mark.parametrize("begin", ["app.jobs.runner"], indirect=True)
"""Of what a runner does alike with processes of their own and with forked ones, which it ends as those that are cancelled."""


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def pids(path: Path) -> list[int]:
    return [int(line) for line in lines(path.with_suffix(".pid"))]


def test_one_step_after_the_other(folder: Path, begin: Begin, now: Now) -> None:
    gate = folder / "gate"
    first, second = step("say", "hello", weight=1), step("count", "out", 10, 0.01, gate, title="Count", weight=3)
    child = begin(job(first, second))
    seen = [now()]
    while child.poll() is None:
        time.sleep(0.005)
        seen.append(now())
        if seen[-1].words == "Count: line 5":
            gate.touch()
    assert child.returncode == 0
    end = now()
    assert (end.state, end.step, end.progress, end.words, end.left, end.pid) == ("done", 2, 1.0, "Done", None, None)
    assert [part.state for part in end.parts] == ["done", "done"] and end.parts[1].seconds >= 0.1
    assert end.started is not None and end.ended is not None and end.ended >= end.started
    assert lines(folder / "out") == LINES
    running = [one for one in seen if one.state == "running"]
    assert running and all(one.pid == child.pid for one in running)
    shares = [one.progress for one in seen]
    assert shares == sorted(shares) and any(0.25 < share < 1 for share in shares)
    told = [one for one in running if one.words.startswith("Count: line ")]
    assert told and all(one.left is not None and one.left < 1 for one in told)
    assert "hello" in (folder / LOG).read_text() and "--- Count" in (folder / LOG).read_text()


def test_progress_never_goes_backwards(folder: Path, now: Now, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.0)
    slow = step("say", "x", weight=10)
    job(slow, timed=True).write(folder)
    runner = Runner(folder)
    runner._tell(0, slow, 9.0)  # by the clock: the command has not told anything yet
    assert now().progress == pytest.approx(0.9)
    (folder / PROGRESS).write_text('{"words": "epoch 1 of 10", "done": 1, "of": 10, "left": 9}')
    runner._tell(0, slow, 9.5)
    assert now().progress == pytest.approx(0.9)


def test_a_disk_that_is_full_for_a_moment_ends_no_command(
    folder: Path, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refused = Status.write, list[Status]()

    def refuse(now: Status, folder: Path, *, durable: bool = False) -> None:
        if durable:
            write(now, folder, durable=True)
        else:
            refused.append(now)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Status, "write", refuse)
    assert carry_out(job(step("lacks", "a map"))).state == "done" and refused


@pytest.mark.linux  # elsewhere its command lives on
def test_killed_it_goes_on_where_it_was(folder: Path, begin: Begin, now: Now) -> None:
    child = begin(job(step("count", "a", 2, 0), step("count", "out", 10, 0, folder / "gate"), step("say", "after")))
    wait(lambda: len(lines(folder / "out")) == 5)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (worker,) = pids(folder / "out")
    wait(lambda: gone(worker))  # its command does not live on
    left = now()
    assert (left.state, left.step) == ("running", 1)  # as it was written last
    (folder / "gate").touch()
    assert begin().wait() == 0
    assert lines(folder / "out") == LINES and lines(folder / "a") == ["1", "2"]
    assert len(pids(folder / "a")) == 1 and len(pids(folder / "out")) == 2
    assert now().state == "done" and now().started == left.started


def test_a_command_that_ended_this_moment_is_only_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(group: int, number: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))  # macOS, of a group in which nobody lives any more

    monkeypatch.setattr(os, "killpg", refuse)
    module._end(child := subprocess.Popen([sys.executable, "-c", ""]))
    assert child.returncode == 0


@ALIKE
def test_told_to_stop_it_leaves_the_job_to_the_next(folder: Path, begin: Begin, now: Now) -> None:
    child = begin(job(step("count", "out", 10, 0, folder / "gate")))
    wait(lambda: len(lines(folder / "out")) == 5)
    child.terminate()
    assert child.wait() == 0
    assert (now().state, now().pid) == ("queued", None) and "Interrupted" in now().words
    assert gone(pids(folder / "out")[0])
    (folder / "gate").touch()
    assert begin().wait() == 0
    assert lines(folder / "out") == LINES and now().state == "done"


def test_cancelled(folder: Path, begin: Begin, now: Now) -> None:
    child = begin(job(step("count", "out", 1000, 0.05), step("count", "never", 1, 0)))
    wait(lambda: lines(folder / "out"))
    (folder / CANCEL).touch()
    assert child.wait() == 0
    assert (now().state, now().message, now().left) == ("cancelled", "", None) and now().ended
    assert [part.state for part in now().parts] == ["failed", "waiting"]
    assert gone(pids(folder / "out")[0]) and not (folder / "never").exists()
    assert begin().wait() == 0 and now().state == "cancelled"  # it is over


@ALIKE
def test_one_runner_alone(folder: Path, begin: Begin, now: Now) -> None:
    child = begin(job(step("count", "out", 10, 0, folder / "gate")))
    wait(lambda: lines(folder / "out"))
    assert begin().wait() == 0  # goes at once
    (folder / "gate").touch()
    assert child.wait() == 0
    assert len(pids(folder / "out")) == 1 and lines(folder / "out") == LINES


def test_a_step_that_fails_says_why(folder: Path, begin: Begin, now: Now) -> None:
    steps = [
        step("die", 9, may_fail=True),
        step("die", 6, may_fail=True),
        step("fail", f"./x: {os.strerror(errno.ENOSPC)}. Check the path.", may_fail=True),
        step("count", "out"),
        step("count", "never", 1, 0),
    ]
    assert begin(job(*steps)).wait() == 1
    end = now()
    assert end.state == "failed" and end.message.startswith("It ended with code 1: TypeError: count() missing")
    assert end.notes[0].startswith("Do die: The system ended it, most likely because memory ran out")
    assert "SIGABRT" in end.notes[1] and "Traceback" not in end.message
    assert end.notes[2] == f"Do fail: {DISK_FULL}"
    assert [part.state for part in end.parts] == ["failed"] * 4 + ["waiting"] and not (folder / "never").exists()


def test_the_engine_says_why(carry_out: CarryOut) -> None:
    wanted = step("data", "describe", "nowhere").model_copy(update={"program": "engine"})
    assert "nowhere does not exist" in carry_out(job(wanted)).message


def test_the_rest_goes_on_without_what_may_fail(folder: Path, carry_out: CarryOut) -> None:
    steps = [
        step("fail", "no words", key="words", may_fail=True, title="Read"),
        step("count", "never", 1, 0, key="codes", needs=("words",)),
        step("count", "nor", 1, 0, needs=("codes",), goal=True),
        step("count", "out", 2, 0, goal=True),
        step("lacks", "Item-kNN: too many items."),
    ]
    end = carry_out(job(*steps))
    assert end.state == "done" and end.notes == ("Read: no words", "Item-kNN: too many items.")
    assert [part.state for part in end.parts] == ["failed", "left out", "left out", "done", "done"]
    assert lines(folder / "out") == ["1", "2"] and not (folder / "never").exists() and not (folder / "nor").exists()


def test_a_job_none_of_whose_goals_is_reached_has_failed(carry_out: CarryOut) -> None:
    steps = [
        step("fail", "no words", key="a", may_fail=True),
        step("say", "x", needs=("a",), goal=True),
        step("say", "y"),
    ]
    ended = carry_out(job(*steps))
    assert (ended.state, ended.message) == ("failed", "Do fail: no words")


def test_what_was_made_of_the_same_is_not_made_again(folder: Path, carry_out: CarryOut, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    source = tmp_path / "data" / "in"
    source.write_text("one")
    wanted = job(step("count", "out", 3, 0, inputs=("in",), output="out"), folder="../../data")
    out = tmp_path / "data" / "out"
    for content, starts in (("one", 1), ("one", 1), ("other", 2), ("other", 2)):
        source.write_text(content)
        (folder / status.FILE).unlink(missing_ok=True)
        assert carry_out(wanted).state == "done"
        assert len(pids(out)) == starts and lines(out) == ["1", "2", "3"]
    out.unlink()
    (folder / status.FILE).unlink()
    assert carry_out(wanted).state == "done" and lines(out) == ["1", "2", "3"] and len(pids(out)) == 3


def test_what_was_to_be_short_and_is_not_leaves_its_place(carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = job(step("say", "x"), short=True)
    monkeypatch.setattr(module, "SHORT_SECONDS", -1.0)
    left = carry_out(wanted)
    assert (left.state, left.outlasted) == ("queued", True)
    assert carry_out(wanted).state == "done"  # as a long one it has its time


@ALIKE
def test_a_step_that_takes_too_long_is_ended(
    folder: Path, begin: Begin, now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_JOB_HOURS", "0.0003")
    assert begin(job(step("count", "out", 1000, 0.05))).wait() == 1
    assert "0.0003 hours" in now().message
    assert gone(pids(folder / "out")[0])


@ALIKE
def test_the_folder_is_taken_away(folder: Path, begin: Begin, tmp_path: Path) -> None:
    child = begin(job(step("count", str(tmp_path / "out"), 1000, 0.05)))
    wait(lambda: lines(tmp_path / "out"))
    folder.rename(tmp_path / "gone")
    assert child.wait() in (0, 1)
    assert gone(pids(tmp_path / "out")[0]) and not folder.exists()
    shutil.rmtree(tmp_path / "gone")


@pytest.fixture
def runner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Job], Runner]:
    """A runner in this process, between two lines of which something may happen."""

    def make(wanted: Job) -> Runner:
        wanted.write(folder)
        return Runner(folder)

    monkeypatch.setattr(signal, "signal", lambda number, handler: None)  # pytest's stay
    return make


def test_nothing_is_written_after_the_folder_was_taken_away(
    folder: Path, runner: Callable[[Job], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner has looked and found its folder; then the folder goes; then the runner writes."""
    begun = runner(job(step("count", "out", 1, 0)))
    write = Status.write

    def write_late(self: Status, folder: Path, *, durable: bool = False) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        write(self, folder, durable=durable)

    monkeypatch.setattr(Status, "write", write_late)
    with pytest.raises(Gone):
        begun.run()
    assert not folder.exists()


def test_the_dataset_is_deleted_while_a_step_ends(
    tmp_path: Path, runner: Callable[[Job], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "in").touch()
    begun = runner(job(step("count", "out", 1, 0, inputs=("in",), output="out"), folder="../../data"))
    remember = begun._remember

    def remember_late(step: JobStep, made: str) -> None:
        shutil.rmtree(data)
        remember(step, made)

    monkeypatch.setattr(begun, "_remember", remember_late)
    with pytest.raises(Failed, match="the dataset was deleted"):
        begun.run()
    assert not data.exists()


@ALIKE
def test_the_files_are_taken_away(folder: Path, begin: Begin, now: Now, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    child = begin(job(step("count", str(tmp_path / "out"), 1000, 0.05), folder="../../data"))
    wait(lambda: lines(tmp_path / "out"))
    (tmp_path / "data").rename(tmp_path / "deleted")
    assert child.wait() == 1
    assert "the dataset was deleted" in now().message


def test_commands_get_no_secrets(folder: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "STREAMLIT_AUTH_CLIENT_SECRET", "DATABASE_URL", "SEQSCOPE_WORDS"):
        monkeypatch.setenv(name, "x")
    assert begin(job(step("environment", "names"))).wait() == 0
    names = set((folder / "names").read_text().splitlines())
    assert {"PATH", "SEQSCOPE_WORDS", "SEQSCOPE_PROGRESS"} <= names
    assert not names & {"AWS_SECRET_ACCESS_KEY", "STREAMLIT_AUTH_CLIENT_SECRET", "DATABASE_URL"}


def test_a_status_that_cannot_be_read_is_that_of_a_job_nobody_has_begun(
    folder: Path, carry_out: CarryOut, now: Now
) -> None:
    wanted = job(step("count", "out", 3, 0))
    for content in (b"", b"{", b"[]", b'{"state": "lost"}', b"\xff"):
        (folder / status.FILE).write_bytes(content)
        assert now() == Status()
        assert carry_out(wanted).state == "done"
    (folder / status.FILE).unlink()
    (folder / status.FILE / "lost").mkdir(parents=True)  # as an interrupted copy leaves it
    assert carry_out(wanted).state == "done"
    assert lines(folder / "out") == ["1", "2", "3"]
