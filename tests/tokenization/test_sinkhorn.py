"""Balanced assignment."""

import numpy as np
import pytest
import torch

from engine.tokenizers import kmeans
from engine.tokenizers.sinkhorn import assign, plan


def test_it_is_the_loop_that_the_authors_have() -> None:
    distances = torch.rand(9, 4, generator=torch.Generator().manual_seed(1)).double()
    low, high = distances.min(), distances.max()
    found = torch.exp(-(distances - (high + low) / 2) / (high - (high + low) / 2 + 1e-5) / 0.1)
    found /= found.sum()
    for _ in range(30):
        found /= found.sum(1, keepdim=True) * 9
        found /= found.sum(0, keepdim=True) * 4
    assert torch.allclose(plan(distances, 0.1, 30), found * 9)


def test_a_small_epsilon_stays_finite_and_near_the_best_assignment() -> None:
    distances = torch.rand(40, 8, generator=torch.Generator().manual_seed(2))
    assert torch.isfinite(plan(distances, 1e-4)).all()
    counts = assign(distances, 0.003, 200).bincount(minlength=8)
    assert int(counts.max()) <= 7
    assert int(counts.min()) >= 3
    assert torch.equal(assign(distances, 0.0), distances.argmin(1))


@pytest.mark.parametrize(("points", "clusters", "smallest", "largest"), [(50, 5, 8, 12), (40, 4, 10, 10)])
@pytest.mark.parametrize("exact", [True, False])
def test_clusters_keep_their_sizes(
    points: int, clusters: int, smallest: int, largest: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exact:
        monkeypatch.setattr(kmeans, "EXACT", 0)
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.normal(size=(points - 5, 3)), rng.normal(size=(5, 3)) + 9]).astype(np.float32)
    centres, labels = kmeans.cluster(data, clusters, smallest, largest, np.random.default_rng(1))
    sizes = np.bincount(labels, minlength=clusters)
    assert centres.shape == (clusters, 3)
    assert sizes.min() >= smallest
    assert sizes.max() <= largest


def test_the_best_assignment_is_the_best() -> None:
    """Two points, one place near each: the greedy choice of the first would cost the second more."""
    costs = np.array([[0.0, 1.0], [0.1, 9.0]])
    assert kmeans._best(costs, 1, 1).tolist() == [1, 0]


def test_free_sizes_are_plain_k_means() -> None:
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.normal(size=(20, 2)) + shift for shift in (0, 20, 40)]).astype(np.float32)
    _, labels = kmeans.cluster(data, 3, 0, 60, np.random.default_rng(0))
    assert [len(set(part.tolist())) for part in labels.reshape(3, 20)] == [1, 1, 1]
    assert len(set(labels)) == 3


def test_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="do not go into"):
        kmeans.cluster(np.zeros((10, 2), np.float32), 3, 4, 5, np.random.default_rng(0))


def test_limits_are_the_authors_for_their_numbers() -> None:
    assert kmeans.limits(256, 10) == (10, 60)
    for points in (2, 8, 64, 256):
        for clusters in range(1, points + 1):
            smallest, largest = kmeans.limits(points, clusters)
            assert clusters * smallest <= points <= clusters * largest
