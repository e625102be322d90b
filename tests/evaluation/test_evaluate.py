"""Evaluation of a run: the files it leaves, and what they mean."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.data.dataset import Dataset
from engine.evaluation import metrics
from engine.evaluation.evaluate import evaluate
from engine.evaluation.metrics import CUTOFFS
from engine.evaluation.ranks import full_ranks
from engine.training.run import open_run

PROTOCOLS = ("full", "u100", "p100")


@pytest.mark.parametrize(("name", "suffixes"), [("sasrec", [""]), ("attrec", ["", "+user"])])  # the latter knows people
def test_what_is_written(dataset: Dataset, run_of: Callable[[str], Path], name: str, suffixes: list[str]) -> None:
    folder = run_of(name)
    found = json.loads((folder / "metrics.json").read_text("utf-8"))
    table, exposure = (pq.read_table(folder / file) for file in ("ranks.parquet", "exposure.parquet"))
    assert table.column_names == ["user", "target", "history_length", "protocol", "rank"]
    expected = {protocol + suffix for protocol in PROTOCOLS for suffix in suffixes}
    assert set(found) == set(table["protocol"].to_pylist()) == expected
    cases = dataset.cases("test")
    for protocol in expected:
        part = table.filter(np.array(table["protocol"].to_pylist()) == protocol)
        assert part["user"].to_pylist() == cases.users.tolist()
        assert part["target"].to_pylist() == cases.targets.tolist()
        assert part["history_length"].to_pylist() == cases.history.lengths.tolist()
        ranks = part["rank"].to_numpy()
        assert ranks.min() >= 1
        assert ranks.max() <= (150 if protocol.startswith("full") else 101)
        for key, value in metrics.accuracy(ranks.astype(np.float64)).items():
            assert found[protocol][key] == pytest.approx(value)
    full = ["full" + suffix for suffix in suffixes]
    assert set(exposure["protocol"].to_pylist()) == set(full)
    for protocol in full:
        for k in CUTOFFS:
            counts = np.zeros(150, int)
            for row in exposure.to_pylist():
                if (row["protocol"], row["k"]) == (protocol, k):
                    counts[row["item"]] += row["count"]
            assert counts.sum() == k * len(cases)
            assert found[protocol][f"coverage@{k}"] == pytest.approx((counts > 0).mean())
            assert found[protocol][f"Gini@{k}"] == pytest.approx(metrics.gini(counts))
            assert found[protocol][f"novelty@{k}"] == pytest.approx(metrics.novelty(counts, dataset.popularity))
    assert not any(key.startswith("coverage") for key in found["u100"])


def test_vectors_of_people_and_fold_in_are_told_apart(dataset: Dataset, run_of: Callable[[str], Path]) -> None:
    model, *_ = open_run(run_of("attrec"))
    cases = dataset.cases("test")
    plain, known = (full_ranks(model, cases, trained_users=trained).ranks for trained in (False, True))
    learnt = dataset.training.lengths[cases.users] > 1  # of a single event nothing is learnt, as none follows it
    assert np.count_nonzero(~learnt) > 0
    table = pq.read_table(run_of("attrec") / "ranks.parquet")
    names = np.array(table["protocol"].to_pylist())
    np.testing.assert_allclose(table["rank"].to_numpy()[names == "full"], plain)
    np.testing.assert_allclose(table["rank"].to_numpy()[names == "full+user"], np.where(learnt, known, plain))
    assert not np.array_equal(plain, known)
    some = np.arange(len(cases)) % 3 > 0  # the others have no vector
    assert np.array_equal(full_ranks(model, cases, trained_users=some).ranks, np.where(some, known, plain))


def test_evaluating_again_changes_nothing(dataset: Dataset, run_of: Callable[[str], Path], tmp_path: Path) -> None:
    model, *_ = open_run(run_of("sasrec"))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one = evaluate(model, dataset, tmp_path / "one", protocols=["u100"])
    other = evaluate(model.train(), dataset, tmp_path / "other", protocols=["u100"])  # dropout has no say
    assert one == other
