"""Metrics against loops and against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.evaluation import metrics


def test_metrics_of_a_naive_loop() -> None:
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 80, 300) + rng.choice([0, 0.5], 300)
    found = metrics.accuracy(ranks)
    for k in (1, 5, 10, 20, 50):
        hits = ndcg = mrr = 0.0
        for rank in ranks:
            if rank <= k:
                hits += 1
                ndcg += 1 / math.log2(rank + 1)
                mrr += 1 / rank
        assert found[f"HR@{k}"] == pytest.approx(hits / 300)
        assert found[f"NDCG@{k}"] == pytest.approx(ndcg / 300)
        assert found[f"MRR@{k}"] == pytest.approx(mrr / 300)


def test_by_hand() -> None:
    found = metrics.accuracy(np.array([1.0, 3.0, 1.5, 11.0]))
    assert found["HR@1"] == found["NDCG@1"] == found["MRR@1"] == 0.25  # 1.5 is not in the first place
    assert found["HR@10"] == 0.75
    assert found["NDCG@10"] == pytest.approx((1 + 1 / 2 + 1 / math.log2(2.5)) / 4)
    assert found["MRR@10"] == pytest.approx((1 + 1 / 3 + 1 / 1.5) / 4)


def test_impossible_ranks_are_an_error() -> None:
    for ranks in ([0.0], [0.5, 2], [-1.0]):
        with pytest.raises(ValueError, match="impossible"), np.errstate(all="ignore"):
            metrics.accuracy(np.array(ranks))


def test_a_beam_says_nothing_beyond_its_width() -> None:
    found = {"full": {"HR@10": 0.4, "outside@20": 0.3}, "full, cold": {}, "u100": {"HR@50": 0.9}}
    widths = {name: metrics.beam_width(found, name) for name in (*found, "full, history kept", "u100, repeats")}
    assert widths == {"full": 20, "full, cold": 20, "u100": None, "full, history kept": 20, "u100, repeats": None}
    assert metrics.beam_width({"full": {"HR@10": 0.4}}, "full") is None  # every item was scored
    assert [metrics.beyond_beam(k, 20) for k in (20, 50)] == [None, "beam of 20"]
    assert set(metrics.accuracy(np.array([1.0, 500]), width=5)) == {
        f"{m}@{k}" for m in metrics.names("full") for k in (1, 5)
    }


def test_nobody() -> None:
    assert all(math.isnan(value) for value in metrics.accuracy(np.empty(0)).values())


def test_a_metric_is_the_mean_of_its_users() -> None:
    ranks = np.random.default_rng(2).integers(1, 30, 50).astype(float)
    found = metrics.accuracy(ranks)
    assert all(metrics.per_user(name, ranks).mean() == pytest.approx(found[name]) for name in found)
    with pytest.raises(KeyError):
        metrics.per_user("AUC@10", ranks)


def test_coverage() -> None:
    assert metrics.coverage(np.array([3, 0, 1, 0])) == 0.5


def test_gini() -> None:
    assert metrics.gini(np.array([2, 2, 2, 2])) == pytest.approx(0)
    assert metrics.gini(np.array([0, 0, 0, 8])) == pytest.approx(0.75)  # (n − 1) / n
    values = np.array([1, 3, 0, 4, 2])
    by_pairs = sum(abs(a - b) for a in values for b in values) / (2 * len(values) * values.sum())
    assert metrics.gini(values) == pytest.approx(by_pairs) == pytest.approx(0.4)
    assert math.isnan(metrics.gini(np.zeros(3)))


def test_novelty() -> None:
    popularity = np.array([8, 4, 4, 0])
    # 8 of 16 is 1 bit, 4 of 16 is 2 bits; an item never seen counts as seen once: 4 bits
    assert metrics.novelty(np.array([1, 0, 0, 0]), popularity) == 1
    assert metrics.novelty(np.array([1, 1, 0, 0]), popularity) == 1.5
    assert metrics.novelty(np.array([0, 0, 0, 3]), popularity) == 4
    assert metrics.novelty(np.zeros(4), popularity) == 0


def test_beyond_accuracy_names_every_cut() -> None:
    found = metrics.beyond_accuracy({5: np.array([1, 1]), 10: np.array([2, 0])}, np.array([1, 1]))
    assert found == pytest.approx(
        {"coverage@5": 1, "Gini@5": 0, "novelty@5": 1, "coverage@10": 0.5, "Gini@10": 0.5, "novelty@10": 1}
    )
