"""Which examples make up each step of an epoch. Batches hold sequences of like length, so that little padding is computed."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

POOL = 32
"""Batches that are sorted by length together: enough to make lengths alike, few enough to keep batches random."""


def shuffled(examples: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """int64 [≤ batch_size] at a time: every example once, in random order."""
    yield from torch.randperm(examples, generator=generator).split(batch_size)


def by_length(lengths: Tensor, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """As `shuffled`, each batch of like `lengths` (int64 [examples]); the order of batches is random.

    Examples are shuffled, sorted by length within pools of `POOL` batches, and cut.
    """
    batches: list[Tensor] = []
    for pool in torch.randperm(len(lengths), generator=generator).split(batch_size * POOL):
        ordered = pool[torch.argsort(lengths[pool], stable=True)]
        batches.extend(ordered.split(batch_size))
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
