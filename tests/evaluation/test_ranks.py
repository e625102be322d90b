"""Ranks against a loop anybody can read, and the traps: ties, NaN, repeated targets, the validation item in the test history."""

import math

import numpy as np
import pytest
import torch

from engine.evaluation.metrics import CUTOFFS
from engine.evaluation.ranks import full_ranks, mean_rank, sampled_ranks, top_k
from tests.evaluation.fakes import Fixed, cases, random_cases


def naive(scores: list[float], target: int, candidates: set[int]) -> float:
    """1 + how many are better + half of those level."""
    above = sum(scores[i] > scores[target] for i in candidates - {target})
    level = sum(scores[i] == scores[target] for i in candidates - {target})
    return 1 + above + level / 2


@pytest.mark.parametrize("exclude", [True, False])
def test_ranks_of_a_naive_loop(exclude: bool) -> None:
    rng = np.random.default_rng(0)
    table = np.round(rng.normal(size=(30, 30)), 1)  # many ties
    some = random_cases(rng, 30, 30)
    assert any(target in some.history[row] for row, target in enumerate(some.targets))  # taken before, taken again
    found = full_ranks(Fixed(table), some, exclude_history=exclude, batch_size=7).ranks
    for row in range(30):
        taken = set(some.history[row].tolist()) if exclude else set()
        expected = naive(table[row].astype(np.float32).tolist(), int(some.targets[row]), set(range(30)) - taken)
        assert found[row] == expected


@pytest.mark.parametrize("kinds", [1, 3, 1_000])
def test_of_equal_scores_the_first_items_are_listed(kinds: int) -> None:
    scores = torch.from_numpy(np.random.default_rng(kinds).integers(0, kinds, (40, 50)).astype(np.float32))
    scores[::2, ::3] = -torch.inf
    for k in (1, 7, 50):
        values, places = top_k(scores, k)
        expected = np.argsort(-scores.numpy(), 1, kind="stable")[:, :k]
        assert np.array_equal(places.numpy(), expected)
        assert np.array_equal(values.numpy(), np.take_along_axis(scores.numpy(), expected, 1))


def test_sampled_ranks_of_a_naive_loop() -> None:
    rng = np.random.default_rng(1)
    table = np.round(rng.normal(size=(30, 60)), 1)
    some = random_cases(rng, 30, 60)
    negatives = np.stack([rng.permutation([i for i in range(60) if i != t])[:20] for t in some.targets]).astype(
        np.int32
    )
    found = sampled_ranks(Fixed(table), some, negatives, batch_size=8).ranks
    for row in range(30):
        scores = table[row].astype(np.float32).tolist()
        assert found[row] == naive(scores, int(some.targets[row]), set(negatives[row].tolist()))


def test_what_is_not_a_number_never_looks_good() -> None:
    nan = math.nan
    table = np.array([[nan] * 4, [1, nan, 0, 2], [nan, 1, 2, 3]])
    found = full_ranks(Fixed(table), cases([[0], [1], [2]], [1, 0, 0]), exclude_history=False).ranks
    assert found.tolist() == [4, 3, 4]  # the last of four; behind 2 and NaN; the last of four
    assert mean_rank(torch.tensor([[nan, 1.0]]), torch.tensor([[nan]])).item() == 2
    table = np.array([[math.inf, 1, math.inf, 0]])  # and infinite scores are scores
    assert full_ranks(Fixed(table), cases([[1]], [0]), exclude_history=False).ranks == [1.5]


def test_exposure_counts_the_lists() -> None:
    rng = np.random.default_rng(3)
    table = rng.permuted(np.tile(np.arange(60.0), (20, 1)), axis=1)
    some = random_cases(rng, 20, 60)
    found = full_ranks(Fixed(table), some, lists=True).exposure
    assert tuple(found) == CUTOFFS
    for k in CUTOFFS:
        expected = np.zeros(60, int)
        for row in range(20):
            taken = set(some.history[row].tolist()) - {int(some.targets[row])}
            for item in [i for i in np.argsort(-table[row]) if i not in taken][:k]:
                expected[item] += 1
        np.testing.assert_array_equal(found[k], expected)


def test_nobody_to_rank() -> None:
    assert len(full_ranks(Fixed(np.zeros((1, 3))), cases([], [])).ranks) == 0
