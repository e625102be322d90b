"""How long would that take?: one trial at a time, in turns, the same question once, and none that nobody waits for."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.analysis import cache
from app.jobs import estimate as module
from app.jobs.estimate import JobEstimate, estimate
from engine import fork_server
from engine.errors import SeqscopeError
from tests.jobs.conftest import gone
from tests.jobs.test_kinds import ESTIMATE
from tests.waiting import wait

Ask = Callable[..., "Somebody"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prepared dataset, on which a trial ends when there is a file named as its recipe. Each says its process, and how it
    yields."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dataset.json").write_text(json.dumps({"fingerprint": "ab"}))
    script = tmp_path / "trial.py"
    script.write_text(
        "import os, sys, time\nmodel = sys.argv[3]\nopen('trials', 'a').write(f'{model} {os.getpid()}\\n')\n"
        "while not os.path.exists(model): time.sleep(0.02)\n"
        "oom = '/proc/self/oom_score_adj'\n"
        "oom = open(oom).read().strip() if os.path.exists(oom) else '500'\n"  # Linux alone has it
        "open('yields', 'w').write(str((os.nice(0), oom)))\n"
        "if model == 'broken': sys.exit('seqscope: data: It has no words.')\n"
        f"print({ESTIMATE.model_dump_json()!r})\n"
    )
    real = subprocess.Popen
    monkeypatch.setattr(
        module.subprocess, "Popen", lambda command, **more: real([sys.executable, str(script), *command[2:]], **more)
    )
    monkeypatch.setattr(module, "LEFT", 1.0)
    monkeypatch.setattr(fork_server, "ROOM", 1 << 60)  # nothing is forked
    cache.forget()
    return tmp_path


class Somebody:
    """On a page of their own."""

    def __init__(self, folder: Path, model: str, owner: str) -> None:
        self.heard: list[str] = []
        self.answer: JobEstimate | str | None = None
        self.leaves = threading.Event()
        self.thread = threading.Thread(target=self._ask, args=(folder, model, owner))
        self.thread.start()

    def _ask(self, folder: Path, model: str, owner: str) -> None:
        try:
            self.answer = estimate(folder, model, owner=owner, on_wait=self._wait)
        except (SeqscopeError, KeyError) as error:
            self.answer = str(error)

    def _wait(self, words: str) -> None:
        self.heard.append(words)
        if self.leaves.is_set():
            raise KeyError("the page was drawn anew")


@pytest.fixture
def ask(folder: Path) -> Iterator[Ask]:
    """ask(model, owner) asks in a thread of its own."""
    everybody: list[Somebody] = []

    def one(model: str, owner: str) -> Somebody:
        everybody.append(Somebody(folder, model, owner))
        return everybody[-1]

    yield one
    for somebody in everybody:
        somebody.leaves.set()
        somebody.thread.join(30)


def trials(folder: Path) -> list[list[str]]:
    file = folder / "trials"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def test_one_at_a_time_and_the_same_question_once(folder: Path, ask: Ask) -> None:
    anna, again = ask("sasrec", "anna"), ask("sasrec", "anna")
    wait(lambda: trials(folder))
    ben = ask("tiger", "ben")
    wait(lambda: any("1 trial of others" in words for words in ben.heard))
    assert any("Trying" in words for words in anna.heard) and len(trials(folder)) == 1
    (folder / "sasrec").touch()
    wait(lambda: anna.answer and again.answer)
    assert anna.answer == again.answer == ESTIMATE
    nice, oom = (folder / "yields").read_text().strip("()").split(", ")
    assert int(nice) > 0 and oom == "'500'"
    (folder / "tiger").touch()
    wait(lambda: ben.answer)
    assert [model for model, _ in trials(folder)] == ["sasrec", "tiger"]
    assert estimate(folder, "sasrec", owner="anna") == ESTIMATE and len(trials(folder)) == 2  # kept


def test_a_page_that_is_drawn_anew_finds_it_again_and_one_that_is_left_ends_it(folder: Path, ask: Ask) -> None:
    first = ask("sasrec", "anna")
    wait(lambda: trials(folder))
    first.leaves.set()
    first.thread.join(30)
    second = ask("sasrec", "anna")
    wait(lambda: second.heard)
    assert len(trials(folder)) == 1
    second.leaves.set()
    ((_, pid),) = trials(folder)
    wait(lambda: gone(int(pid)))
    (folder / "sasrec").touch()
    assert estimate(folder, "sasrec", owner="anna") == ESTIMATE  # asked once more


def test_why_it_cannot_be_trained(folder: Path) -> None:
    (folder / "broken").touch()
    with pytest.raises(SeqscopeError, match=r"^It has no words\.$"):
        estimate(folder, "broken")
    with pytest.raises(SeqscopeError, match="not prepared yet"):
        estimate(folder / "other", "sasrec")


def test_a_job_forks_its_later_commands_where_there_is_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    free = fork_server.ROOM - 1
    monkeypatch.setattr(fork_server, "memory", lambda: (free, free))
    assert ESTIMATE.of_job() == ESTIMATE
    free += 1
    job = ESTIMATE.of_job()
    assert ESTIMATE.start / 3 < job.start < ESTIMATE.start and job.export < ESTIMATE.export
    assert job.seconds == pytest.approx(job.start + job.train + job.validation + job.evaluate + job.export)
