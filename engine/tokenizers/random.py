"""Random identifiers: what is left of a tokenizer when nothing is known of the items (the control in TIGER's Table 2)."""

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from engine.cards import Card, Variant
from engine.tokenizers.base import Codes, Learning, Material, Tokenizer


@dataclass(frozen=True)
class RandomConfig:
    levels: int = 3
    codes: int = 256


class Random(Tokenizer):
    """Codes drawn by the item's id: any item has its own in any catalogue, and the same ones each time."""

    name = "random"
    Config = RandomConfig
    card = Card(
        title="Random identifiers",
        order=90,
        summary="Codes drawn at random: what a model can do with codes that say nothing of the item.",
        paper="The control of Rajput et al., NeurIPS 2023, section 4.2",
        variants=(Variant("random", "grey"),),
    )

    def __init__(self, config: RandomConfig, salt: str) -> None:
        self.config, self.salt, self.record = config, salt, {}

    @classmethod
    def fit(cls, material: Material, config: RandomConfig, generator: np.random.Generator, learning: Learning) -> Self:
        return cls(config, generator.bytes(16).hex())

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.config.codes,) * self.config.levels

    def identify(self, material: Material) -> Codes:
        codes = np.empty((len(material), self.config.levels), np.int32)
        for row, item_id in enumerate(material.items["item_id"].to_pylist()):
            bits = hashlib.shake_256(f"{self.salt}/{item_id}".encode()).digest(8 * self.config.levels)
            draws = np.frombuffer(bits, "<u8")
            codes[row] = draws % self.config.codes
        return codes

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {"salt": self.salt}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        return cls(config, facts["salt"])
