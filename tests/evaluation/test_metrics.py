"""Metrics against loops and against numbers worked out by hand."""

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
        f"{m}@{k}" for m in metrics.names("full") if metrics.ACCURACY[m].at_k for k in (1, 5)
    }


def test_nobody() -> None:
    assert all(math.isnan(value) for value in metrics.accuracy(np.empty(0)).values())
    assert math.isnan(metrics.gini(np.zeros(3))) and metrics.novelty(np.zeros(4), np.ones(4)) == 0


def test_gini() -> None:
    assert metrics.gini(np.array([0, 0, 0, 8])) == pytest.approx(0.75)  # (n − 1) / n
    values = np.array([1, 3, 0, 4, 2])
    by_pairs = sum(abs(a - b) for a in values for b in values) / (2 * len(values) * values.sum())
    assert metrics.gini(values) == pytest.approx(by_pairs) == pytest.approx(0.4)


def test_beyond_accuracy_by_hand() -> None:
    popularity = np.array([8, 4, 4, 0])
    # 8 of 16 is 1 bit, 4 of 16 is 2 bits; an item never seen counts as seen once: 4 bits
    found = metrics.beyond_accuracy({5: np.array([1, 1, 0, 0]), 10: np.array([0, 0, 0, 3])}, popularity)
    assert found == pytest.approx(
        {"coverage@5": 0.5, "Gini@5": 0.5, "novelty@5": 1.5, "coverage@10": 0.25, "Gini@10": 0.75, "novelty@10": 4}
    )
    texts = [metrics.BEYOND["coverage"].text(value) for value in (0.0, 0.00038, 0.5, 0.9996, 1.0, None)]
    assert texts == ["0.0%", "<0.1%", "50.0%", ">99.9%", "100.0%", "n/a"]
