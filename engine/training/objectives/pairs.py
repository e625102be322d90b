"""Pairs: an item that a user has scores above one that the user has not (BPR; LightGCN, NGCF).

loss = mean of −log σ(y_ui − y_uj) + λ/2 · (Σ‖·‖² of what the batch touches) / batch, as in the authors' code. All layers are
computed once per batch, whatever its size: large batches mean fewer propagations an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.graph import GraphRecommender
from engine.training.sampling import Taken, shuffled

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class PairsConfig:
    """An item that a user has scores above one that the user has not: BPR (LightGCN, NGCF)."""

    sampling: Literal["pairs", "users"] = "pairs"
    """pairs: every training pair once an epoch, as BPR is defined. users: as many draws of a uniform user and one of their items,
    as both authors' code does, so that users with few items weigh as much as those with many."""
    negatives: int = 1
    """Negatives per pair, uniform outside the user's training items."""
    l2: float = 1e-4
    """λ of ½‖·‖² per example (LightGCN: 10⁻⁴ over the batch's rows of E⁰; NGCF: 10⁻⁵)."""


class Pairs:
    """items: int64 [events] on the device, the training log; offsets: int64 [users + 1] beside it."""

    def __init__(
        self,
        config: PairsConfig,
        model: GraphRecommender,
        items: Tensor,
        offsets: Tensor,
        batch_size: int,
    ) -> None:
        self.config, self.batch_size = config, batch_size
        self.taken = Taken(items, offsets, model.num_items)
        self.users, self.items = self.taken.keys // model.num_items, self.taken.keys % model.num_items
        self.somebody, self.counts = torch.unique_consecutive(self.users, return_counts=True)
        self.starts = self.counts.cumsum(0) - self.counts

    @property
    def steps(self) -> int:
        return -(-len(self.items) // self.batch_size)

    @property
    def typical_targets(self) -> float:
        return len(self.items) / self.steps

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        yield from shuffled(len(self.items), self.batch_size, generator)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        """users int64 [batch], their items int64 [batch], negatives int64 [batch, negatives]"""
        device = self.items.device
        if self.config.sampling == "pairs":
            pairs = examples.to(device)
        else:
            place = torch.randint(len(self.somebody), (len(examples),), generator=generator, device=device)
            share = torch.rand(len(examples), dtype=torch.float64, generator=generator, device=device)
            pairs = self.starts[place] + (share * self.counts[place]).long()
        users, items = self.users[pairs], self.items[pairs]
        return users, items, self.taken.negatives(users[:, None], (len(users), self.config.negatives), generator)

    def targets(self, batch: Batch) -> Tensor:
        return torch.ones_like(batch[0])

    def loss(self, model: GraphRecommender, batch: Batch) -> Tensor:
        users, items, negatives = batch
        people, rows = model.final(model.layers())
        compared = torch.cat([items[:, None], negatives], dim=1)
        # embedding, not an index: its gradient is added up in the same order every time
        user, item = F.embedding(users, people), F.embedding(compared, rows)
        scores = (user[:, None] * item).sum(-1)
        loss = F.softplus(scores[:, 1:] - scores[:, :1]).mean()
        if self.config.l2:
            touched = model.penalised(users, compared, (user, item)) / len(users)
            # by the whole batch, of which this may be one process's share
            loss = loss + self.config.l2 / 2 * (touched + model.penalised_matrices() / self.batch_size)
        return loss

    def after_step(self, model: GraphRecommender) -> None:
        pass
