"""How long a training would take: the engine tries some steps of it in a process of its own (`seqscope train --estimate`)."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from app.jobs.fresh import fingerprint
from app.jobs.runner import environment
from app.kept import until_deleted
from engine.errors import SeqscopeError

TIMEOUT = 300.0
"""Seconds after which nobody waits any more."""


class Estimate(BaseModel):
    """Seconds, as measured and modelled by the engine; see engine/training/estimate.py."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    recipe: str
    device: str
    epochs: int
    done: int
    steps: int
    step: float
    start: float
    train: float
    validation: float = Field(validation_alias=AliasChoices("validation", "validate"))
    evaluate: float
    export: float
    at_most: bool
    seconds: float


def estimate(folder: Path, model: str, settings: Mapping[str, object] | None = None) -> Estimate:
    """For the prepared dataset `folder`/data. Kept as long as neither dataset nor settings change.

    Raises SeqscopeError where it cannot be trained, or where that cannot be said in time.
    """
    state = fingerprint(folder / "data")
    if state is None:
        raise SeqscopeError("The dataset is not prepared yet, so nothing can be tried on it.")
    return _estimate(str(folder), state, model, tuple(overrides(settings or {})))


def overrides(settings: Mapping[str, object]) -> list[str]:
    """--set training.epochs=20 …"""
    words = []
    for key, value in settings.items():
        words += ["--set", f"{key}={json.dumps(value) if not isinstance(value, str) else value}"]
    return words


@until_deleted
@functools.lru_cache(maxsize=256)
def _estimate(folder: str, state: str, model: str, words: Sequence[str]) -> Estimate:
    command = [sys.executable, "-m", "engine", "train", model, "--dataset", "data", "--out", f"runs/{model}"]
    try:
        done = subprocess.run(
            [*command, *words, "--estimate"], cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SeqscopeError(f"How long {model} takes could not be found out within {TIMEOUT:.0f} s.") from None
    except OSError as error:
        raise SeqscopeError(f"No process could be started to try {model} ({error.strerror or error}).") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = next(
            (line for line in reversed(lines) if line.startswith("seqscope: ")), (lines or ["no reason given"])[-1]
        )
        raise SeqscopeError(said.removeprefix("seqscope: "))
    try:
        return Estimate.model_validate_json(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValidationError):
        raise SeqscopeError(f"How long {model} takes was not said in a form that is known here.") from None
