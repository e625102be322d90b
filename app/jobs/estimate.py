"""How long a training would take: the engine tries some steps of it in a process of its own (`seqscope train --estimate`).

    estimate(folder, "sasrec", {"training.epochs": 3}, owner=owner, on_wait=show)

One process at a time on this server, and owners take turns. The same question is tried once, whoever asks; it goes on as long as
somebody waits for it, so that a page that is drawn anew finds it again, and ends when nobody does any more.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from app.analysis.cache import cached
from app.jobs.fresh import fingerprint
from app.jobs.runner import environment
from app.jobs.turns import Ahead, Turns
from engine import fork_server
from engine.errors import SeqscopeError
from engine.machine import yields

log = logging.getLogger("seqscope.jobs")
TIMEOUT = 300.0
"""Seconds after which nobody waits any more."""
LEFT = 5.0
"""Seconds for which a question is tried though nobody waits: a page that is drawn anew comes back at once."""
NICE = 5
_TICK = 0.25
_turns = Turns(estimates=lambda: 1)
_lock = threading.Lock()
_questions: dict[tuple[str, ...], _Question] = {}


class JobEstimate(BaseModel):
    """Seconds, as measured and modelled by the engine; see engine/training/estimate.py."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    device: str
    epochs: int
    steps: int
    start: float
    train: float
    validation: float = Field(validation_alias=AliasChoices("validation", "validate"))
    evaluate: float
    export: float
    at_most: bool
    seconds: float

    def of_job(self) -> JobEstimate:
        """As a job does it, where the engine says what three commands take: the first begins by itself, the others are forked."""
        if not fork_server.is_worth_it(3):
            return self
        start, export = self.start * (1 + 2 * fork_server.SHARE) / 3, self.export * fork_server.SHARE
        less = self.start - start + self.export - export
        return self.model_copy(update={"start": start, "export": export, "seconds": self.seconds - less})


def estimate(
    folder: Path,
    model: str,
    settings: Mapping[str, object] | None = None,
    *,
    owner: str = "",
    on_wait: Callable[[str], None] | None = None,
) -> JobEstimate:
    """For the prepared dataset `folder`/data. Kept as long as neither dataset nor settings change.

    owner: whose turn it is; on_wait: is told again and again, in this thread, what is waited for; what it raises ends the wait.

    Raises SeqscopeError where it cannot be trained, or where that cannot be said in time.
    """
    state = fingerprint(folder / "data")
    if state is None:
        raise SeqscopeError("The dataset is not prepared yet, so nothing can be tried on it.")
    key = (str(folder), state, model, *overrides(settings or {}))
    while True:
        with _lock:
            if key not in _questions:
                _questions[key] = _Question(key, owner)
                threading.Thread(target=_questions[key].answer, name="seqscope-estimate", daemon=True).start()
            question = _questions[key]
            question.waited = time.monotonic()
        while not question.over.wait(_TICK):
            question.waited = time.monotonic()
            if on_wait is not None:
                on_wait(question.words)
        if question.estimate is not None:
            return question.estimate
        if question.fault:
            raise SeqscopeError(question.fault)
        # else it was given up in the moment in which this one came


def overrides(settings: Mapping[str, object]) -> list[str]:
    """--set training.epochs=20 …"""
    words = []
    for key, value in settings.items():
        words += ["--set", f"{key}={json.dumps(value) if not isinstance(value, str) else value}"]
    return words


class _Left(Exception):
    """Nobody waits for it any more."""


class _Question:
    """An estimate that is asked for, by whomever."""

    def __init__(self, key: tuple[str, ...], owner: str) -> None:
        self.key, self._owner = key, owner
        self.waited = time.monotonic()
        """When somebody last waited for it."""
        self.words = ""
        """What is waited for."""
        self.over = threading.Event()
        self.estimate: JobEstimate | None = None
        self.fault = ""

    def answer(self) -> None:
        try:
            self.estimate = _estimate(self)
        except _Left:
            pass
        except SeqscopeError as error:
            self.fault = str(error)
        except Exception:  # those who wait would hear nothing otherwise
            log.exception("an estimate")
            self.fault = "It could not be tried."
        finally:
            with _lock:
                _questions.pop(self.key)
            self.over.set()

    def in_turn(self) -> JobEstimate:
        with _turns.place(self._owner, "estimates", self._wait):
            self.words = "Trying some steps on this machine"
            folder, _, model, *words = self.key
            return _tried(Path(folder), model, words, self._look)

    def _wait(self, ahead: Ahead) -> None:
        self.words = ahead.words("trial", "trials")
        self._look()

    def _look(self) -> None:
        if time.monotonic() - self.waited > LEFT:
            raise _Left


@cached(256, by=lambda question: question.key)
def _estimate(question: _Question) -> JobEstimate:
    return question.in_turn()


def _tried(folder: Path, model: str, words: Sequence[str], look: Callable[[], None]) -> JobEstimate:
    """look: is called again and again; what it raises ends the process."""
    command = [sys.executable, "-m", "engine", "train", model, "--dataset", "data", "--out", f"runs/{model}"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                [*command, *words, "--estimate"], cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, process_group=0,
            )  # fmt: skip
        except OSError as error:
            raise SeqscopeError(f"No process could be started to try {model} ({error.strerror or error}).") from None
        yields(NICE, pid=child.pid)
        try:
            until = time.monotonic() + TIMEOUT
            while child.poll() is None:
                look()
                if time.monotonic() > until:
                    raise SeqscopeError(f"How long {model} takes could not be found out within {TIMEOUT:.0f} s.")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_TICK)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS, where all have ended
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output, errors = (_lines(file) for file in (out, err))
    if child.returncode:
        reason = next((line for line in reversed(errors) if line.startswith("seqscope: ")), "")
        reason = reason.removeprefix("seqscope: ").removeprefix("data: ")  # each dataset's folder is called so
        raise SeqscopeError(reason or (errors or ["no reason given"])[-1])
    try:
        return JobEstimate.model_validate_json(output[-1]).of_job()
    except (IndexError, ValidationError):
        raise SeqscopeError(f"How long {model} takes was not said in a form that is known here.") from None


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
