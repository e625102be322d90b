"""Windows: L items in a row predict the T that follow, by distance (AttRec, 3.5).

Each training sequence gives one window per position that has a following item; windows near the start are padded on the left,
windows near the end have fewer targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.attrec import AttRec
from engine.models.layers import dropout
from engine.training.sampling import Taken, gather_last, shuffled

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class WindowConfig:
    """L items in a row predict the T after them (AttRec)."""

    targets: int = 3
    """Items predicted per window, T."""
    negatives: int = 1
    """Negatives per target, uniform outside the user's training items."""
    margin: float = 0.5
    """Hinge margin γ."""
    dropout: float = 0.0
    """On the gathered vectors of users and items (an option of later implementations)."""
    l2: float = 0.001
    """Weight of ½‖·‖² over the vectors that an example touches (authors' code: .001 over whole tables)."""


class Windows:
    """items: int64 [events] on the device, the training log; offsets: int64 [users + 1] beside it."""

    def __init__(
        self,
        config: WindowConfig,
        model: AttRec,
        items: Tensor,
        offsets: Tensor,
        batch_size: int,
    ) -> None:
        self.config, self.batch_size, self.items = config, batch_size, items
        self.pad, self.size = model.pad, model.config.window
        lengths = offsets.diff()
        user = torch.repeat_interleave(torch.arange(len(lengths), device=items.device), lengths)
        place = torch.arange(len(items), device=items.device) - offsets[user]
        first = (place > 0).nonzero().squeeze(1)  # first target of each window
        self.first, self.user = first, user[first]
        self.before = place[first]
        self.after = (offsets[1:][self.user] - first).clamp(max=config.targets)
        self.taken = Taken(items, offsets, model.num_items)

    @property
    def steps(self) -> int:
        return -(-len(self.first) // self.batch_size)

    @property
    def typical_targets(self) -> float:
        return float(self.after.sum()) / self.steps

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        yield from shuffled(len(self.first), self.batch_size, generator)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        rows = examples.to(self.items.device)
        first, user = self.first[rows], self.user[rows]
        window = gather_last(self.items, first, self.before[rows], self.size, self.pad)
        ahead = torch.arange(self.config.targets, device=rows.device)
        real = ahead < self.after[rows][:, None]
        targets = torch.where(real, self.items[(first[:, None] + ahead).clamp(max=len(self.items) - 1)], self.pad)
        shape = (len(rows), self.config.targets, self.config.negatives)
        return user, window, targets, self.taken.negatives(user[:, None, None], shape, generator)

    def targets(self, batch: Batch) -> Tensor:
        return (batch[2] != self.pad).sum(1)

    def loss(self, model: AttRec, batch: Batch) -> Tensor:
        users, window, targets, negatives = batch
        config = self.config
        real = (targets != self.pad).float()
        intent, _ = model.attended(window)
        people = dropout(model.users(users), config.dropout, model.training)
        intent = dropout(intent, config.dropout, model.training)
        wanted = torch.cat([targets.unsqueeze(-1), negatives], dim=-1)  # [batch, T, 1 + negatives]
        taste, aim = model.taste(wanted), model.intent(wanted)
        omega = model.config.omega
        distance = omega * (people[:, None, None] - taste).square().sum(-1)
        distance = distance + (1 - omega) * (intent[:, None, None] - aim).square().sum(-1)
        wrong = F.relu(config.margin + distance[..., :1] - distance[..., 1:]).sum(-1)
        loss = (wrong * real).sum()
        if config.l2:
            norms = (taste.square() + aim.square()).sum(-1)
            norms = norms[..., 0] * real + norms[..., 1:].sum(-1) * real
            touched = people.square().sum(-1) + model.intent(window).square().sum((-1, -2))
            loss = loss + config.l2 / 2 * (norms.sum() + touched.sum() + model.project.weight.square().sum())
        return loss / real.sum().clamp(min=1)

    def after_step(self, model: AttRec) -> None:
        if model.config.clip:
            model.clip_to_ball()
