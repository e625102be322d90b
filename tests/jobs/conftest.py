import contextlib
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.jobs import status
from app.jobs.runner import LOG, PROGRESS, Failed, Runner
from app.jobs.spec import Job, JobStep
from app.jobs.status import Status
from engine.cli import main

PROGRAM = "tests.jobs.work"


def step(*words: object, title: str = "", **rest: Any) -> JobStep:
    return JobStep(title=title or f"Do {words[0]}", program=PROGRAM, words=tuple(map(str, words)), **rest)


def job(*steps: JobStep, id: str = "job", **rest: Any) -> Job:
    return Job(id=id, kind="batch", title="A job", created=datetime.now(UTC), steps=steps, **rest)


def gone(pid: int) -> bool:
    """Ended, or nobody's child any more but for its name."""
    try:
        os.kill(pid, 0)
        if not Path("/proc/self").exists():  # elsewhere than on Linux nobody leaves names behind
            return False
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "jobs" / "job"
    path.mkdir(parents=True)
    return path


@pytest.fixture(params=["app.jobs.runner", "tests.jobs.forking"])
def begin(folder: Path, root: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """begin(job) starts a runner of it, whose commands are processes of their own or forked; begin() another one of the same."""
    children = []

    def start(wanted: Job | None = None) -> subprocess.Popen[bytes]:
        if wanted is not None:
            wanted.write(folder)
        command = [sys.executable, "-m", request.param, str(folder)]
        children.append(subprocess.Popen(command, cwd=root, start_new_session=True))
        return children[-1]

    yield start
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


@pytest.fixture
def now(folder: Path) -> Callable[[], Status]:
    return lambda: status.read(folder)


@pytest.fixture
def carry_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Job], Status]]:
    """carry_out(job): by its runner, its commands in this process, which has imported torch."""
    monkeypatch.setattr(Runner, "_command", _here)
    monkeypatch.setattr("engine.fork_server.COMMANDS", 1_000)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(job: Job) -> Status:
        folder = tmp_path / "jobs" / job.id
        folder.mkdir(parents=True, exist_ok=True)
        job.write(folder)
        runner = Runner(folder)
        try:
            runner.run()
        except Failed as error:
            runner.fail(str(error))
        return status.read(folder)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def _here(runner: Runner, number: int, step: JobStep) -> str:
    """In place of Runner._command."""
    with (runner.folder / LOG).open("a") as log, contextlib.chdir(runner.place):
        from_here = log.tell()
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [step.program, *step.words])
            patch.setenv("SEQSCOPE_PROGRESS", str(runner.folder / PROGRESS))
            code = main(step.words) if step.program == "engine" else importlib.import_module(step.program).main()
    return "" if code == 0 else runner._why(code, from_here)
