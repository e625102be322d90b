"""Cloze: hidden items are filled in from both sides (BERT4Rec, 3.6). Every hidden item becomes [MASK], none is left or swapped.

Examples are windows of at most max_length items over each training sequence, the last one first and the others every
step · max_length items before it. A share of examples hides the last item alone, as recommendation does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.bert4rec import BERT4Rec
from engine.training import losses
from engine.training.sampling import by_length, gather_last, stride, windows

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class ClozeConfig:
    """Items hidden behind [MASK] are filled in (BERT4Rec)."""

    mask_share: float = 0.2
    """Share ρ of items hidden (authors: .6 Beauty, .4 Steam, .2 MovieLens)."""
    max_masked: int = 40
    """At most this many hidden items per sequence (authors: 30 Beauty, 20 Steam, 40 ML-1M, 20 ML-20M)."""
    last_only: float = 0.1
    """Share of examples in which the last item alone is hidden, as at recommendation time (authors: one more copy beside
    10 randomly masked ones)."""
    step: float = 0.5
    """Windows over sequences longer than max_length start every step · max_length items (authors: .5; Beauty .1); 0: the last
    window alone."""


class Cloze:
    """items: int64 [events] on the device, the training log; offsets: int64 [users + 1] beside it."""

    def __init__(
        self,
        config: ClozeConfig,
        model: BERT4Rec,
        items: Tensor,
        offsets: Tensor,
        batch_size: int,
    ) -> None:
        self.config, self.batch_size = config, batch_size
        self.pad, self.mask, self.num_items = model.pad, model.mask_token, model.num_items
        self.items = items
        size = model.config.max_length
        ends, lengths = windows(offsets.cpu(), size, stride(config.step, size))
        self.ends, self.lengths = ends.to(items.device), lengths.to(items.device)

    @property
    def steps(self) -> int:
        return -(-len(self.ends) // self.batch_size)

    @property
    def typical_targets(self) -> float:
        hidden = (self.lengths * self.config.mask_share).round().clamp(1, self.config.max_masked)
        share = self.config.last_only
        return float(hidden.sum() * (1 - share) + len(hidden) * share) / self.steps

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        yield from by_length(self.lengths.cpu(), self.batch_size, generator)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        rows = examples.to(self.items.device)
        lengths = self.lengths[rows]
        width = int(lengths.max())
        tokens = gather_last(self.items, self.ends[rows], lengths, width, self.pad)
        # a random order of each row's items; the first ones are hidden, at least one and at most max_masked
        order = torch.rand(tokens.shape, generator=generator, device=tokens.device)
        order = order.masked_fill(tokens == self.pad, 2.0).argsort(1).argsort(1)
        wanted = (lengths * self.config.mask_share).round().long().clamp(1, self.config.max_masked)
        hidden = order < wanted[:, None]
        last = torch.rand(len(rows), generator=generator, device=tokens.device) < self.config.last_only
        only_last = torch.zeros_like(hidden)
        only_last[:, -1] = True
        hidden = torch.where(last[:, None], only_last, hidden)
        return tokens.masked_fill(hidden, self.mask), tokens.masked_fill(~hidden, self.pad)

    def targets(self, batch: Batch) -> Tensor:
        return (batch[1] != self.pad).sum(1)

    def loss(self, model: BERT4Rec, batch: Batch) -> Tensor:
        tokens, targets = batch
        hidden = targets != self.pad
        states = model.transform(model.hidden(tokens)[hidden])
        return losses.cross_entropy(states, model.table[: self.num_items], model.bias, targets[hidden])

    def after_step(self, model: BERT4Rec) -> None:
        pass
