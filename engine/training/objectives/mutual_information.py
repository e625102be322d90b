"""The four tasks of S3-Rec's pre-training (Zhou et al. 2020, 4.2), and what comes next, its fine-tuning (4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.s3rec import S3Rec, Tasks
from engine.training.objectives.base import Batch, Objective
from engine.training.objectives.sequences import NextItem, NextItemConfig
from engine.training.sampling import Taken, gather_last, windows


@dataclass(frozen=True)
class MutualInformationConfig(NextItemConfig):
    """What belongs together, where the model is pre-trained; else every position predicts the item after it (S3-Rec)."""

    mask_share: float = 0.2
    """Share of items hidden, beside the last (authors: .2)."""
    attributes_weight: float = 0.2
    """Of AAP: attributes of an item (authors: .2)."""
    masked_items_weight: float = 1.0
    """Of MIP: hidden items (authors: 1)."""
    masked_attributes_weight: float = 1.0
    """Of MAP: attributes of hidden items (authors: 1)."""
    segments_weight: float = 0.5
    """Of SP: hidden segments (authors: .5)."""


def mutual_information(
    config: MutualInformationConfig, model: S3Rec, items: Tensor, offsets: Tensor, batch_size: int
) -> NextItem | MutualInformation:
    if model.tasks is None:
        return NextItem(config, model, items, offsets, batch_size)
    return MutualInformation(config, model, items, offsets, batch_size)


class MutualInformation(Objective):
    """An example is the beginning of a sequence, up to a place drawn anew in every epoch, of which the latest items are read."""

    validated = False
    """What comes next is not learnt, so nothing is chosen by it."""

    def prepare(self, model: S3Rec, items: Tensor, offsets: Tensor) -> None:
        self.pad, self.mask, self.longest = model.pad, model.mask, model.max_length
        starts = offsets.cpu()
        ends, lengths = windows(starts, int(starts.diff().max()) if len(starts) > 1 else 0, 0)
        self.count, self.alike = len(ends), lengths
        users = torch.searchsorted(starts, ends - 1, right=True) - 1
        self.users, self.starts, self.lengths = (t.to(items.device) for t in (users, ends - lengths, lengths))
        self.taken = Taken(items, offsets, model.num_items)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        """Items, what is shown of them, and for each an item that the user did not take; the items without a segment, that
        segment, and one of the log that is as long, both among [MASK]: int64 [examples, length] each."""
        rows, device = examples.to(self.items.device), self.items.device

        def among(limit: Tensor) -> Tensor:
            """int64, the shape of `limit`: each uniform in 0..limit−1."""
            share = torch.rand(limit.shape, dtype=torch.float64, generator=generator, device=device)
            return torch.minimum((share * limit).long(), limit - 1)

        lengths = 2 + among(self.lengths[rows] - 1)
        ends, lengths = self.starts[rows] + lengths, lengths.clamp(max=self.longest)
        width = int(lengths.max())
        items = gather_last(self.items, ends, lengths, width, self.pad)
        real, place = items != self.pad, torch.arange(width, device=device)
        hidden = (torch.rand(items.shape, generator=generator, device=device) < self.config.mask_share) & real
        hidden[:, -1] = True
        others = self.taken.negatives(self.users[rows][:, None], tuple(items.shape), generator)
        size = 1 + among(lengths // 2)
        first = width - lengths + among(lengths - size + 1)
        inside = (place >= first[:, None]) & (place < (first + size)[:, None])
        elsewhere = among(len(self.items) - size + 1)[:, None] + (place - first[:, None])
        segment = torch.where(inside, items, self.mask).masked_fill(~real, self.pad)
        other = self.items[elsewhere.clamp(0, len(self.items) - 1)]
        return (
            items, items.masked_fill(hidden, self.mask), others,
            items.masked_fill(inside, self.mask), segment, torch.where(inside, other, segment),
        )  # fmt: skip

    def loss(self, model: S3Rec, batch: Batch) -> Tensor:
        """The weighted sum over all places and attributes, the mean over sequences."""
        items, shown, others, *segments = batch
        tasks, config = model.tasks, self.config
        assert tasks is not None
        real, hidden = items != self.pad, shown == self.mask
        states, targets = model.hidden(shown, causal=False)[hidden], items[hidden]
        known, times = items[real].unique(return_counts=True)
        aap = attributes_told(tasks.aap(model.items(known)), known, tasks, times)
        masked = attributes_told(tasks.map(states), targets, tasks)
        mip = chosen(tasks.mip(states), model.items(targets), model.items(others[hidden]))
        context, segment, other = (model.hidden(tokens, causal=False)[:, -1] for tokens in segments)
        sp = chosen(tasks.sp(context), segment, other)
        total = (
            config.attributes_weight * aap
            + config.masked_items_weight * mip
            + config.masked_attributes_weight * masked
            + config.segments_weight * sp
        )
        return total / len(items)


def attributes_told(queries: Tensor, items: Tensor, tasks: Tasks, times: Tensor | None = None) -> Tensor:
    """Σ over items and attributes of the binary cross-entropy of σ(query · attribute). queries: [items, dim]; times: how often
    each counts."""
    logits = (queries @ tasks.attributes.weight.T).float()
    each = F.binary_cross_entropy_with_logits(logits, tasks.attributes_of(items), reduction="none").sum(1)
    return each.sum() if times is None else (each * times).sum()


def chosen(queries: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """−Σ log σ(σ(query · positive) − σ(query · negative)), as the authors' code has it. All [targets, dim]."""
    right, wrong = ((queries * rows).sum(-1).float().sigmoid() for rows in (positive, negative))
    return F.softplus(wrong - right).sum()
