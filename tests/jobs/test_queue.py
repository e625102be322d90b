"""The queue: at most so many runners, none lost when the server or a runner is killed, and every end said in words."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from app.jobs import queue as module
from app.jobs import status
from app.jobs.queue import Full, Queue
from app.jobs.spec import Job
from app.jobs.status import Status
from app.jobs.turns import Ahead
from app.work import network
from engine.errors import SeqscopeError
from tests.jobs.conftest import gone, job, step
from tests.jobs.test_runner import LINES, lines, pids
from tests.waiting import wait

Make = Callable[..., Queue]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def make(jobs: Path) -> Iterator[Make]:
    """make(**settings) is a queue that has begun."""
    made: list[Queue] = []

    def begin(**settings: object) -> Queue:
        made.append(Queue(jobs, tick=0.05, **settings))  # type: ignore[arg-type]
        made[-1].start()
        return made[-1]

    yield begin
    for one in made:
        one.stop()
    for path in jobs.glob("*/status.json"):
        pid = status.read(path.parent).pid
        if pid is not None and not gone(pid):
            os.killpg(pid, signal.SIGKILL)


def over(queue: Queue, id: str, seconds: float = 90) -> Status:
    found: Status = wait(lambda: queue.status(id) if queue.status(id).over else None, seconds)
    return found


def test_jobs_are_carried_out_in_the_order_in_which_they_came(make: Make, tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    queue = make(on_change=lambda one, now: told.append((one.id, now.state)))
    for id in ("j0", "j1"):
        queue.submit(job(step("count", tmp_path / id, 2, 0.05), id=id))
    assert queue.ahead("j1").others == 1
    for id in ("j0", "j1"):
        assert over(queue, id).state == "done"
        assert lines(tmp_path / id) == ["1", "2"]
    assert queue.status("j0").ended <= queue.status("j1").started  # type: ignore[operator]
    wait(lambda: ("j1", "done") in told)
    assert [one for one in told if one[1] == "done"] == [("j0", "done"), ("j1", "done")]
    assert "--- Do count" in queue.log("j1") and queue.log("j1", most=4).strip()


class Pretended:
    """Starts no process; a job has a runner from its start until its status says that it is over or waits."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def start(self, folder: Path) -> None:
        self.started.append(folder.name)
        Status(state="running").write(folder)

    def alive(self, folder: Path) -> bool:
        return status.read(folder).state == "running"

    def stop(self, folder: Path) -> None: ...


class EndsAtOnce(Pretended):
    def start(self, folder: Path) -> None:
        Status(state="done", ended=1.0).write(folder)


