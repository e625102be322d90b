"""NeuMF (He, Liao, Zhang, Nie, Hu & Chua, WWW 2017): matrix factorisation and a network over the pair, side by side.

    score(u, i) = hᵀ [p_u ⊙ q_i ; MLP([p'_u ; q'_i])]                                    (equation 12, before the sigmoid)

with vectors of their own in both parts, and ReLU layers each half as wide as the one before. It is no dot product of a user and
an item, so the query is the score vector (an identity index), which costs a pass through the network for every item. Its first
layer is linear in the pair, W [p' ; q'] = W_p p' + W_q q', and each half is computed once.

**Fold-in.** Both vectors of somebody new are those that a ridge regression of the training users' gives for the mean of their
items' (engine.models.factorisation).
"""

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex
from engine.models.factorisation import FoldIn, WithUsers, random_table
from engine.models.graph import Graph, squared

NUMBERS = 1 << 24
"""Of the widest layer, for all items and so many histories at once: 64 MiB."""
MOST_NUMBERS = 1 << 26
"""The same of one history, at most: 256 MiB."""


@dataclass(frozen=True)
class NeuMFConfig:
    dim: int = 32
    """Predictive factors: the width of the product's vectors and of the network's last layer (paper: 8 to 64)."""
    layers: int = 3
    """ReLU layers of the network; the first is 2^(layers − 1) times as wide as the last, and reads vectors of half its width."""
    init_std: float = 0.01
    """Standard deviation that vectors are drawn with (paper: .01)."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class NeuMF(WithUsers):
    name = "neumf"
    kind = "collaborative"
    Config = NeuMFConfig
    objective = "pairs"
    card = Card(
        title="NeuMF",
        order=33,
        summary="Asks a network about every user and item: how well do they go together? Beside it stands the plain product "
        "of their vectors, and both are weighed together. The order of the history does not matter.",
        paper="He, Liao, Zhang, Nie, Hu & Chua, Neural Collaborative Filtering, WWW 2017",
        geometry="none",
        reasons={
            "attention": "It has no attention: it asks a network about pairs.",
            "neighbours": "It keeps two vectors for each item, which a network compares with users: no places among items.",
            "map": "It keeps two vectors for each item, which a network compares with users: no space to draw.",
        },
        variants=(Variant("neumf", page=OnPage(examples=10)),),
    )
    reads_order = False

    def __init__(
        self, config: NeuMFConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        widest = config.dim << (config.layers - 1)
        if num_items * widest > MOST_NUMBERS:
            raise ValueError(
                f"for one list it holds {widest:,} numbers for each of {num_items:,} items, and {MOST_NUMBERS:,} in all are the "
                "bound. Lower model.dim or model.layers, or train bpr-mf, which takes a dot product"
            )
        width = config.dim + max(1, widest // 2)
        self.users = random_table(num_users, width, config.init_std, generator)
        self.taste = random_table(num_items, width, config.init_std, generator)
        inputs = 2 * (width - config.dim)
        sizes = [inputs, *(widest >> layer for layer in range(config.layers))]
        self.network = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes))
        self.output = nn.Linear(2 * config.dim, 1, bias=False)
        for layer in (*self.network, self.output):
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        self.histories = max(1, min(512, NUMBERS // (num_items * widest)))
        self.fold_in = FoldIn(graph, width, width)

    def score_pairs(self, user: Tensor, items: Tensor) -> Tensor:
        """float32 [batch, compared]. user: [batch, width]; items: [batch or 1, compared, width]."""
        dim, half = self.config.dim, self.users.weight.shape[1] - self.config.dim
        first, *others = self.network
        of_user = F.linear(user[:, dim:], first.weight[:, :half], first.bias)  # type: ignore[arg-type,index]
        state = F.relu(of_user[:, None] + F.linear(items[..., dim:], first.weight[:, half:]))  # type: ignore[index]
        for layer in others:
            state = F.relu(layer(state))
        weights = self.output.weight[0]
        product = (items[..., :dim] @ (user[:, :dim] * weights[:dim]).unsqueeze(-1)).squeeze(-1)
        return product + state @ weights[dim:]

    def compare(self, users: Tensor, items: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
        user, rows = self.users(users), self.taste(items)
        return self.score_pairs(user, rows), squared(user) + squared(rows)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.score_pairs(self.user_vectors(items, users), self.taste.weight[None])

    def index(self) -> ItemIndex:
        return ItemIndex(None, self.taste.weight.new_zeros(self.num_items))
