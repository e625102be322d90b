"""How training examples are made from a log, and which loss they get. One file per objective."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.training.objectives.base import Objective
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
