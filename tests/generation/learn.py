"""Small recipes, identifiers and logs for generators that are trained in tests."""

from pathlib import Path
from typing import Any

import numpy as np

from engine.data.identifiers import Identifiers
from engine.training.recipe import Recipe, from_dict

ITEMS = 60
MODEL = {
    "identifiers": "codes", "dim": 16, "layers": 1, "heads": 2, "head_dim": 8, "inner": 32, "max_length": 8,
    "dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip
TRAINING = {"epochs": 6, "batch_size": 64, "validate_every": 6, "patience": 0, "precision": "float32"}


def circle() -> Identifiers:
    """Codes that say where on the circle of `cycles` an item stands; every tenth item shares its identifier with the next."""
    codes = apart().codes
    codes[1::10] = codes[::10]
    return Identifiers(codes, (6, 5, 2))


def apart() -> Identifiers:
    """As `circle`, every item with an identifier of its own."""
    place = np.arange(ITEMS)
    return Identifiers(np.stack([place // 10, place % 5, (place // 5) % 2], 1).astype(np.int32), (6, 5, 2))


def store(identifiers: Identifiers, folder: Path) -> None:
    """As the run of a tokenizer has them."""
    folder.mkdir(parents=True, exist_ok=True)
    identifiers.write(folder)


def recipe(family: str, **tables: dict[str, Any]) -> Recipe:
    """The small recipe of a family, with some entries changed."""
    raw: dict[str, Any] = {"model": MODEL, "optimiser": {"lr": 0.01}, "training": TRAINING}
    for table, entries in tables.items():
        raw[table] = raw.get(table, {}) | entries
    return from_dict({"family": family, "name": family, **raw}, family)
