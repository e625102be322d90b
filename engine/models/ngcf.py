"""NGCF (Wang, He, Wang, Feng & Chua, SIGIR 2019): LightGCN's ancestor, with weights and an activation in every layer.

A node u receives from each neighbour i the message (W1 e_i + W2 (e_i ⊙ e_u)) / √(|N_u| |N_i|) and from itself W1 e_u; its next
vector is LeakyReLU(.2) of their sum, and its final one layers 0 … L side by side. Since Σ e_i ⊙ e_u = (Σ e_i) ⊙ e_u, a layer
needs one propagation S of the vectors E: E' = LeakyReLU((S + E) W1 + (S ⊙ E) W2).

The published code, with which the paper's figures were obtained, computes something else. `variant="code"` follows it:
- two activations, E' = LeakyReLU(Ŝ W1 + b1) + LeakyReLU((Ŝ ⊙ E) W2 + b2), with biases;
- Ŝ = (D⁻¹A + I) E, which its README calls the default (its option's own default is D⁻¹(A + I));
- the layers' outputs have length 1 in the final vector, and their own length on their way to the next layer;
- the L2 term is over the final vectors of the batch. The paper's is over all parameters: here, in each batch, over the rows of E⁰
  that it touches and the matrices.

Dropout, of both variants: message dropout is on the output of a layer (before or after LeakyReLU is the same). Node dropout
silences nodes in a layer: nobody hears what they send, and they still hear themselves. The code leaves out single edges in its
place, where it is switched on, which the published commands do not.

**Fold-in.** A new node takes the same steps: e⁰ is the mean of its items' e⁰, and in layer l it receives from its items' vectors
of layer l − 1. That is one gather from a table with a row per layer of every item.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.graph import NO_ATTENTION, Graph, GraphRecommender, Layer, squared
from engine.models.layers import dropout

SLOPE = 0.2
"""Of LeakyReLU below 0: the default of TensorFlow, which the authors use."""


@dataclass(frozen=True)
class NGCFConfig:
    dim: int = 64
    """Width d of the vectors, and of every layer's (paper: 64)."""
    layers: int = 3
    """Propagations L (paper: 3; its ablation has 1 to 4)."""
    message_dropout: float = 0.1
    """On the output of every layer (paper: .1)."""
    node_dropout: float = 0.0
    """Share of nodes that send nothing in a layer (paper: chosen from 0 to .8; the published commands leave it off)."""
    variant: Literal["paper", "code"] = "paper"
    """paper: symmetric normalisation, one activation over the sum. code: D⁻¹A + I, two activations with biases, layers of
    length 1, as published and as the paper's figures were obtained."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class Mix(nn.Module):
    """What a layer does with a node and what it received, the same for users, items and new nodes."""

    def __init__(self, config: NGCFConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config, bias = config, config.variant == "code"
        self.own, self.product = (nn.Linear(config.dim, config.dim, bias=bias) for _ in range(2))  # W1, W2
        for layer in (self.own, self.product):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(self, node: Tensor, received: Tensor) -> Tensor:
        """node: [nodes, dim] of the layer before; received: [nodes, dim], the sum of what neighbours sent."""
        messages = received + node
        if self.config.variant == "code":
            mixed = F.leaky_relu(self.own(messages), SLOPE) + F.leaky_relu(self.product(messages * node), SLOPE)
        else:
            mixed = F.leaky_relu(self.own(messages) + self.product(received * node), SLOPE)
        return dropout(mixed.float(), self.config.message_dropout, self.training)


class _Normalised(torch.autograd.Function):
    """F.normalize of the rows of [nodes, dim], in fewer passes over all nodes: the gradient is (g − y (y · g)) / ‖x‖."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True).clamp_(min=1e-12)
        normalised = vectors / lengths
        ctx.save_for_backward(normalised, lengths)
        return normalised

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        normalised, lengths = ctx.saved_tensors
        radial = (gradient * normalised).sum(1, keepdim=True)
        return torch.addcmul(gradient, normalised, radial, value=-1).div_(lengths)


