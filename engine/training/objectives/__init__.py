"""How training examples are made from a log, and which loss they get. One file per objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from engine.training.objectives.generation import Identifier, IdentifierConfig, InstructionConfig, Instructions
from engine.training.objectives.mutual_information import MutualInformationConfig, mutual_information
from engine.training.objectives.sequences import Cloze, ClozeConfig, NextItem, NextItemConfig, WindowConfig, Windows
from engine.training.objectives.sets import (
    WARP,
    Denoising,
    DenoisingConfig,
    Multinomial,
    MultinomialConfig,
    Pairs,
    PairsConfig,
    Transitions,
    WARPConfig,
)
from engine.training.objectives.text import TextConfig, UniversalConfig, text, universal


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


@dataclass(frozen=True)
class CountConfig:
    """Nothing is learned by gradient: the model counts."""


class Kind(NamedTuple):
    """An objective that models name."""

    Config: type[Any]
    """The table `objective` of recipes."""
    make: Callable[..., Objective] | None
    """(settings, model, items, offsets, batch size) → the objective on a training log: items int64 [events], on the device,
    offsets int64 [users + 1]. None where nothing is learned step by step."""


OBJECTIVES: dict[str, Kind] = {
    "next-item": Kind(NextItemConfig, NextItem),
    "mutual-information": Kind(MutualInformationConfig, mutual_information),
    "universal": Kind(UniversalConfig, universal),
    "cloze": Kind(ClozeConfig, Cloze),
    "window": Kind(WindowConfig, Windows),
    "pairs": Kind(PairsConfig, Pairs),
    "transitions": Kind(PairsConfig, Transitions),
    "warp": Kind(WARPConfig, WARP),
    "multinomial": Kind(MultinomialConfig, Multinomial),
    "denoising": Kind(DenoisingConfig, Denoising),
    "text": Kind(TextConfig, text),
    "identifier": Kind(IdentifierConfig, Identifier),
    "instructions": Kind(InstructionConfig, Instructions),
    "counts": Kind(CountConfig, None),
}
