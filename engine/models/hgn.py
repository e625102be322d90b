"""HGN, hierarchical gating network (Ma, Kang & Liu, KDD 2019): which features of the latest items count, and which items.

Of the latest L items S (L × d) and a user's vector u:

    feature gate (3.2)    S' = S ⊙ σ(W1 S + W2 u + b)
    instance gate (3.3)   S'' = S' ⊙ σ(w3 · S' + W4 u)        a number per item
    score (3.4, 3.5)      u · q_i + mean(S'') · q_i + Σ_k s_k · q_i        taste, window, item beside item

In the authors' code the weights of the instance gate are no parameters and stay as they were drawn; here they are learnt.
`variant="code"` is their code otherwise: S'' is divided by the sum of the instance gates instead of the number of items, and
items have a bias.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.factorisation import TASTE
from engine.models.graph import Graph
from engine.models.windowed import UserAndWindow

GATED, BESIDE = "the latest items, through the gates", "each of the latest items, beside it"
"""Parts of a score."""


@dataclass(frozen=True)
class HGNConfig:
    dim: int = 50
    """Width d of item and user vectors (paper: 50)."""
    window: int = 5
    """Latest items read, L (paper: 5)."""
    variant: Literal["paper", "code"] = "paper"
    """code: the mean over items is weighted by their gates, and items have a bias, as in the authors' code."""
    fold_in: int = 200
    """Latest items of a history that fold a user in."""


class HGN(UserAndWindow):
    name = "hgn"
    Config = HGNConfig
    card = Card(
        title="HGN",
        order=32,
        summary="Gates decide which features of the last few items count for this user, and which of these items; beside them "
        "stand the user's lasting taste and how well items go with each of the last ones.",
        paper="Ma, Kang & Liu, Hierarchical Gating Networks for Sequential Recommendation, KDD 2019",
        reasons={
            "attention": "It has gates in place of attention: each item's is open or closed whatever the others' are."
        },
        variants=(Variant("hgn", page=OnPage(examples=10)),),
    )

    def __init__(
        self, config: HGNConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__(config, num_items, num_users, generator, graph, targets_dim=config.dim)
        self.feature_item = nn.Linear(config.dim, config.dim)  # W1 and b
        self.feature_user = nn.Linear(config.dim, config.dim, bias=False)  # W2
        self.instance_item = nn.Linear(config.dim, 1, bias=False)  # w3
        self.instance_user = nn.Linear(config.dim, config.window, bias=False)  # W4
        for gate in (self.feature_item, self.feature_user, self.instance_item, self.instance_user):
            nn.init.xavier_uniform_(gate.weight, generator=generator)
        nn.init.zeros_(self.feature_item.bias)
        self.gated = config.window
        self.score_parts = dict.fromkeys((TASTE, GATED, BESIDE), config.dim)
        if config.variant == "code":
            self.bias = nn.Parameter(torch.zeros(num_items))

    def _gates(self, window: Tensor, people: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Item vectors S [batch, L, d], gates of their features [batch, L, d] and of the items [batch, L], 0 at padding."""
        vectors = self.items(window)
        features = torch.sigmoid(self.feature_item(vectors) + self.feature_user(people).unsqueeze(1))
        instances = self.instance_item(vectors * features).squeeze(-1) + self.instance_user(people)
        return vectors, features, torch.sigmoid(instances) * (window != self.pad)

    def _parts(self, window: Tensor, people: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        vectors, features, instances = self._gates(window, people)
        gated = (vectors * features * instances.unsqueeze(-1)).sum(1)
        if self.config.variant == "paper":
            count = (window != self.pad).sum(1, keepdim=True).clamp(min=1)
        else:
            count = instances.sum(1, keepdim=True).clamp(min=1e-9)
        return people, gated / count, vectors.sum(1)

    def read(self, window: Tensor, people: Tensor) -> Tensor:
        taste, gated, beside = self._parts(window, people)
        return taste + gated + beside

    def gates(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        _, _, instances = self._gates(self.window(items), self.people(items, users))
        return instances

    def query_parts(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """Taste, gated window, item beside item: float32 [batch, 3, dim]."""
        return torch.stack(self._parts(self.window(items), self.people(items, users)), dim=1)
