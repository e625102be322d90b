"""ZESRec (Ding et al., Zero-Shot Recommender Systems, arXiv 2105.08318): learnt from one catalogue, asked on another.

    v_j = f(x_j) + ε_j,  ε_j ~ N(0, 1/λ)       x_j the vector of an item's text, f one layer, ε_j what its words do not say
    score(j) = h · v_j,   h = GRU(v of the history)

The maximum a posteriori is learnt: λ/2 Σ‖ε_j‖² stands beside the softmax over the catalogue. What is learnt of the words serves
any catalogue; items that nobody has been seen with have ε = 0. docs/models.md says what differs.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.layers import dropout, gru, gru_states
from engine.models.unisrec import Described


@dataclass(frozen=True)
class ZESRecConfig:
    encoder: str = "auto"
    """The text encoder, as `seqscope embed` takes it (paper: BERT)."""
    fields: tuple[str, ...] = ()
    """Columns of the catalogue that make up an item's text; empty: every column of words."""
    offset_precision: float = 10.0
    """λ: how sure it is that an item is what its words say."""
    dim: int = 64
    """Width of item vectors and of the state."""
    layers: int = 1
    """GRU layers."""
    dropout: float = 0.2
    """On the vectors that are read and on the states."""
    max_length: int = 50
    """Latest items read."""


class ZESRec(Described):
    name = "zesrec"
    Config = ZESRecConfig
    kind = "text"
    card = Card(
        title="ZESRec",
        order=45,
        summary="Knows an item by the vector of its words and by a small vector of its own, which is left out where the item is "
        "new, and reads the history with a recurrent network. What it learns from one catalogue serves another.",
        paper="Ding, Ma, Deoras, Wang & Wang, Zero-Shot Recommender Systems, 2021",
        reasons={"attention": "It keeps one state and looks back at nothing."},
        variants=(Variant("zesrec", page=OnPage(examples=1)),),
    )
    needs = ("vectors",)
    unseen_items = True
    per_item = "offsets.weight"

    text: Tensor

    def __init__(
        self,
        config: ZESRecConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        vectors: np.ndarray,
    ) -> None:
        """vectors: float32 [items, width], zeros for an item without words."""
        super().__init__()
        if len(vectors) != num_items:
            raise ValueError(f"{len(vectors)} vectors for {num_items} items")
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        # made of the vectors, which the run keeps; the last row is padding
        self.text = nn.Buffer(F.pad(torch.from_numpy(vectors), (0, 0, 0, 1)), persistent=False)
        self.universal = nn.Linear(vectors.shape[1], config.dim, bias=False)  # f
        self.offsets = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)  # ε
        self.gru = gru(config.dim, config.dim, config.layers, config.dropout, generator)
        self.draws_apart = config.layers == 1  # PyTorch's own dropout is between layers
        # text vectors have length 1: each number of theirs is about as large as one of a state
        nn.init.normal_(self.universal.weight, generator=generator)
        nn.init.zeros_(self.offsets.weight)

    def made(self, items: Tensor | None) -> Tensor:
        """v"""
        text, offsets = self.text, self.offsets.weight
        if items is not None:
            text, offsets = F.embedding(items, text), self.offsets(items)
        return self.universal(text) + offsets

    def hidden(self, items: Tensor) -> Tensor:
        """h after every position, float32 [batch, length, dim]; zeros at padding. items: int64 [batch, length]."""
        vectors = dropout(self.vectors(items), self.config.dropout, self.training)
        return dropout(gru_states(self.gru, vectors), self.config.dropout, self.training)

    @property
    def table(self) -> Tensor:
        """v, [num_items + 1, dim]; the last row is padding."""
        return self.vectors()

    def prior(self) -> Tensor:
        """−log p(ε) but for a constant, float32 scalar."""
        return self.config.offset_precision / 2 * self.offsets.weight.square().sum()

    def read_items(self) -> None:
        """Nothing is left to do: vectors are made whenever weights are loaded, and offsets begin with zeros."""
