"""What every objective is to the training loop."""

# ruff: noqa: B027 (most objectives do without the hooks)

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from engine.errors import SeqscopeError
from engine.training.sampling import by_length, shuffled

Batch = tuple[Tensor, ...]


class Objective(ABC):
    """How training examples are made from a log, and which loss they get.

    items: int64 [events] on the device, the training log; offsets: int64 [users + 1] beside it. A batch is a tuple of tensors
    whose first dimension is the examples; how it was drawn depends on the generator alone, so that every process of a
    distributed run draws the same batch and keeps its own rows of it.
    """

    count: int
    """Examples of an epoch."""
    alike: Tensor | None = None
    """int64 [examples] on the CPU: those of a batch are close in it; None: an example goes with any other."""
    validated = True
    """What comes next is learnt, so that the best model can be chosen by it."""
    begins_with_validation = False
    """The model is as good as its start before the first step, and is not to become worse."""
    apart = False
    """Threads may compute parts of a batch on their own: the loss is a mean over targets that know nothing of each other, and
    computing it changes nothing."""
    asks: tuple[str, ...] = ()
    """What a model has to have for it."""

    def __init__(self, config: Any, model: Any, items: Tensor, offsets: Tensor, batch_size: int) -> None:
        """Raises SeqscopeError where the model lacks what it `asks` for."""
        missing = [name for name in self.asks if not (hasattr(type(model), name) or hasattr(model, name))]
        if missing:
            raise SeqscopeError(
                f"{type(model).__name__} has no {' and no '.join(missing)}, which its objective asks for (docs/extending.md)"
            )
        self.config, self.batch_size, self.items = config, batch_size, items
        self.prepare(model, items, offsets)

    def prepare(self, model: Any, items: Tensor, offsets: Tensor) -> None:
        """Makes of the log what batches are drawn from: `count`, and what else an objective needs."""

    @property
    def steps(self) -> int:
        """Steps in one epoch."""
        return -(-self.count // self.batch_size)

    @property
    def typical_targets(self) -> float:
        """Targets of an average batch."""
        return self.count / self.steps

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        """One epoch: the numbers of the examples of each step."""
        if self.alike is None:
            yield from shuffled(self.count, self.batch_size, generator)
        else:
            yield from by_length(self.alike, self.batch_size, generator)

    @abstractmethod
    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        """The batch of these examples, on the device, with its random parts (negatives, masks) drawn."""

    def targets(self, batch: Batch) -> Tensor:
        """How many targets each example of the batch has, int64 [examples]: the weight of its share of the mean loss."""
        return torch.ones(len(batch[0]), dtype=torch.int64, device=batch[0].device)

    @abstractmethod
    def loss(self, model: Any, batch: Batch) -> Tensor:
        """Mean over the batch's targets, float32 scalar."""

    # --- for what changes with the steps of a training, or is kept up to date though no gradient reaches it; every process does
    # the same

    def begin_training(self, model: Any) -> None:
        """Before all else; an estimate, whose steps are thrown away, does without. Raises UsageError where it cannot be."""

    def begin_epoch(self, model: Any) -> None:
        """Before the first step of an epoch; not where training goes on within one."""

    def begin_step(self, step: int) -> None:
        """Before the batch of the step with this number is drawn: from 0, counted over all epochs."""

    def end_epoch(self, model: Any) -> None:
        """After the last step of an epoch, before validation."""
