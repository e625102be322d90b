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
    forget("umap")
    yield
    forget("umap")


def forget(*packages: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


def groups(size: int) -> np.ndarray:
    """float32 [2 size, 8]: two groups of points, far from each other."""
    rng = np.random.default_rng(5)
    return np.concatenate([rng.normal(size=(size, 8)) + 8 * np.eye(8)[group] for group in range(2)]).astype(np.float32)


def test_the_map_is_the_same_twice_and_keeps_groups_together(
    real_umap: None, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    import numba  # half a second, for every worker that collects this file

    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)  # else half a minute of a core
    forget("pynndescent")
    table = groups(9)
    placed, parameters = umap_map.umap(table, "cosine", 42)
    again, _ = umap_map.umap(table, "cosine", 42)
    forget("pynndescent")
    assert np.array_equal(placed, again)
    assert placed.shape == (18, 2) and placed.dtype == np.float32
    assert parameters["n_neighbors"] == 15 and parameters["version"] != "0"
    assert parameters["random_state"] == 42
    assert umap_map.trustworthiness(table, placed, "cosine", 5, 0) > 0.8
    middle = placed[:9].mean(0), placed[9:].mean(0)
    closer = np.linalg.norm(placed - middle[0], axis=1) < np.linalg.norm(placed - middle[1], axis=1)
    assert closer[:9].all()
    assert not closer[9:].any()
    assert not [w for w in recwarn if "knn" in str(w.message)]


@pytest.mark.long
def test_all_that_is_compiled_is_kept_for_the_next_process(real_umap: None) -> None:
    umap_map.umap(groups(30), "cosine", 42)
    from umap import layouts, umap_

    epoch = layouts._nb_optimize_layout_euclidean_single_epoch
    for compiled in (umap_.smooth_knn_dist, umap_.compute_membership_strengths, epoch):
        stats = compiled.stats
        assert sum(stats.cache_hits.values()) + sum(stats.cache_misses.values()) == len(compiled.signatures) > 0
