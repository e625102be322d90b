"""Mult-VAE and Mult-DAE (Liang, Krishnan, Hoffman & Jebara, WWW 2018): autoencoders of the set of items that somebody took.

x, 1 for each item of the history and 0 for the others, is divided by its length ‖x‖. In Mult-VAE a tanh layer and a linear one
give the mean μ and the log-variance of a Gaussian; a draw z of it goes through a tanh layer and a linear one to a logit per item,
whose softmax is the multinomial distribution that the history is taken to be drawn from. Where nothing is learnt, z = μ and
nothing is drawn. Mult-DAE has no variance, and a tanh at the code. As a query and an index: q = what goes into the last layer,
rows and bias = its weights and bias.

x has one non-zero number per item of the history, so its product with the first layer's weights is a sum over their rows. Items
are sorted before they are summed: a history is a set, and its order changes no bit of the answer. docs/models.md lists what
differs from the paper.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, Recommender
from engine.models.layers import dropout

PAPER = "Liang, Krishnan, Hoffman & Jebara, Variational Autoencoders for Collaborative Filtering, WWW 2018"


class SetAutoencoder(Recommender):
    """A first layer that reads a set of items, others in between, and a last one, as wide as the first: an output per item."""

    kind = "collaborative"
    reads_order = False
    histories = 128

    def __init__(
        self,
        num_items: int,
        max_length: int,
        width: int,
        rate: float,
        encoder: nn.Linear | None,
        decoder: nn.Linear | None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.num_items, self.max_length, self.rate = num_items, max_length, rate
        self.items = nn.Embedding(num_items + 1, width, padding_idx=num_items)
        self.items_bias = nn.Parameter(torch.empty(width))
        self.encoder, self.decoder = encoder, decoder
        self.output = nn.Linear(width, num_items)
        layers = [layer for layer in (encoder, decoder, self.output) if layer is not None]
        with torch.no_grad():
            self.items.weight[self.pad] = 0
            for weight in (self.items.weight[:num_items], *(layer.weight for layer in layers)):
                nn.init.xavier_uniform_(weight, generator=generator)
            for bias in (self.items_bias, *(layer.bias for layer in layers)):
                nn.init.trunc_normal_(bias, std=0.001, a=-0.002, b=0.002, generator=generator)

    def read(self, items: Tensor) -> Tensor:
        """The first layer after tanh, [batch, width]. items: int64 [batch, length]; in training, some are left out at random."""
        ids = items.sort(1).values
        again = torch.cat([ids[:, :1] < 0, ids[:, 1:] == ids[:, :-1]], 1)  # the first of each row is new
        real = ((ids != self.pad) & ~again).to(self.items.weight.dtype)
        weights = real / real.sum(1, keepdim=True).clamp(min=1).sqrt()  # the numbers of x / ‖x‖ that are not 0
        weights = dropout(weights, self.rate, self.training)
        return torch.tanh(weighted_sum(self.items.weight, ids, weights) + self.items_bias)

    def index(self) -> ItemIndex:
        return ItemIndex(self.output.weight, self.output.bias)


# --- Mult-VAE


@dataclass(frozen=True)
class MultVAEConfig:
    RETIRED: ClassVar[dict[str, Any]] = {"variational": True}
    hidden: int = 600
    """Width of the layers before and after the code."""
    dim: int = 200
    """Width of the code z."""
    dropout: float = 0.5
    """On the normalised history, in training: each of its items is left out with this probability."""
    max_length: int = 1000
    """Latest events of a history that are read."""


class MultVAE(SetAutoencoder):
    name = "mult-vae"
    Config = MultVAEConfig
    objective = "multinomial"
    card = Card(
        title="Mult-VAE",
        order=37,
        summary="Compresses the set of items that a user interacted with into a small code, which chance blurs while it learns, "
        "and says from it how likely every item is, all in one step. It learns which items have the same users, whatever came "
        "first.",
        paper=PAPER,
        reasons={"attention": "Mult-VAE adds up the items of a history and attends to none of them."},
        variants=(Variant("mult-vae", "brown", OnPage(examples=1)),),
    )
    encoder: nn.Linear
    decoder: nn.Linear

    def __init__(self, config: MultVAEConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        encoder, decoder = nn.Linear(config.hidden, config.dim * 2), nn.Linear(config.dim, config.hidden)
        super().__init__(num_items, config.max_length, config.hidden, config.dropout, encoder, decoder, generator)
        self.config = config

    def code(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of the code after each history, float32 [batch, dim]. items: int64 [batch, length]."""
        code = self.encoder(self.read(items)).float()
        return code[:, : self.config.dim], code[:, self.config.dim :]

    def decode(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """The query of a code, float32 [batch, hidden]: of its mean, in training of a draw."""
        if self.training:
            mean = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return torch.tanh(self.decoder(mean)).float()

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.decode(*self.code(items))


# --- Mult-DAE


@dataclass(frozen=True)
class MultDAEConfig:
    hidden_layers: int = 0
    """Before and after the code: 0, as the authors found best for Mult-DAE, or 1, as in Mult-VAE."""
    hidden: int = 600
    """Width of these layers, where they are there."""
    dim: int = 200
    """Width of the code."""
    dropout: float = 0.5
    """On the normalised history, in training: each of its items is left out with this probability."""
    max_length: int = 1000
    """Latest events of a history that are read."""


class MultDAE(SetAutoencoder):
    name = "mult-dae"
    Config = MultDAEConfig
    objective = "denoising"
    card = Card(
        title="Mult-DAE",
        order=38,
        summary="Compresses the set of items that a user interacted with into a small code, and says from it how likely every "
        "item is. It learns to fill in items that are left out at random; it is Mult-VAE without chance in its code.",
        paper=PAPER,
        reasons={"attention": "Mult-DAE adds up the items of a history and attends to none of them."},
        variants=(Variant("mult-dae", page=OnPage(examples=1)),),
    )

    def __init__(self, config: MultDAEConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        width, encoder, decoder = config.dim, None, None
        if config.hidden_layers:
            width, encoder = config.hidden, nn.Linear(config.hidden, config.dim)
            decoder = nn.Linear(config.dim, config.hidden)
        super().__init__(num_items, config.max_length, width, config.dropout, encoder, decoder, generator)
        self.config = config

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        state = self.read(items)
        for layer in (self.encoder, self.decoder):
            state = state if layer is None else torch.tanh(layer(state))
        return state.float()


def weighted_sum(table: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Σ_j weights[·, j] · table[rows[·, j]], [batch, dim]. rows: int64 [batch, length]; weights: [batch, length]."""
    if torch.compiler.is_exporting():  # ONNX has no such sum; the runtime keeps batches × lengths small
        return (F.embedding(rows, table) * weights.unsqueeze(-1)).sum(1)
    there = weights != 0
    counts = there.sum(1)
    return F.embedding_bag(rows[there], table, counts.cumsum(0) - counts, mode="sum", per_sample_weights=weights[there])
