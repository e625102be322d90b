"""GRU4Rec (Hidasi et al., ICLR 2016) and GRU4Rec+ (Hidasi & Karatzoglou, CIKM 2018): one network, other losses.

A gated recurrent unit reads the history into one state (2016, eq. 1 to 4):

    z = σ(W_z x + U_z h),  r = σ(W_r x + U_r h),  ĥ = tanh(W x + r ⊙ (U h)),  h' = z ⊙ h + (1 − z) ⊙ ĥ

and a score is the product of the state with an item's output vector, plus the item's bias. There are no biases in the unit, as
in the paper, so padding (a vector of zeros) leaves the first state as it is, at zero. 2016 learns from the other sequences of a
batch (TOP1, BPR, cross-entropy), 2018 from extra negatives that the batch shares, of which the hardest count most (BPR-max,
TOP1-max): `objective.loss`, `batch_negatives`, `shared_negatives`.

Differs: the reset gate is applied after U (cuDNN's unit, which the authors' PyTorch code has, too; the paper has U (r ⊙ h)).
docs/models.md lists what differs in how it is trained.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, LastState
from engine.models.layers import dropout, gru, gru_states


@dataclass(frozen=True)
class GRU4RecConfig:
    dim: int = 100
    """Width of the state and of item vectors (2016: 100 or 1000; 2018: 100)."""
    layers: int = 1
    """GRU layers, each of which reads the states of the one before it (both papers: 1 is best)."""
    dropout: float = 0.0
    """On the states (authors: 0 to .5, found on validation)."""
    input_dropout: float = 0.0
    """On the vectors of the items that are read."""
    max_length: int = 50
    """Latest items read."""
    shared_items: bool = True
    """One item table for what is read and what is recommended (2018, 4.1: "constrained embedding"); False: two."""


class GRU4Rec(LastState):
    name = "gru4rec"
    Config = GRU4RecConfig
    kind = "sequential"
    card = Card(
        title="GRU4Rec",
        order=16,
        summary="Reads the history left to right with a gated recurrent network that keeps one state, and matches the state with "
        "every item. Other users' next items are what it learns to rank below.",
        paper="Hidasi, Karatzoglou, Baltrunas & Tikk, Session-based Recommendations with Recurrent Neural Networks, ICLR 2016",
        reasons={"attention": "It keeps one state and looks back at nothing."},
        variants=(
            Variant("gru4rec", page=OnPage(examples=1)),
            Variant(
                "gru4rec-plus",
                page=OnPage(examples=1),
                order=17,
                summary="GRU4Rec that learns from many negatives at once, drawn by popularity, of which those that it ranks "
                "highest count most (BPR-max).",
                paper="Hidasi & Karatzoglou, Recurrent Neural Networks with Top-k Gains for Session-based Recommendations, "
                "CIKM 2018",
            ),
        ),
    )

    def __init__(self, config: GRU4RecConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.items = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)
        self.gru = gru(config.dim, config.dim, config.layers, config.dropout, generator)
        self.draws_apart = config.layers == 1  # PyTorch's own dropout is between layers
        self.targets = None if config.shared_items else nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)
        self.bias = nn.Parameter(torch.zeros(num_items))
        for table in (self.items, self.targets):
            if table is not None:
                nn.init.xavier_uniform_(table.weight, generator=generator)
                with torch.no_grad():
                    table.weight[self.pad] = 0

    def hidden(self, items: Tensor) -> Tensor:
        """State after every position, float32 [batch, length, dim]; zeros at padding. items: int64 [batch, length]."""
        vectors = dropout(self.items(items), self.config.input_dropout, self.training)
        return dropout(gru_states(self.gru, vectors), self.config.dropout, self.training)

    @property
    def table(self) -> Tensor:
        """Vectors that a state is matched with, [num_items + 1, dim]; the last row is padding."""
        return (self.items if self.targets is None else self.targets).weight

    def index(self) -> ItemIndex:
        return ItemIndex(self.table[: self.num_items], self.bias)
