"""Agreement of lists: known values, properties, and scipy where it has the same measure."""

import numpy as np
import pytest
from scipy import stats

from engine.runtime import Move, jaccard, mean_ranks, movement, overlap, probabilities, rbo, rbo_weight, spearman

RNG = np.random.default_rng(6)


def test_overlap_and_jaccard() -> None:
    lists = [[1, 2, 3, 4], [2, 1, 9, 8], np.array([7, 5], np.int32), []]
    assert overlap(lists, 2).tolist() == [[2, 2, 0, 0], [2, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    assert overlap(lists, 4)[0, 1] == 2
    assert jaccard(lists, 4)[0, 1] == pytest.approx(2 / 6)
    assert jaccard(lists, 4)[3].tolist() == [0, 0, 0, 1] and (np.diag(jaccard(lists, 3)) == 1).all()
    assert overlap([], 3).shape == (0, 0)


def naive_rbo(first: list, second: list, p: float) -> float:
    """RBO_ext by its definition: the prefix as seen, and beyond it the agreement that extrapolation assumes."""
    short, long = sorted((first, second), key=len)
    s, size = len(short), len(long)
    shared = [len(set(short[:d]) & set(long[:d])) for d in range(1, size + 1)]
    agreement = [
        shared[d - 1] / d if d <= s else (shared[d - 1] + shared[s - 1] * (d - s) / s) / d for d in range(1, size + 1)
    ]
    agreement += [agreement[-1]] * 2000
    return (1 - p) * sum(a * p**d for d, a in enumerate(agreement))


@pytest.mark.parametrize("p", [0.5, 0.98])
def test_rbo_against_its_definition(p: float) -> None:
    for _ in range(10):
        first = RNG.permutation(15)[: RNG.integers(1, 15)].tolist()
        second = RNG.permutation(15)[: RNG.integers(1, 15)].tolist()
        assert rbo(first, second, p) == pytest.approx(naive_rbo(first, second, p), abs=1e-9)
        assert rbo(first, second, p) == rbo(second, first, p)
        assert -1e-12 <= rbo(first, second, p) <= 1 + 1e-12


def test_rbo_at_its_ends() -> None:
    assert rbo([3, 1, 2], [3, 1, 2]) == pytest.approx(1)
    assert rbo([1, 2], [3, 4]) == 0
    assert rbo([], []) == 1 and rbo([], [1]) == 0
    assert rbo([1, 2, 3, 4], [1, 2, 3, 9]) > rbo([1, 2, 3, 4], [9, 2, 3, 4])  # the top weighs more
    for wrong in ((0.0, [1]), (1.0, [1]), (0.9, [1, 1])):
        with pytest.raises(ValueError, match=r"p must|twice"):
            rbo(wrong[1], [1], wrong[0])


def test_rbo_weights_of_the_paper() -> None:
    # "p = 0.9 means that the first 10 ranks have 86% of the weight of the evaluation"
    assert rbo_weight(0.9, 10) == pytest.approx(0.8556, abs=1e-4)
    for p, depth in ((0.9, 1), (0.98, 50), (0.5, 3)):  # the weight of rank r is (1 − p) / p · Σ over d ≥ r of p^d / d
        d = np.arange(1, 5000)
        tails = np.cumsum((p**d / d)[::-1])[::-1]
        assert rbo_weight(p, depth) == pytest.approx((1 - p) / p * tails[:depth].sum())


def test_mean_ranks() -> None:
    assert mean_ranks([5, 7, 5, 9]).tolist() == [3.5, 2, 3.5, 1]
    values = RNG.integers(0, 9, 200)
    np.testing.assert_array_equal(mean_ranks(values), stats.rankdata(-values))


def test_correlations_against_scipy() -> None:
    for kinds in (3, 10**6):
        first = RNG.integers(0, kinds, 257)
        second = first // 2 + RNG.integers(0, kinds, 257)
        assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    up = np.arange(9.0)
    assert spearman(up, -up) == -1
    assert np.isnan(spearman(up, up * 0)) and np.isnan(spearman([1], [2]))
    with pytest.raises(ValueError, match="2 and 3 entries"):
        spearman([1, 2], [1, 2, 3])


def test_movement() -> None:
    moves = movement([10, 11, 12, 13], [12, 11, 14, 10])
    assert [str(move) for move in moves] == ["↑2", "=", "new", "↓3", "dropped"]
    assert [move.change for move in moves] == ["up", "same", "new", "down", "dropped"]
    assert moves[0] == Move(12, 3, 1) and moves[-1] == Move(13, 4, None)
    assert movement([], []) == []


def test_probabilities() -> None:
    shares = probabilities("sasrec", np.array([1.0, 1.0, -np.inf, 1.0], np.float32))
    np.testing.assert_allclose(shares, [1 / 3, 1 / 3, 0, 1 / 3])
    assert probabilities("sasrec", [1000.0, 0.0]).tolist() == [1.0, 0.0]
    assert probabilities("popularity", [3.0, -np.inf, 1.0]).tolist() == [0.75, 0.0, 0.25]
    assert probabilities("popularity", [0.0, 0.0]).tolist() == [0.0, 0.0]  # of a catalogue that nobody took anything of
