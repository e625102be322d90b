"""Models that read the latest L items and learn from windows: L items in a row and the T that follow (AttRec, Caser, HGN).

`UserAndWindow` is what Caser and HGN have in common: a vector per training user, a table of items that are read, a table of items
that are recommended, a score that is a product.

**Fold-in.** Somebody who has no trained vector gets one by regression from the items of the history (`FoldIn`): from the mean of
what a user's vector is multiplied with in their scores.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from engine.models.base import ItemIndex, Recommender
from engine.models.factorisation import FoldIn, random_table
from engine.models.graph import Graph, squared
from engine.models.layers import dropout, looked_up


class Windowed(Recommender):
    """What the objective "window" asks of a model, whose configuration names its `window` L."""

    objective = "window"
    kind = "sequential"
    trained_users = True
    config: Any

    def window(self, items: Tensor) -> Tensor:
        """The last L columns of int64 [batch, length], padded on the left where length < L."""
        size = self.config.window
        padding = items[:, :1].expand(-1, size) * 0 + self.pad
        return torch.cat([padding, items], dim=1)[:, -size:]

    def window_scores(self, users: Tensor, window: Tensor, candidates: Tensor, rate: float) -> Tensor:
        """Scores of candidates, int64 [batch, …], or what differs from them by the same for all of a row; float32, their shape.

        users: int64 [batch]; window: int64 [batch, L]; rate: dropout on the gathered vectors.
        """
        raise TypeError(f"{type(self).__name__} scores no windows")

    def touched(self, users: Tensor, window: Tensor, candidates: Tensor) -> Tensor:
        """Σ‖·‖² of the vectors that these scores are made of, for an L2 term: a scalar."""
        raise TypeError(f"{type(self).__name__} has no penalty")

    def penalised_matrices(self) -> Tensor | float:
        """Σ‖·‖² of the matrices that it holds as well."""
        return 0.0


class UserAndWindow(Windowed):
    """A score is `read(window, user vector)` times the item's row of `targets`, plus its bias.

    The configuration has dim, window and fold_in. targets_dim: width of a row of `targets`, the last `dim` of which the user's
    vector is multiplied with.
    """

    needs: ClassVar[tuple[str, ...]] = ("graph",)

    def __init__(
        self, config: Any, num_items: int, num_users: int, generator: torch.Generator, graph: Graph, targets_dim: int
    ) -> None:
        super().__init__()
        self.config, self.num_items = config, num_items
        self.max_length = max(config.fold_in, config.window)
        self.users = random_table(num_users, config.dim, 1 / config.dim, generator)
        self.items = random_table(num_items, config.dim, 1 / config.dim, generator, pad=True)
        self.targets = random_table(num_items, targets_dim, 1 / targets_dim, generator, pad=True)
        self.bias: nn.Parameter | None = None
        self.folding = FoldIn(graph, config.dim, config.dim, least=2)  # a window has an item after it

    def read(self, window: Tensor, people: Tensor) -> Tensor:
        """The query, float32 [batch, targets_dim]. window: int64 [batch, L]; people: float32 [batch, dim]."""
        raise TypeError(f"{type(self).__name__} reads nothing")

    def train(self, mode: bool = True) -> UserAndWindow:
        super().train(mode)
        if not mode:
            self.folding.fit(self.users.weight, self.beside_users)
        return self

    @property
    def beside_users(self) -> Tensor:
        """What a user's vector is multiplied with, float32 [items, dim]."""
        return self.targets.weight[: self.num_items, -self.config.dim :]

    def people(self, items: Tensor, users: Tensor | None) -> Tensor:
        """Vectors of trained `users`, or those that histories (int64 [batch, length]) are folded in with: [batch, dim]."""
        return self.folding(items, self.beside_users, self.pad) if users is None else self.users(users)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.read(self.window(items), self.people(items, users))

    def index(self) -> ItemIndex:
        rows = self.targets.weight[: self.num_items]
        return ItemIndex(rows, rows.new_zeros(self.num_items) if self.bias is None else self.bias)

    def window_scores(self, users: Tensor, window: Tensor, candidates: Tensor, rate: float) -> Tensor:
        query = self.read(window, dropout(self.users(users), rate, self.training))
        among = (slice(None), *[None] * (candidates.ndim - 1))
        scores = (self.targets(candidates) * query[among]).sum(
            -1
        )  # on a CPU less than half the time of a batched product
        return scores if self.bias is None else scores + looked_up(self.bias, candidates)

    def touched(self, users: Tensor, window: Tensor, candidates: Tensor) -> Tensor:
        vectors = [self.users(users), self.items(window), self.targets(candidates)]
        return torch.stack([squared(part) for part in vectors]).sum()

    def penalised_matrices(self) -> Tensor:
        tables = {"users.weight", "items.weight", "targets.weight"}
        matrices = [matrix for name, matrix in self.named_parameters() if name not in tables and matrix.ndim > 1]
        return torch.stack([squared(matrix) for matrix in matrices]).sum()
