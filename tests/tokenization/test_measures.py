"""Figures of the report on cases that can be worked out by hand."""

import numpy as np
import pyarrow as pa
import pytest

from engine.data.identifiers import NONE
from engine.data.ragged import Ragged
from engine.tokenizers import report

CODES = np.array([[0, 1], [0, 1], [0, 2], [3, 1]], np.int32)


def test_usage() -> None:
    """Worked out by hand in tests/app/test_semantic_ids.py."""
    first, _ = report.usage(CODES, (4, 3))
    assert [first[name] for name in ("codes", "used", "dead")] == [4, 2, 2] and 0 < first["gini"] < 1
    assert first["perplexity_share"] == pytest.approx(first["perplexity"] / 4)


def test_both_collision_rates() -> None:
    found = report.collisions(CODES)
    parts = ("different", "excess", "sharing", "groups", "largest")
    assert [found[part] for part in parts] == [3, 0.25, 0.5, 1, 2]
    assert report.collisions(np.arange(10)[:, None] % 2)["excess"] == 0.8
    assert report.collisions(np.arange(3)[:, None])["largest"] == 1


def test_neighbours_and_similarity() -> None:
    vectors = np.array([[1, 0], [2, 0.1], [0, 1], [0.1, 5]], np.float32)
    near = report.neighbours(report.unit(vectors))
    assert near.tolist() == [1, 0, 3, 2]
    assert report.neighbours(vectors).tolist() == [1, 0, 3, 2]
    assert report.neighbours(np.array([[1.0, 0.0], [9.0, 9.0], [0.0, 1.0]])).tolist() == [1, 0, 1]
    assert report.shared(CODES, near) == (2 + 2 + 0 + 0) / 4
    assert report.shared(np.array([[0, 1], [0, NONE]], np.int32), np.array([1, 0])) == 1


def test_chance_is_what_random_pairs_have() -> None:
    codes = np.random.default_rng(0).integers(0, 5, (4000, 3)).astype(np.int32)
    pairs = np.random.default_rng(1).permutation(4000)
    assert report.shared(codes, pairs) == pytest.approx(report.shared_by_chance(codes), abs=0.03)
    assert report.shared_by_chance(np.arange(3)[:, None]) == 0  # nobody shares a code with another


def test_codes_express_what_is_a_sum_of_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RIDGE", 1e-6)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (500, 2)).astype(np.int32)
    tables = rng.normal(size=(2, 6, 3))
    vectors = tables[0][codes[:, 0]] + tables[1][codes[:, 1]]
    assert np.allclose(report.expressed(codes, vectors), vectors, atol=1e-3)
    noise = rng.normal(size=(500, 3))
    lost = np.square(noise - report.expressed(codes, noise)).sum() / np.square(noise - noise.mean(0)).sum()
    assert lost > 0.9


def test_ndcg() -> None:
    vectors = np.eye(4, dtype=np.float32)
    queries = np.array([[4, 3, 2, 1], [4, 3, 2, 1], [1, 1, 1, 1]], np.float32)
    history = Ragged.of([[0], [], []])
    found = report.ndcg10(queries, vectors, history, np.array([1, 1, 2]))
    ranks = np.array([1, 2, 2.5])  # the item of the history steps aside; ties take the mean rank
    assert found == pytest.approx((1 / np.log2(ranks + 1)).mean())


def test_purity() -> None:
    categories = np.array([0, 0, 1, 1])
    first, second = report.purity(CODES, categories)
    assert (first["groups"], first["items"], first["purity"]) == (2, 3, pytest.approx(2 / 3))
    assert (second["groups"], second["items"], second["purity"]) == (3, 2, 1)
    assert report.purity(CODES, np.array([0, -1, 1, 1]))[0]["items"] == 2


def test_squeeze() -> None:
    popularity = np.arange(90)[::-1]
    codes = np.concatenate([np.arange(30), np.arange(30), np.zeros(30)]).astype(np.int32)[:, None]
    found = report.squeeze(codes, popularity)
    assert found["head"]["perplexity"] == pytest.approx(30)
    assert found["tail"]["perplexity"] == pytest.approx(1)
    assert found["ratio"] == pytest.approx(1 / 30)
    assert found["tail"]["sharing"] == 1


def test_a_category_may_be_the_number_0_and_an_item_may_have_none() -> None:
    items = pa.table({"category": pa.array([0, 2, None, 0])})
    categories = report.categories(items)
    assert categories is not None and categories[1].tolist() == [0, 1, -1, 0]
