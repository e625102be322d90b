"""Popularity: what most people took, whoever asks. The floor under every other figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, Recommender


@dataclass(frozen=True)
class PopularityConfig:
    """Popularity has no settings."""


class Popularity(Recommender):
    name = "popularity"
    Config: ClassVar[type[Any]] = PopularityConfig
    objective = "counts"
    kind = "counting"
    card = Card(
        title="Popularity",
        order=90,
        summary="Recommends what was taken most often in training, the same list for everybody. "
        "Every personalised model should beat it.",
        paper="The usual baseline; counts of the training log",
        geometry="none",
        reasons={
            "reads_order": "Popularity does not read the history.",
            "attention": "Popularity does not read the history, so it attends to nothing.",
            "neighbours": "Popularity knows one number per item, not a place among other items.",
            "map": "Popularity knows one number per item; there is no space to draw.",
        },
        variants=(Variant("popularity", "grey", OnPage(chosen=True, at_once=True)),),
    )
    exports = ("constant", "vectors")
    min_history = 0
    reads_order = False

    def __init__(self, config: Any, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, 1
        self.counts = nn.Buffer(torch.zeros(num_items))

    def fit(self, items: Tensor, offsets: Tensor) -> Any:
        """items: int64 [events], the training log; offsets: int64 [users + 1]"""
        self.counts.copy_(torch.bincount(items, minlength=self.num_items).float())

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return (items[:, :1] * 0).float()

    def index(self) -> ItemIndex:
        return ItemIndex(self.counts.new_zeros(self.num_items, 1), self.counts)
