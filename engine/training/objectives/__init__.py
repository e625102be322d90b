"""How training examples are made from a log, and which loss they get. One file per objective."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.models import Recommender


class Objective(Protocol):
    """What the training loop asks of an objective.

    A batch is a tuple of tensors whose first dimension is the examples; how it was drawn depends on the generator alone, so
    that every process of a distributed run draws the same batch and keeps its own rows of it.
    """

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        """One epoch: the numbers of the examples of each step."""

    @property
    def steps(self) -> int:
        """Steps in one epoch."""

    @property
    def typical_targets(self) -> float:
        """Targets of an average batch."""

    def draw(self, examples: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The batch of these examples, on the device, with its random parts (negatives, masks) drawn."""

    def targets(self, batch: tuple[Tensor, ...]) -> Tensor:
        """How many targets each example of the batch has, int64 [examples]: the weight of its share of the mean loss."""

    def loss(self, model: Any, batch: tuple[Tensor, ...]) -> Tensor:
        """Mean over the batch's targets, float32 scalar."""

    def after_step(self, model: Any) -> None:
        """Whatever constraint the model's paper puts on its parameters."""


class Annealed(Objective, Protocol):
    """An objective that changes with the steps of a training."""

    def begin_step(self, step: int) -> None:
        """Before the batch of the step with this number is drawn: from 0, counted over all epochs."""


class Staged(Objective, Protocol):
    """An objective that keeps something up to date that no gradient reaches. Every process does the same."""

    begins_with_validation: bool
    """The model is as good as its start before the first step, and is not to become worse."""

    def begin_training(self, model: Any) -> None:
        """Before all else; an estimate, whose steps are thrown away, does without. Raises UsageError where it cannot be."""

    def begin_epoch(self, model: Any) -> None:
        """Before the first step of an epoch; not where training goes on within one."""

    def end_epoch(self, model: Any) -> None:
        """After the last step of an epoch, before validation."""


def gather_last(values: Tensor, ends: Tensor, lengths: Tensor, width: int, pad: int) -> Tensor:
    """int64 [rows, width]: `values[end − length : end]` of each row, `pad` on the left. ends, lengths: int64 [rows]."""
    column = torch.arange(width, device=values.device) - width
    real = column >= -lengths.clamp(max=width)[:, None]
    return torch.where(real, values[(ends[:, None] + column).clamp(min=0)], pad)


def stride(step: float, size: int) -> int:
    """Events from one window to the next: the share `step` of `size`, one at least; 0 where there are no other windows."""
    return max(1, int(step * size)) if step else 0


def windows(offsets: Tensor, size: int, step: int) -> tuple[Tensor, Tensor]:
    """End and length (int64 [windows]) of the windows of at most `size` events, every `step` events from the end.

    offsets: int64 [users + 1], where each sequence starts. Without a step there is the last window alone; a sequence of one event
    has none, because it predicts nothing.
    """
    lengths = offsets.diff()
    earlier = (lengths - size).clamp(min=0).add(step - 1) // step if step else torch.zeros_like(lengths)
    count = torch.where(lengths >= 2, 1 + earlier, 0)
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=offsets.device), count)
    place = torch.arange(len(owner), device=offsets.device) - (count.cumsum(0) - count)[owner]
    ends = (offsets[1:][owner] - place * step).clamp(min=0)
    # the earliest window is full as well, so it may overlap the next one by more than size − step
    ends = torch.maximum(ends, offsets[:-1][owner] + torch.minimum(lengths[owner], torch.tensor(size)))
    return ends, torch.minimum(lengths[owner], torch.tensor(size))


__all__ = ["Objective", "Recommender", "gather_last", "stride", "windows"]
