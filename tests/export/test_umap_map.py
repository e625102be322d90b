"""The map: exact neighbours, and a figure of trust that is the usual one."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from engine.export import umap_map
from tests.conftest import STAND_IN


def rows(items: int = 60, dim: int = 6) -> np.ndarray:
    table = np.random.default_rng(0).normal(size=(items, dim)).astype(np.float32)
    table[5] = table[9]  # duplicates
    return table


def test_neighbours_of_a_loop() -> None:
    table = rows()
    for metric in ("euclidean", "cosine"):
        found, distances = umap_map.nearest(table, 8, metric)
        for item in range(60):
            if metric == "euclidean":
                apart = np.sqrt(((table - table[item]).astype(np.float64) ** 2).sum(1))
            else:
                apart = 1 - table @ table[item] / (np.linalg.norm(table, axis=1) * np.linalg.norm(table[item]))
            assert found[item, 0] == item
            np.testing.assert_allclose(distances[item, 1:], np.sort(np.delete(apart, item))[:7], atol=1e-3)
            np.testing.assert_allclose(apart[found[item, 1:]], distances[item, 1:], atol=1e-3)
        some, _ = umap_map.nearest(table, 8, metric, np.array([3, 50]))
        assert np.array_equal(some, found[[3, 50]])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_trust_is_that_of_scikit_learn(metric: str) -> None:
    from sklearn.manifold import trustworthiness  # a second and a half, for every worker that collects this file

    table = np.random.default_rng(1).normal(size=(70, 6)).astype(np.float32)
    rng = np.random.default_rng(2)
    for placed in (table[:, :2], rng.normal(size=(70, 2)).astype(np.float32)):
        expected = trustworthiness(table, placed, n_neighbors=9, metric=metric)
        assert umap_map.trustworthiness(table, placed, metric, 9, 0) == pytest.approx(expected, abs=1e-6)


def test_a_sample_is_near_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(3).normal(size=(600, 6)).astype(np.float32)
    whole = umap_map.trustworthiness(table, table[:, :2], "euclidean", 15, 0)
    monkeypatch.setattr(umap_map, "SAMPLE", 200)
    assert umap_map.trustworthiness(table, table[:, :2], "euclidean", 15, 0) == pytest.approx(whole, abs=0.03)


@pytest.fixture
def real_umap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(STAND_IN)])
    sys.modules.pop("umap", None)
    yield
    sys.modules.pop("umap", None)


def test_the_map_is_the_same_twice_keeps_groups_together_and_compiles_nothing_that_is_not_kept_for_the_next_process(
    real_umap: None, recwarn: pytest.WarningsRecorder
) -> None:
    rng = np.random.default_rng(5)
    table = np.concatenate([rng.normal(size=(30, 8)) + 8 * np.eye(8)[group] for group in range(2)]).astype(np.float32)
    one, parameters = umap_map.umap(table, "cosine", 42)
    other, _ = umap_map.umap(table, "cosine", 42)
    assert np.array_equal(one, other)
    assert one.shape == (60, 2) and one.dtype == np.float32
    assert parameters["n_neighbors"] == 15 and parameters["version"] != "0"
    assert parameters["random_state"] == 42
    assert umap_map.trustworthiness(table, one, "cosine", 15, 0) > 0.8
    middle = one[:30].mean(0), one[30:].mean(0)
    closer = np.linalg.norm(one - middle[0], axis=1) < np.linalg.norm(one - middle[1], axis=1)
    assert closer[:30].all()
    assert not closer[30:].any()
    assert not [w for w in recwarn if "knn" in str(w.message)]
    from umap import layouts, umap_

    epoch = layouts._nb_optimize_layout_euclidean_single_epoch
    for compiled in (umap_.smooth_knn_dist, umap_.compute_membership_strengths, epoch):
        stats = compiled.stats
        assert sum(stats.cache_hits.values()) + sum(stats.cache_misses.values()) == len(compiled.signatures) > 0
