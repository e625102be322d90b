"""Interrupted within an epoch and taken up again, a training ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models import Recommender
from engine.training.run import train
from tests.generation.learn import ITEMS, circle, recipe, store
from tests.training.tiny import cycles, same, write_log


def test_an_interruption_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = write_log(tmp_path / "data", cycles(40, ITEMS), ITEMS)
    store(circle(), tmp_path / "runs" / "codes")
    training = {"epochs": 3, "batch_size": 16, "validate_every": 1, "checkpoint_seconds": 0.0}
    chosen = recipe(
        "encoder-decoder", model={"dropout": 0.1, "user_tokens": 4}, objective={"per_user": 2}, training=training
    )
    whole, cut = tmp_path / "runs" / "whole", tmp_path / "runs" / "cut"
    train(chosen, dataset, whole, device="cpu")
    for steps in (2, 4):
        left = steps

        def stop(model: Recommender) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Recommender, "constrain", stop)
            with pytest.raises(KeyboardInterrupt):
                train(chosen, dataset, cut, device="cpu")
    train(chosen, dataset, cut, device="cpu")
    for file in ("best.safetensors", "checkpoint.safetensors"):
        assert same(whole / file, cut / file)
