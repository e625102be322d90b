"""Stopped at any moment and started again, a training ends as if nothing had happened: to the last bit."""

import json
from pathlib import Path

import pytest

from engine.data.dataset import Dataset
from engine.training import checkpoint
from engine.training.run import open_run, train
from tests.training.tiny import cycles, recipe, same, stopped, write_log

STOPS = {"sasrec": (4, 9), "mult-vae": (7,), "recformer": (3,)}
"""After how many steps of the process each is stopped. With dropout and an average of the parameters, with a term that grows by
the step, with rows encoded anew every epoch."""
SETTINGS = {"epochs": 3, "batch_size": 8, "checkpoint_seconds": 0.0, "validate_every": 2}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_log(tmp_path_factory.mktemp("few") / "data", cycles(40, 30), 30)


@pytest.mark.parametrize("name", STOPS)
def test_a_stopped_training_ends_as_one_that_was_not(few: Dataset, tmp_path: Path, name: str) -> None:
    settings = recipe(name, optimiser={"average": 0.9} if name == "sasrec" else {}, training=SETTINGS)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(settings, few, whole, device="cpu")
    within = 0
    for left in STOPS[name]:
        steps = iter([False] * left)
        with stopped(lambda _, steps=steps: next(steps, True)):
            train(settings, few, cut, device="cpu")
        within += checkpoint.read_state(cut / "checkpoint.safetensors").step > 0
    assert within, "no stop came within an epoch"
    train(settings, few, cut, device="cpu")
    for file in ("best.safetensors", "checkpoint.safetensors"):
        assert same(whole / file, cut / file)
    records = [json.loads((folder / "run.json").read_text("utf-8")) for folder in (whole, cut)]
    for key in ("epochs", "best_epoch", "valid_ndcg", "fingerprint", "recipe"):
        assert records[0][key] == records[1][key], key
    curves = [[{k: v for k, v in entry.items() if k != "seconds"} for entry in record["curve"]] for record in records]
    assert curves[0] == curves[1]
    open_run(cut)
