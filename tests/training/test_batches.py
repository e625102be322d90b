"""Batches: every example once, like lengths together, in a random order."""

from __future__ import annotations

import pytest
import torch

from engine.training.sampling import POOL, by_length, shuffled


@pytest.mark.parametrize("examples", [0, 1, 7, 128, 129, 1000])
def test_every_example_once(examples: int) -> None:
    lengths = torch.randint(1, 200, (examples,), generator=torch.Generator().manual_seed(0))
    for batches in (
        by_length(lengths, 8, torch.Generator().manual_seed(1)),
        list(shuffled(examples, 8, torch.Generator().manual_seed(1))),
    ):
        assert sorted(torch.cat(batches).tolist() if batches else []) == list(range(examples))
        assert sum(len(batch) < 8 for batch in batches) <= 1
        assert len(batches) == -(-examples // 8) or examples == 0


def test_like_lengths_are_together() -> None:
    lengths = torch.randint(1, 200, (POOL * 8 * 4,), generator=torch.Generator().manual_seed(0))
    batches = by_length(lengths, 8, torch.Generator().manual_seed(1))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    assert padded < 1.08 * int(lengths.sum())
    random = sum(
        int(lengths[batch].max()) * len(batch) for batch in shuffled(len(lengths), 8, torch.Generator().manual_seed(1))
    )
    assert random > 1.5 * int(lengths.sum())
    # but the order of the batches says nothing of length
    means = torch.stack([lengths[batch].float().mean() for batch in batches])
    steps = torch.arange(len(means)).float()
    assert abs(torch.corrcoef(torch.stack([means, steps]))[0, 1]) < 0.3


def test_who_meets_whom_changes_from_epoch_to_epoch() -> None:
    lengths = torch.randint(1, 200, (POOL * 8 * 4,), generator=torch.Generator().manual_seed(0))

    def meetings(seed: int) -> set[frozenset[int]]:
        return {frozenset(batch.tolist()) for batch in by_length(lengths, 8, torch.Generator().manual_seed(seed))}

    assert meetings(1) == meetings(1)
    assert not meetings(1) & meetings(2)
