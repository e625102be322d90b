"""A dataset that holds nothing out for validation: training runs its epochs, keeps the last, and claims no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.data.dataset import Dataset
from engine.data.split import SplitOptions
from engine.errors import SeqscopeError
from engine.training import checkpoint
from engine.training.run import open_run, train
from tests.training.tiny import clusters, recipe, write_log

SETTINGS = {"epochs": 3, "patience": 1, "validate_every": 1}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    split = SplitOptions("users", held_out_users=(0, 30))
    return write_log(tmp_path_factory.mktemp("unvalidated") / "data", clusters(150), 60, split=split)


def test_the_last_epoch_is_kept(dataset: Dataset, tmp_path: Path) -> None:
    record = train(recipe("sasrec", training=SETTINGS), dataset, tmp_path / "run", device="cpu")
    assert (record["epochs"], record["best_epoch"]) == (3, 3)
    assert record["valid_ndcg"] is None and record["improving"] is None
    assert [entry["valid_ndcg"] for entry in record["curve"]] == [None] * 3
    last, _, _, _ = open_run(tmp_path / "run", dataset.path)
    best = {name: value.clone() for name, value in last.state_dict().items()}
    checkpoint.load(tmp_path / "run" / "checkpoint.safetensors", last, None)
    assert all(bool((best[name] == value).all()) for name, value in last.state_dict().items())


def test_an_order_that_is_not_there_is_not_learned_from(tmp_path: Path) -> None:
    unordered = write_log(tmp_path / "data", clusters(50), 60, split=SplitOptions("users"), time_unit="none")
    with pytest.raises(SeqscopeError, match=r"markov learns from the order.*popularity"):
        train(recipe("markov"), unordered, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run" / "run.json").exists()
