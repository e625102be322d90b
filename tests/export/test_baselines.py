"""The models that need no training, in one command: one that cannot be fitted does not keep the others."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine import cards
from engine.cli import main
from engine.console import PROGRESS
from engine.errors import SeqscopeError
from engine.models.markov import Markov
from engine.models.popularity import Popularity
from engine.runtime import Zoo


@pytest.fixture
def make(dataset: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(PROGRESS, str(tmp_path / "progress.json"))
    monkeypatch.setattr("engine.console._warnings", [])
    words = ["--dataset", str(dataset.path), "--runs", str(tmp_path / "runs"), "--to", str(tmp_path / "exports")]
    return lambda *names: main(["baselines", *names, *words])


def refuse(*args: Any) -> None:
    raise SeqscopeError("The catalogue is too large for it.")


def full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "best.safetensors")


def test_one_that_cannot_be_fitted_says_why(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Markov, "fit", refuse)
    assert make() == 0
    zoo = Zoo.open(tmp_path / "exports")
    assert not zoo.refused and set(zoo.bundles) == set(cards.at_once(cards.declarations().models)) - {"markov"}
    assert all(bundle.manifest.metrics["full"]["NDCG@10"] >= 0 for bundle in zoo.bundles.values())
    reason = "Markov chain: The catalogue is too large for it."
    assert reason in capsys.readouterr().err
    assert json.loads((tmp_path / "progress.json").read_text())["warnings"] == [reason]
    monkeypatch.setattr(Popularity, "fit", refuse)
    assert make("popularity", "markov") == 1
    monkeypatch.setattr(Popularity, "fit", full)
    assert make("popularity", "markov") == 1
    assert "seqscope: Popularity: best.safetensors: No space left on device\n" in capsys.readouterr().err
    assert set(Zoo.open(tmp_path / "exports").bundles) == set(zoo.bundles)


def test_a_run_of_another_recipe_is_replaced_where_that_is_said(
    make: Any, dataset: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ["--set", "training.seed=2", "--out", str(tmp_path / "runs" / "popularity")]
    assert main(["train", "popularity", "--dataset", str(dataset.path), *other]) == 0
    assert make("popularity") == 1 and "--restart to replace it" in capsys.readouterr().err
    assert make("popularity", "--restart-other") == 0


def test_one_that_learns_step_by_step_is_none(make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make("popularity", "sasrec") == 2
    assert "seqscope train sasrec" in capsys.readouterr().err and not (tmp_path / "runs").exists()