def test_of_a_job_that_is_over_a_page_hears_without_a_look_at_everybodys(
    jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(jobs, launcher=EndsAtOnce())
    queue.submit(job(step("say", "x"), id="j"))
    queue.look()
    monkeypatch.setattr(queue, "_all", lambda: pytest.fail("every job of the server was looked at"))
    assert queue.ahead("j") == Ahead(0, 0)


def test_owners_take_turns_and_there_are_no_more_runners_than_there_may_be(
    jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked for three comes once, then the others, then again; and never has two runners."""
    monkeypatch.setenv("SEQSCOPE_JOBS", "2")
    launcher = Pretended()
    queue = Queue(jobs, launcher=launcher)
    for id in ("a1", "a2", "a3", "b1", "c1"):
        queue.submit(job(step("say", "x"), id=id, owner=id[0]))
    queue.look()
    assert launcher.started == ["a1", "b1"]
    assert [queue.ahead(id) for id in ("c1", "a2", "a3")] == [Ahead(0, 2), Ahead(1, 2), Ahead(2, 2)]
    for moment, (ended, begun) in enumerate((("a1", ["c1"]), ("b1", ["a2"]), ("c1", []), ("a2", ["a3"])), 1):
        before = len(launcher.started)
        Status(state="done", ended=time.time() + moment).write(jobs / ended)
        queue.look()
        assert launcher.started[before:] == begun
    queue.stop()


def test_a_short_job_waits_for_no_long_one(jobs: Path) -> None:
    launcher = Pretended()
    queue, nothing = Queue(jobs, runners=1, short=1, launcher=launcher), step("say", "x")
    for id, short in (("a1", False), ("b1", False), ("a2", True), ("b2", True)):
        queue.submit(job(nothing, id=id, owner=id[0], short=short))
    queue.look()
    assert launcher.started == ["a2", "a1"]  # of one owner, too
    assert (queue.ahead("b1"), queue.ahead("b2")) == (Ahead(0, 1), Ahead(0, 1))
    queue.stop()
    queue = Queue(jobs, runners=1, short=1, launcher=launcher)  # a server that starts again
    queue.look()
    assert launcher.started == ["a2", "a1"]
    Status(state="done", ended=1.0).write(jobs / "a2")
    queue.look()
    assert launcher.started == ["a2", "a1", "b2"]
    # what was to be short, and was not, waits with the long ones
    Status(state="queued", outlasted=True).write(jobs / "b2")
    queue.submit(job(nothing, id="c", owner="c", short=True))
    queue.look()
    assert launcher.started[3:] == ["c"] and queue.ahead("b2") == Ahead(1, 1)
    queue.stop()


def test_no_long_job_begins_in_a_dataset_where_a_short_one_waits(jobs: Path) -> None:
    launcher = Pretended()
    queue, place = Queue(jobs, runners=1, short=1, launcher=launcher), "../../dataset"
    queue.submit(job(step("say", "x"), id="other", owner="b", short=True))
    queue.look()
    queue.submit(job(step("say", "x"), id="long", owner="a", folder=place))
    queue.submit(job(step("say", "x"), id="short", owner="a", folder=place, short=True))
    queue.look()
    assert launcher.started == ["other"]
    for ended in ("other", "short"):
        Status(state="done", ended=1.0).write(jobs / ended)
        queue.look()
    assert launcher.started == ["other", "short", "long"]
    queue.stop()


def test_no_owner_and_no_network_fills_the_queue(jobs: Path) -> None:
    queue, nothing = Queue(jobs, waiting=6), step("say", "x")
    for number in range(3):
        queue.submit(job(nothing, id=f"a{number}", owner="a"), network="192.0.2.1")
    with pytest.raises(Full, match="3 of them yours"):
        queue.submit(job(nothing, id="a3", owner="a"), network="192.0.2.2")
    with pytest.raises(Full, match="Half of the places"):  # a key more costs nothing
        queue.submit(job(nothing, id="b", owner="b"), network="192.0.2.1")
    queue.submit(job(nothing, id="b", owner="b"), network="192.0.2.2")
    queue.submit(job(nothing, id="c", owner="c"))


def test_visitors_by_ipv4_are_not_one_network_where_a_proxy_writes_their_addresses_as_ipv6() -> None:
    assert [network(f"::ffff:192.0.2.{last}") for last in (1, 2)] == ["192.0.2.1", "192.0.2.2"]
    assert network("2001:db8::1") == network("2001:db8::2") == "2001:db8::/64"


def test_a_job_that_makes_too_much_is_ended(make: Make, jobs: Path, tmp_path: Path) -> None:
    """What was complete stays; what nobody can use goes."""
    dataset = tmp_path / "dataset"
    (dataset / "exports" / ".part").mkdir(parents=True)
    (dataset / "exports" / "done").write_bytes(b"x" * 1_000)
    queue = make(allowed=lambda one: 100_000)
    queue.submit(job(step("fill", "runs/model", run="runs/model", may_fail=True), folder="../../dataset"))
    end = over(queue, "job")
    assert end.state == "failed" and "would take more room than is left for you here" in end.message
    assert [path.name for path in (dataset / "exports").iterdir()] == ["done"]
    assert not (dataset / "runs" / "model").exists()


def test_what_others_took_meanwhile_of_what_was_left_a_job_may_not_take(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PERMIT", 0.1)
    (tmp_path / "dataset").mkdir()
    allowed = [10**9]
    queue = make(allowed=lambda one: allowed[0])
    queue.submit(job(step("count", tmp_path / "dataset" / "lines", 1_000, 0.05), folder="../../dataset"))
    wait(lambda: queue.status("job").state == "running")
    allowed[0] = 1
    assert "more room than is left for you" in over(queue, "job").message


def test_two_jobs_of_one_dataset_never_run_together(jobs: Path) -> None:
    launcher = Pretended()
    queue = Queue(jobs, runners=2, launcher=launcher)
    for id, folder in (("first", "../../dataset"), ("second", "../../dataset"), ("other", "")):
        queue.submit(job(step("say", "x"), id=id, folder=folder))
    queue.look()
    assert launcher.started == ["first", "other"]  # another dataset's does not wait
    for ended in ("other", "first"):
        assert "second" not in launcher.started
        Status(state="done", ended=1.0).write(jobs / ended)
        queue.look()
    assert launcher.started[2:] == ["second"]
    queue.stop()


def test_one_that_is_lost_again_and_again_is_not(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIES", 1)
    queue, out = make(), tmp_path / "out"
    queue.submit(job(step("count", out, 1000, 0.05, title="Train SASRec")))
    for turn in range(2):
        wait(lambda turn=turn: len(pids(out)) == turn + 1 and queue.status("job").pid)  # type: ignore[misc]
        os.kill(queue.status("job").pid or 0, signal.SIGKILL)
    end = over(queue, "job")
    assert end.state == "failed"
    assert end.message.startswith("Train SASRec:") and "lost 2 times" in end.message
    assert len(pids(out)) == 2


def test_one_that_comes_further_each_time_goes_on(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a platform starts its machine anew, again and again in hours."""
    monkeypatch.setattr(module, "TRIES", 1)
    queue, gates = make(), [tmp_path / f"gate{number}" for number in range(3)]
    queue.submit(job(*(step("count", tmp_path / f"out{number}", 2, 0, gate) for number, gate in enumerate(gates))))
    for number, gate in enumerate(gates):
        wait(lambda number=number: lines(tmp_path / f"out{number}") == ["1"] and queue.status("job").pid)  # type: ignore[misc]
        os.kill(queue.status("job").pid or 0, signal.SIGKILL)
        gate.touch()
    assert over(queue, "job").state == "done"


@contextlib.contextmanager
def killed_server(jobs: Path, root: Path) -> Iterator[None]:
    """A server that keeps a queue, and is killed when the block ends."""
    jobs.mkdir()
    server = subprocess.Popen([sys.executable, "-m", "tests.jobs.serve", str(jobs)], cwd=root)
    try:
        wait((jobs / "ready").exists)
        yield
    finally:
        server.kill()
        server.wait()


def test_a_server_that_is_killed_and_started_again(make: Make, jobs: Path, tmp_path: Path, root: Path) -> None:
    """The job goes on meanwhile, and the new server takes it for its own."""
    out = tmp_path / "out"
    with killed_server(jobs, root):
        Queue(jobs).submit(job(step("count", out, 10, 0, tmp_path / "gate"), id="first"))
        Queue(jobs).submit(job(step("count", tmp_path / "other", 1, 0), id="second"))
        wait(lambda: len(lines(out)) == 5)
    queue = make()
    queue.look()
    assert not gone(pids(out)[0])  # nobody minded
    (tmp_path / "gate").touch()
    assert over(queue, "first").tries == 0
    assert len(pids(out)) == 1 and lines(out) == LINES
    assert over(queue, "second").state == "done"
    first, second = queue.status("first"), queue.status("second")
    assert first.ended is not None and second.started is not None and first.ended <= second.started


def test_of_two_servers_one_alone_starts_runners(make: Make, tmp_path: Path) -> None:
    first, second = make(), make()
    for id in ("j0", "j1"):
        second.submit(job(step("alone", tmp_path, 0.3), id=id))
    assert [over(second, id).state for id in ("j0", "j1")] == ["done", "done"]
    first.stop()
    second.submit(job(step("say", "x"), id="later"))
    assert over(second, "later").state == "done"


def test_cancelled_or_failed_and_once_more(make: Make, tmp_path: Path) -> None:
    queue, blocked = make(), tmp_path / "in" / "the" / "way"
    queue.submit(job(step("count", tmp_path / "a", 1, 0), step("count", blocked / "out", 2, 0)))
    assert "No such file" in over(queue, "job").message
    with pytest.raises(SeqscopeError, match="There is no job in none"):
        queue.job("none")
    blocked.mkdir(parents=True)
    queue.retry("job")
    end: Status = wait(lambda: queue.status("job") if queue.status("job").state == "done" else None)
    assert end.message == "" and lines(blocked / "out") == ["1", "2"]
    assert len(pids(tmp_path / "a")) == 1  # what was done is not done again
    queue.submit(job(step("count", tmp_path / "long", 1000, 0.05), id="long"))
    wait(lambda: lines(tmp_path / "long"))
    with pytest.raises(SeqscopeError, match="waiting or running already"):
        queue.retry("long")
    queue.cancel("long")
    assert queue.cancelling("long") or queue.status("long").over
    assert over(queue, "long").state == "cancelled" and not queue.cancelling("long")
    assert gone(pids(tmp_path / "long")[0])
    queue.cancel("long")  # nothing
    assert queue.status("long").state == "cancelled"
    queue.retry("long")
    assert queue.status("long").state == "queued" and not queue.cancelling("long")
    queue.cancel("long")
    over(queue, "long")


def test_no_more_jobs_than_may_wait(jobs: Path) -> None:
    queue, nothing = Queue(jobs, waiting=2, launcher=Pretended()), step("say", "x")
    for id in ("a", "b"):
        queue.submit(job(nothing, id=id))
    with pytest.raises(Full, match="No more than 2 jobs"):
        queue.submit(job(nothing, id="c"))
    assert not (queue.root / "c").exists() and not list(queue.root.glob(".c*"))
    queue.cancel("a")
    queue.look()
    assert queue.status("a").state == "cancelled"
    queue.submit(job(nothing, id="c"))
    with pytest.raises(Full):
        queue.retry("a")
    queue.stop()


def test_trying_again_what_just_went_is_refused_in_words(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(jobs, launcher=EndsAtOnce())
    queue.submit(job(step("say", "x")))
    queue.look()
    check = queue._check_room

    def goes_after(job: Job, network: str) -> None:
        check(job, network)
        shutil.rmtree(jobs / job.id)  # its owner deletes it in another tab

    monkeypatch.setattr(queue, "_check_room", goes_after)
    with pytest.raises(SeqscopeError, match="No such file"):
        queue.retry("job")
    with pytest.raises(SeqscopeError, match="There is no job in job"):
        queue.retry("job")
    queue.stop()


def test_one_that_cannot_be_started_says_so(make: Make, jobs: Path) -> None:
    class Broken(Pretended):
        def start(self, folder: Path) -> None:
            raise OSError(11, "Resource temporarily unavailable")

    queue = make(launcher=Broken())
    queue.submit(job(step("say", "x")))
    assert "No process could be started for it" in over(queue, "job").message


def test_what_lies_about_disturbs_nobody(make: Make, jobs: Path) -> None:
    jobs.mkdir()
    (jobs / "empty").mkdir()
    (jobs / "broken").mkdir()
    (jobs / "broken" / "job.json").write_text("{")
    (jobs / "file").write_text("")
    (jobs / "timeless").mkdir()
    job(step("say", "x"), id="timeless").model_copy(update={"created": datetime(2026, 1, 1)}).write(jobs / "timeless")
    queue = make()
    queue.submit(job(step("say", "x")))
    assert over(queue, "job").state == "done"
    for id in ("../job", "", ".", "JOB", "a/b"):
        with pytest.raises(ValueError):
            queue.status(id)
    with pytest.raises(SeqscopeError, match="There is a job job already"):
        queue.submit(job(step("say", "x")))


def test_a_job_whose_status_cannot_be_written_keeps_nobody_else_waiting(
    jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Pretended()
    monkeypatch.setattr(launcher, "alive", lambda folder: folder.name in launcher.started)
    queue, write = Queue(jobs, launcher=launcher), Status.write
    for id in ("lost", "next"):
        queue.submit(job(step("say", "x"), id=id, owner=id))
    Status(state="running").write(jobs / "lost")  # and its runner died

    def refuse(now: Status, folder: Path, **rest: bool) -> None:
        if folder.name == "lost":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        write(now, folder, **rest)

    monkeypatch.setattr(Status, "write", refuse)
    queue.look()
    assert launcher.started == ["next"] and queue.status("lost").state == "running"
    queue.stop()


def test_a_job_that_ends_while_no_file_can_be_opened_is_not_begun_again(
    jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Pretended()
    queue = Queue(jobs, launcher=launcher)
    queue.submit(job(step("say", "x")))
    queue.look()
    Status(state="done", ended=1.0).write(jobs / "job")

    def refuse(path: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        for ask in (queue.look, lambda: queue.job("job")):  # neither says that it is not there, or damaged
            with pytest.raises(OSError, match="Too many open files"):
                ask()
    queue.look()
    assert launcher.started == ["job"] and queue.status("job").state == "done"
    queue.stop()


def test_who_is_told_may_fail(jobs: Path) -> None:
    told: list[str] = []

    def fails_once(one: Job, now: Status) -> None:
        told.append(now.state)
        if len(told) == 1:
            raise RuntimeError("the store is busy")

    queue = Queue(jobs, on_change=fails_once, launcher=EndsAtOnce())
    queue.submit(job(step("say", "x")))
    for _ in range(3):
        queue.look()
    assert told == ["done", "done"]  # once more, and no more
    shutil.rmtree(jobs / "job")
    queue.look()
    assert not queue._known  # nor is anything kept of what is gone
    queue.stop()


def test_whoever_is_told_hears_of_a_job_that_was_cancelled_twice(jobs: Path) -> None:
    states: list[str] = []
    queue = Queue(jobs, on_change=lambda one, now: states.append(now.state))
    queue.submit(job(step("say", "x")))
    for again in (False, True):
        if again:
            queue.retry("job")
        queue.cancel("job")
        queue.look()
    assert states == ["cancelled", "cancelled"]
    queue.stop()


def test_a_number_that_is_none(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_JOBS", "0")
    with pytest.raises(SeqscopeError, match="SEQSCOPE_JOBS is"):
        Queue(jobs)
