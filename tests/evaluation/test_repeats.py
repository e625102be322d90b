"""Logs whose repeats count: nobody's history leaves the candidates, anywhere, and names say so."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from engine.data.dataset import Dataset
from engine.errors import UsageError
from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.ranks import COUNT, frozen
from engine.models.popularity import Popularity, PopularityConfig
from engine.training.run import validation
from tests.training.tiny import mixed, recipe, write_log


def popularity(dataset: Dataset) -> Popularity:
    model = Popularity(PopularityConfig(), dataset.num_items, dataset.num_users, torch.Generator())
    log = dataset.training
    model.fit(torch.from_numpy(log.values.astype(np.int64)), torch.from_numpy(log.offsets))
    return model


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Repeats count in it: of 78 held-out items some are in their histories."""
    return write_log(tmp_path_factory.mktemp("repeats") / "data", mixed(), 150, repeats="count")


def by_hand(scores: np.ndarray, target: int, others: np.ndarray) -> float:
    rivals = scores[others[others != target]]
    return float(1 + (rivals > scores[target]).sum() + (rivals == scores[target]).sum() / 2)


def ranks(folder: Path, protocol: str) -> np.ndarray:
    table = pq.read_table(folder / "ranks.parquet")
    return table["rank"].to_numpy()[np.array(table["protocol"].to_pylist()) == protocol]


def test_whoever_returns_gets_no_free_ride(tmp_path: Path) -> None:
    """Everybody takes the same ten items in turn, now and then something else, and comes back to one of the ten."""
    rng = np.random.default_rng(0)
    log = [[*rng.permutation(10), *rng.integers(10, 120, 4), *rng.integers(0, 10, 2)] for _ in range(200)]
    before = write_log(tmp_path / "before", log, 120)
    now = write_log(tmp_path / "now", log, 120, repeats="count")
    assert evaluate(popularity(before), before, tmp_path)["full"]["HR@1"] == 1.0  # no rival is a candidate
    found = evaluate(popularity(now), now, tmp_path)
    assert set(found) == {"full, repeats"} and found["full, repeats"]["HR@1"] < 0.2


def test_ranks_exposure_and_parts_of_a_naive_loop(counted: Dataset, tmp_path: Path) -> None:
    found = evaluate(popularity(counted), counted, tmp_path, protocols=["u100"])
    cases, scores = counted.cases("test"), counted.popularity
    negatives = frozen(counted, "test", "u100")
    full = [by_hand(scores, target, np.arange(150)) for target in cases.targets]
    sampled = [by_hand(scores, target, negatives[row]) for row, target in enumerate(cases.targets)]
    assert ranks(tmp_path, "full, repeats").tolist() == full
    assert ranks(tmp_path, "u100, repeats").tolist() == sampled

    again = np.array([target in cases.history[row] for row, target in enumerate(cases.targets)])
    assert 0 < again.sum() < len(again)
    for name, values in (("full, repeats", np.array(full)), ("u100, repeats", np.array(sampled))):
        assert found[f"{name}, repeated"] == pytest.approx(metrics.accuracy(values[again]))
        assert found[f"{name}, new"] == pytest.approx(metrics.accuracy(values[~again]))

    table = pq.read_table(tmp_path / "exposure.parquet").to_pylist()
    (first,) = (row for row in table if (row["protocol"], row["k"]) == ("full, repeats", 1))
    assert scores[first["item"]] == scores.max() and first["count"] == len(cases)  # of whom some have it already


def test_negatives_may_be_of_the_history_and_are_never_the_target(counted: Dataset) -> None:
    cases, drawn = counted.cases("test"), frozen(counted, "test", "u100")
    assert all(len(set(row)) == COUNT for row in drawn.tolist())
    assert not (drawn == cases.targets[:, None]).any()
    assert any(set(drawn[row]) & set(cases.history[row].tolist()) for row in range(len(cases)))


@pytest.mark.parametrize("protocol", ["full", "u100"])
def test_validation_keeps_the_history_too(counted: Dataset, protocol: str) -> None:
    model, cases = popularity(counted), counted.cases("valid")
    check = validation(recipe("sasrec", training={"valid_protocol": protocol}), counted, model)
    others = frozen(counted, "valid", "u100") if protocol == "u100" else np.tile(np.arange(150), (len(cases), 1))
    expected = [by_hand(counted.popularity, target, others[row]) for row, target in enumerate(cases.targets)]
    assert check(model) == pytest.approx(metrics.ndcg(np.array(expected), 10).mean())


def test_a_history_that_is_kept_anyway_needs_no_asking(counted: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="repeats count"):
        evaluate(popularity(counted), counted, tmp_path, keep_history=True)
