"""Killed at any moment and started again, a training ends as if nothing had happened: to the last bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.training.run import open_run
from tests.training.killed import KILLS
from tests.training.tiny import same

Killed = tuple[Path, dict[str, list[tuple[int, int]]]]
"""The folder of the runs, and per model the (epoch, step) that each kill left in the checkpoint."""


@pytest.fixture(scope="module")
def killed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.training.killed", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    kills = json.loads(done.stdout.splitlines()[-1])
    assert any(step > 0 for states in kills.values() for _, step in states), "no kill came within an epoch"
    return folder, kills


@pytest.mark.timeout(900)  # many starts: on a busy machine they wait for each other
@pytest.mark.parametrize("name", KILLS)
def test_a_killed_training_ends_as_one_that_was_not(killed: Killed, name: str) -> None:
    base, kills = killed
    assert kills[name], "no kill came before the end"
    whole, cut = base / f"whole-{name}", base / f"killed-{name}"
    for file in ("best.safetensors", "checkpoint.safetensors"):
        assert same(whole / file, cut / file)
    records = [json.loads((folder / "run.json").read_text("utf-8")) for folder in (whole, cut)]
    for key in ("epochs", "best_epoch", "valid_ndcg", "fingerprint", "recipe"):
        assert records[0][key] == records[1][key], key
    curves = [[{k: v for k, v in entry.items() if k != "seconds"} for entry in record["curve"]] for record in records]
    assert curves[0] == curves[1]
    open_run(cut)
