"""LightGCN (He, Deng, Wang, Li, Zhang & Wang, SIGIR 2020): propagation over the graph and nothing else.

E^(k+1) = D^-1/2 A D^-1/2 E^(k), without weights, activation or self-connection; the final vector of a node is the mean of its
layers 0 … K; a score is a dot product. What is learnt is E⁰ alone.

**Fold-in.** All of it is linear: over the items h of a history, with e of the item i in layer k,
q = (1/|h| Σ e_i⁰ + 1/√|h| Σ (e_i⁰ + … + e_i^(K−1)) / √|N_i|) / (K + 1). Both sums are one gather from one table.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.graph import NO_ATTENTION, Graph, GraphRecommender, Layer, squared


@dataclass(frozen=True)
class LightGCNConfig:
    dim: int = 64
    """Width d of the vectors (paper: 64)."""
    layers: int = 3
    """Propagations K (paper: 3; its ablation has 1 to 4)."""
    init_std: float = 0.1
    """Standard deviation that E⁰ is drawn with (authors: .1)."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class LightGCN(GraphRecommender):
    name = "lightgcn"
    Config = LightGCNConfig
    objective = "pairs"
    kind = "collaborative"
    card = Card(
        title="LightGCN",
        order=34,
        summary="Spreads vectors of users and items over the graph of who has what, and takes the mean of all layers: an item is "
        "near a history that reaches it over many short paths. The order of the history does not matter.",
        paper="He, Deng, Wang, Li, Zhang & Wang, LightGCN: Simplifying and Powering Graph Convolution Network for "
        "Recommendation, SIGIR 2020",
        reasons={"attention": NO_ATTENTION},
        variants=(Variant("lightgcn", "teal", OnPage(examples=10)),),
    )
    sums_paths = True

    def __init__(
        self, config: LightGCNConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__(num_items, num_users, config.dim, config.max_length, graph)
        self.config = config
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=config.init_std, generator=generator)

    @classmethod
    def bytes_needed(cls, config: LightGCNConfig, graph: Graph) -> int:
        # parameters, their gradient and Adam's two moments; layers 0 … K and their mean; gradients of a layer and of the mean
        tables = 4 + config.layers + 2 + 3
        return graph.bytes + 4 * tables * (graph.num_users + graph.num_items) * config.dim

    def layers(self) -> list[Layer]:
        layers: list[Layer] = [(self.users.weight, self.items.weight)]
        for _ in range(self.config.layers):
            layers.append(self.propagation(*layers[-1]))
        return layers

    def final(self, layers: list[Layer]) -> Layer:
        users, items = (sum(side[1:], side[0]) / len(side) for side in zip(*layers, strict=True))
        return users, items

    def fold_table(self, layers: list[Layer]) -> Tensor:
        """[items, 2 dim]: an item's share of the mean of e⁰, and what it sends in all layers."""
        items = [items for _, items in layers]
        sent = sum(items[:-1], torch.zeros_like(items[0])) / self.propagation.item_degrees.sqrt()
        return torch.cat([items[0], sent], dim=1) / len(layers)

    def fold(self, sums: Tensor, count: Tensor) -> Tensor:
        initial, received = sums.chunk(2, dim=1)
        return initial / count + received / count.sqrt()

    def penalised(self, users: Tensor, items: Tensor, vectors: Layer) -> Tensor:
        """The batch's rows of E⁰ (authors' code), not those of the layers that are scored with."""
        return squared(F.embedding(users, self.users.weight)) + squared(F.embedding(items, self.items.weight))
