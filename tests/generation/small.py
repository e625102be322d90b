"""Small generators over made-up identifiers."""

import dataclasses
from typing import Any

import numpy as np
import torch

from engine.data.identifiers import NONE, Identifiers
from engine.generation import Generator
from engine.generation.base import GeneratorConfig
from engine.generation.decoder_only import DecoderOnly
from engine.generation.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from tests.models.contract import move

ITEMS = 29
SMALL = {"dim": 12, "layers": 2, "heads": 2, "head_dim": 4, "inner": 16, "max_length": 6}
FAMILIES: dict[str, tuple[type[Any], type[Generator], dict[str, Any]]] = {
    "both ways": (EncoderDecoderConfig, EncoderDecoder, {}),
    "left to right": (EncoderDecoderConfig, EncoderDecoder, {"causal": True, "tied": False}),
    "decoder alone": (GeneratorConfig, DecoderOnly, {}),
    "decoder alone, own head": (GeneratorConfig, DecoderOnly, {"tied": False}),
}


def table(kind: str, items: int = ITEMS) -> Identifiers:
    """full: four codes, all different; ties: several items share theirs; ragged: one to four codes, some shared;
    words: like ragged, and all levels draw from one vocabulary."""
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(0, size, items) for size in (4, 3, 3, 5)], 1).astype(np.int32)
    if kind == "full":
        codes = np.unravel_index(rng.choice(4 * 3 * 3 * 5, items, replace=False), (4, 3, 3, 5))
        return Identifiers(np.stack(codes, 1).astype(np.int32), (4, 3, 3, 5))
    if kind == "ties":
        codes[:, 3] = 0
        codes[4] = codes[5] = codes[6]
        return Identifiers(codes, (4, 3, 3, 1))
    for item, length in enumerate(rng.integers(1, 5, items)):
        codes[item, length:] = NONE
    return Identifiers(codes, (5, 5, 5, 5), shared=True) if kind == "words" else Identifiers(codes, (4, 3, 3, 5))


def build(family: str, kind: str = "full", seed: int = 0, **settings: Any) -> Generator:
    """A network in evaluation mode in which nothing is as it was initialised."""
    config, network, own = FAMILIES[family]
    names = {field.name for field in dataclasses.fields(config)}
    chosen = {key: value for key, value in (SMALL | own | settings).items() if key in names}
    generator = torch.Generator().manual_seed(seed)
    model = network(config(**chosen), ITEMS, 7, generator, identifiers=table(kind))  # type: ignore[call-arg]
    move(model, seed)
    return model.eval()


def histories(model: Generator, people: int = 5, seed: int = 1) -> torch.Tensor:
    """int64 [people, max_length], the first with one item alone, the second full."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, model.num_items, (people, model.max_length))
    for row, length in enumerate([1, model.max_length, *rng.integers(1, model.max_length + 1, people - 2)]):
        items[row, : model.max_length - length] = model.pad
    return torch.from_numpy(items)
