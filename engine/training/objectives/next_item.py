"""Next item at every position: the input is a window without its last item, the targets are the window without its first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.sasrec import SASRec
from engine.training import losses
from engine.training.sampling import Taken, by_length, gather_last, stride, windows
from engine.training.settings import added

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class NextItemConfig:
    """Every position of a sequence predicts the item after it (SASRec)."""

    loss: Literal["bce", "gbce", "sampled-softmax", "cross-entropy"] = "bce"
    """bce: one or more sampled negatives; gbce: BCE corrected for sampling; cross-entropy: the whole catalogue."""
    negatives: int = 1
    """Uniform negatives per target, outside the user's training items (all losses but cross-entropy)."""
    gbce_t: float = 0.75
    """Calibration t of gBCE."""
    step: float = added(0.0)
    """Windows over sequences longer than max_length start every step · max_length items; 0: the latest window alone (authors)."""


class NextItem:
    """items: int64 [events] on the device, the training log; offsets: int64 [users + 1] beside it."""

    def __init__(
        self,
        config: NextItemConfig,
        model: SASRec,
        items: Tensor,
        offsets: Tensor,
        batch_size: int,
    ) -> None:
        self.config, self.batch_size = config, batch_size
        self.pad, self.max_length, self.num_items = model.pad, model.max_length, model.num_items
        self.items = items
        starts, size = offsets.cpu(), model.max_length
        ends, lengths = windows(starts, size + 1, stride(config.step, size))
        self.users = (torch.searchsorted(starts, ends - 1, right=True) - 1).to(items.device)
        self.ends, self.lengths = ends.to(items.device), (lengths - 1).to(items.device)
        self.sampled = config.loss != "cross-entropy"
        self.taken = Taken(items, offsets, model.num_items) if self.sampled else None

    @property
    def steps(self) -> int:
        return -(-len(self.ends) // self.batch_size)

    @property
    def typical_targets(self) -> float:
        return float(self.lengths.sum()) / self.steps

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        yield from by_length(self.lengths.cpu(), self.batch_size, generator)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        rows = examples.to(self.items.device)
        lengths, ends = self.lengths[rows], self.ends[rows]
        width = int(lengths.max())
        sequence = gather_last(self.items, ends, lengths + 1, width + 1, self.pad)
        # the first target belongs to the first input; what stands left of it is padding in both
        inputs, targets = sequence[:, :-1], sequence[:, 1:]
        targets = targets.masked_fill(inputs == self.pad, self.pad)
        if self.taken is None:
            return inputs, targets
        shape = (len(rows), width, self.config.negatives)
        return inputs, targets, self.taken.negatives(self.users[rows][:, None, None], shape, generator)

    def targets(self, batch: Batch) -> Tensor:
        return (batch[1] != self.pad).sum(1)

    def loss(self, model: SASRec, batch: Batch) -> Tensor:
        inputs, targets = batch[:2]
        real = targets != self.pad
        hidden = model.hidden(inputs)[real]  # [targets, dim]
        wanted = targets[real]
        if not self.sampled:
            return losses.cross_entropy(hidden, model.table[: self.num_items], None, wanted)
        positive = (hidden * F.embedding(wanted, model.table)).sum(-1)
        negative = (hidden.unsqueeze(1) * F.embedding(batch[2][real], model.table)).sum(-1)
        if self.config.loss == "bce":
            return losses.binary_cross_entropy(positive, negative)
        if self.config.loss == "gbce":
            return losses.generalised_binary_cross_entropy(positive, negative, self.num_items, self.config.gbce_t)
        return losses.sampled_softmax(positive, negative)

    def after_step(self, model: SASRec) -> None:
        pass
