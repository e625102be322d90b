"""Text neighbours: items of which much the same is said as of the latest ones. Nothing is learned; all it takes is words.

An item's row is the vector of its text by a sentence encoder, the mean of the catalogue taken off, at unit length; an item
without words has zeros. The query is the sum of decay^age · row over the latest items, at unit length: a score is a cosine.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, Recommender


@dataclass(frozen=True)
class TextNeighboursConfig:
    encoder: str = "auto"
    """The text encoder, as `seqscope embed` takes it."""
    fields: tuple[str, ...] = ()
    """Columns of the catalogue that make up an item's text; empty: every column of words."""
    max_length: int = 20
    """Latest items read."""
    decay: float = 0.8
    """What an item weighs of what the next newer one does; 1 takes the plain mean."""
    centre: bool = True
    """Take the catalogue's mean vector off first: what all items have in common says nothing of any."""


class TextNeighbours(Recommender):
    name = "text-neighbours"
    Config = TextNeighboursConfig
    objective = "counts"
    kind = "text"
    card = Card(
        title="Text neighbours",
        order=70,
        summary="Recommends items whose texts are similar to those of the latest items, the newest weighted most. It "
        "uses no interactions of other users, so it can recommend items without any.",
        paper="Mean of sentence vectors (Reimers & Gurevych, Sentence-BERT, EMNLP 2019), newest weighted most; a baseline",
        reasons={
            "attention": "It weighs items by their age alone; there is nothing it chooses to look at.",
            "probability": "Its scores are cosines that put items in order; they are no probabilities.",
        },
        variants=(Variant("text-neighbours", page=OnPage()),),
    )
    needs = ("vectors",)
    needs_log = False
    exports = ("vectors", "sentence")
    unseen_items = True

    rows: Tensor
    centre: Tensor

    def __init__(
        self,
        config: TextNeighboursConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        vectors: np.ndarray,
    ) -> None:
        """vectors: float32 [items, d], zeros for an item without words."""
        super().__init__()
        if vectors.shape[0] != num_items:
            raise ValueError(f"{len(vectors)} vectors for {num_items} items")
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        raw_vectors = torch.from_numpy(vectors)
        said = raw_vectors.any(1, keepdim=True)
        mean = (
            raw_vectors[said[:, 0]].mean(0)
            if config.centre and said.any()
            else raw_vectors.new_zeros(raw_vectors.shape[1])
        )
        rows = F.normalize(raw_vectors - mean, dim=1) * said
        # made of the vectors, which the run keeps; the last row is padding
        self.rows = nn.Buffer(F.pad(rows, (0, 0, 0, 1)), persistent=False)
        self.centre = nn.Buffer(mean, persistent=False)

    def fit(self, items: Tensor, offsets: Tensor) -> None:
        """What people took plays no part."""

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        age = torch.arange(items.shape[1] - 1, -1, -1, device=items.device)
        weights = self.config.decay ** age.to(self.rows.dtype)
        return F.normalize((self.rows[items] * weights[:, None]).sum(1), dim=1)

    def index(self) -> ItemIndex:
        return ItemIndex(self.rows[:-1], self.rows.new_zeros(self.num_items))