class NGCF(GraphRecommender):
    name = "ngcf"
    Config = NGCFConfig
    objective = "pairs"
    kind = "collaborative"
    card = Card(
        title="NGCF",
        order=35,
        summary="Sends messages along the graph of who has what, layer by layer, through learnt weights; what an item and a user "
        "have in common strengthens them. The order of the history does not matter.",
        paper="Wang, He, Wang, Feng & Chua, Neural Graph Collaborative Filtering, SIGIR 2019",
        reasons={"attention": NO_ATTENTION},
        variants=(Variant("ngcf", "wine", OnPage(examples=10)),),
    )

    def __init__(
        self, config: NGCFConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__(num_items, num_users, config.dim, config.max_length, graph, means=config.variant == "code")
        self.config = config
        for table in (self.users, self.items):
            nn.init.xavier_uniform_(table.weight, generator=generator)
        self.mixes = nn.ModuleList(Mix(config, generator) for _ in range(config.layers))

    @classmethod
    def bytes_needed(cls, config: NGCFConfig, graph: Graph) -> int:
        # parameters, their gradient and Adam's two moments; in a layer: node, received, their sum and product, the two mixed, the
        # mask and the output of dropout, the length; all layers side by side, with their gradient
        tables = 4 + 9 * config.layers + 2 * (config.layers + 1)
        transposed = 8 * len(graph.items) if config.variant == "code" else 0  # weights, as the matrix is not symmetric
        return graph.bytes + transposed + 4 * tables * (graph.num_users + graph.num_items) * config.dim

    @property
    def layer_dim(self) -> int:
        width: int = self.config.dim
        return width

    def layers(self) -> list[Layer]:
        layers: list[Layer] = [(self.users.weight, self.items.weight)]
        for mix in self.mixes:
            users, items = layers[-1]
            received = self.propagation(self._speaking(users), self._speaking(items))
            layers.append((mix(users, received[0]), mix(items, received[1])))
        return layers

    def _speaking(self, nodes: Tensor) -> Tensor:
        """`nodes` [nodes, dim], in training with some silenced and the others louder."""
        if not self.training or not self.config.node_dropout:
            return nodes
        return nodes * dropout(nodes.new_ones(len(nodes), 1), self.config.node_dropout)

    def _shown(self, layers: list[Tensor]) -> Tensor:
        """Layers 0 … L side by side, [nodes, (L + 1) dim]."""
        if self.config.variant == "code":
            layers = [layers[0], *(_Normalised.apply(layer) for layer in layers[1:])]
        return torch.cat(layers, dim=1)

    def final(self, layers: list[Layer]) -> Layer:
        users, items = (self._shown(list(side)) for side in zip(*layers, strict=True))
        return users, items

    def fold_table(self, layers: list[Layer]) -> Tensor:
        """[items, (L + 1) dim]: an item's e⁰, and what it sends in each layer."""
        items = [items for _, items in layers]
        if self.config.variant == "paper":
            sent = [layer / self.propagation.item_degrees.sqrt() for layer in items[:-1]]
        else:
            sent = items[:-1]
        return torch.cat([items[0], *sent], dim=1)

    def fold(self, sums: Tensor, count: Tensor) -> Tensor:
        initial, *received = sums.split(self.config.dim, dim=1)
        scale = count.sqrt() if self.config.variant == "paper" else count
        layers = [initial / count]
        for mix, messages in zip(self.mixes, received, strict=True):
            layers.append(mix(layers[-1], messages / scale))
        return self._shown(layers)

    def penalised(self, users: Tensor, items: Tensor, vectors: Layer) -> Tensor:
        if self.config.variant == "code":
            # layers of length 1 add one each, which has no gradient
            user, item = (side[..., : self.config.dim] for side in vectors)
            return squared(user) + squared(item) + self.config.layers * (users.numel() + items.numel())
        return squared(F.embedding(users, self.users.weight)) + squared(F.embedding(items, self.items.weight))

    def penalised_matrices(self) -> Tensor | float:
        if self.config.variant == "code":
            return 0.0
        return sum((squared(parameter) for parameter in self.mixes.parameters()), self.users.weight.new_zeros(()))
