"""Mult-VAE (Liang, Krishnan, Hoffman & Jebara, WWW 2018): a variational autoencoder of the set of items that somebody took.

x, 1 for each item of the history and 0 for the others, is divided by its length ‖x‖; a tanh layer and a linear one give the
mean μ and the log-variance of a Gaussian; a draw z of it goes through a tanh layer and a linear one to a logit per item, whose
softmax is the multinomial distribution that the history is taken to be drawn from. As a query and an index: q = the tanh layer
after z, rows and bias = weights and bias of the output layer. Where nothing is learnt, z = μ and nothing is drawn.

x has one non-zero number per item of the history, so its product with the first layer's weights is a sum over their rows. Items
are sorted before they are summed: a history is a set, and its order changes no bit of the answer.

`variational=False` is Mult-DAE of the same paper: no variance, and a tanh at the code. docs/models.md lists what differs from the
paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, Recommender
from engine.models.layers import dropout


@dataclass(frozen=True)
class MultVAEConfig:
    hidden: int = 600
    """Width of the layers before and after the code."""
    dim: int = 200
    """Width of the code z."""
    dropout: float = 0.5
    """On the normalised history, in training: each of its items is left out with this probability."""
    max_length: int = 1000
    """Latest events of a history that are read."""
    variational: bool = True
    """False: Mult-DAE, a denoising autoencoder without a distribution over codes (objective.beta then counts for nothing)."""


class MultVAE(Recommender):
    name = "mult-vae"
    Config = MultVAEConfig
    objective = "multinomial"
    kind = "collaborative"
    card = Card(
        title="Mult-VAE",
        order=37,
        summary="Squeezes the set of items that somebody took into a small code, and draws from it how likely every item is, "
        "all in one step. It learns which items are taken by the same people, whatever came first.",
        paper="Liang, Krishnan, Hoffman & Jebara, Variational Autoencoders for Collaborative Filtering, WWW 2018",
        reasons={"attention": "Mult-VAE adds up the items of a history and attends to none of them."},
        variants=(Variant("mult-vae", "brown", OnPage(examples=1)),),
    )
    reads_order = False
    histories = 128

    def __init__(self, config: MultVAEConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.items = nn.Embedding(num_items + 1, config.hidden, padding_idx=num_items)
        self.items_bias = nn.Parameter(torch.empty(config.hidden))
        self.encoder = nn.Linear(config.hidden, config.dim * (1 + config.variational))
        self.decoder = nn.Linear(config.dim, config.hidden)
        self.output = nn.Linear(config.hidden, num_items)
        with torch.no_grad():
            self.items.weight[self.pad] = 0
            for weight in (self.items.weight[:num_items], *(layer.weight for layer in self.layers)):
                nn.init.xavier_uniform_(weight, generator=generator)
            for bias in (self.items_bias, *(layer.bias for layer in self.layers)):
                nn.init.trunc_normal_(bias, std=0.001, a=-0.002, b=0.002, generator=generator)

    @property
    def layers(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.encoder, self.decoder, self.output

    def code(self, items: Tensor) -> tuple[Tensor, Tensor | None]:
        """Mean and log-variance of the code after each history, float32 [batch, dim]; of Mult-DAE the code and None.

        items: int64 [batch, length]; in training, items of the history are left out at random.
        """
        ids = items.sort(1).values
        again = torch.cat([ids[:, :1] < 0, ids[:, 1:] == ids[:, :-1]], 1)  # the first of each row is new
        real = ((ids != self.pad) & ~again).to(self.items.weight.dtype)
        weights = real / real.sum(1, keepdim=True).clamp(min=1).sqrt()  # the numbers of x / ‖x‖ that are not 0
        weights = dropout(weights, self.config.dropout, self.training)
        code = self.encoder(torch.tanh(weighted_sum(self.items.weight, ids, weights) + self.items_bias)).float()
        if not self.config.variational:
            return torch.tanh(code), None
        return code[:, : self.config.dim], code[:, self.config.dim :]

    def decode(self, mean: Tensor, log_variance: Tensor | None) -> Tensor:
        """The query of a code, float32 [batch, hidden]: of its mean, in training of a draw."""
        if self.training and log_variance is not None:
            mean = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return torch.tanh(self.decoder(mean)).float()

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.decode(*self.code(items))

    def index(self) -> ItemIndex:
        return ItemIndex(self.output.weight, self.output.bias)


def weighted_sum(table: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Σ_j weights[·, j] · table[rows[·, j]], [batch, dim]. rows: int64 [batch, length]; weights: [batch, length]."""
    if torch.compiler.is_exporting():  # ONNX has no such sum; the runtime keeps batches × lengths small
        return (F.embedding(rows, table) * weights.unsqueeze(-1)).sum(1)
    there = weights != 0
    counts = there.sum(1)
    return F.embedding_bag(rows[there], table, counts.cumsum(0) - counts, mode="sum", per_sample_weights=weights[there])
