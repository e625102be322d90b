"""The next item's codes, written after those of the history: cross-entropy at every code (TIGER, LETTER, LC-Rec).

A network that reads from left to right (`decoder-only`, or an encoder–decoder with a causal encoder) has all items of a window as
targets of one pass. An encoder that looks both ways would let a target see itself, so there every target is an example of its
own, with the history before it; batches mix the targets of many users, and `per_user` takes a few of each user's per epoch.
In both, the decoder reads the true codes of its target, so all levels are learned at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.generation import Generator
from engine.training.sampling import by_length, gather_last, stride, windows

Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class IdentifierConfig:
    """The codes of the next item are written after the codes of the history (TIGER, LETTER, LC-Rec)."""

    temperature: float = 1.0
    """Logits are divided by τ before the softmax (LETTER's ranking-guided loss; 1 is plain cross-entropy)."""
    per_user: int = 0
    """Targets drawn per user and epoch, where each needs a pass of its own (an encoder that looks both ways); 0 takes all."""
    step: float = 0.5
    """Where targets share a pass: windows over sequences longer than max_length start every step · max_length items, and
    every item is a target once."""


class Identifier:
    """items: int64 [events] on the device, the training log; offsets: int64 [users + 1] beside it.

    A batch is (items [examples, length + 1], wanted [examples, length], users [examples]): the items but the first are targets
    where they are wanted, each after all items before it. Where every target has a pass of its own, only the last is wanted.
    """

    def __init__(
        self,
        config: IdentifierConfig,
        model: Generator,
        items: Tensor,
        offsets: Tensor,
        batch_size: int,
    ) -> None:
        self.config, self.batch_size, self.items = config, batch_size, items
        self.pad, self.written, self.shared = model.pad, model.written, model.shares
        starts, size = offsets.cpu(), model.max_length
        if self.shared:
            ends, lengths = windows(starts, size + 1, stride(config.step, size))
            users = torch.searchsorted(starts, ends - 1, right=True) - 1
            # windows of a user stand from the last to the first; each has as targets what the one before it does not reach
            fresh = lengths - 1
            fresh[:-1] = torch.where(users[:-1] == users[1:], ends[:-1] - ends[1:], fresh[:-1])
        else:
            place = torch.arange(len(items)) - torch.repeat_interleave(starts[:-1], starts.diff())
            ends = (place > 0).nonzero()[:, 0] + 1
            users = torch.searchsorted(starts, ends - 1, right=True) - 1
            lengths, fresh = (place[ends - 1] + 1).clamp(max=size + 1), torch.ones_like(ends)
        self.users, self.ends, self.lengths, self.fresh = users, ends, lengths, fresh
        self.alike = fresh * (size + 2) + lengths  # batches hold examples with as many targets, then as many items
        codes = torch.cat([torch.zeros(1, dtype=torch.int64), self.written[items].sum(1).cpu().cumsum(0)])
        self.codes = int((codes[ends] - codes[ends - fresh]).sum())
        limit = config.per_user if config.per_user and not self.shared else len(items)
        self.examples = int(torch.bincount(users, minlength=1).clamp(max=limit).sum())

    @property
    def steps(self) -> int:
        return -(-self.examples // self.batch_size)

    @property
    def typical_targets(self) -> float:
        return self.codes * self.examples / (len(self.ends) * self.steps)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        if self.examples == len(self.ends):
            yield from by_length(self.alike, self.batch_size, generator)
            return
        shuffled = torch.randperm(len(self.ends), generator=generator)
        by_user = shuffled[torch.argsort(self.users[shuffled], stable=True)]
        users = self.users[by_user]
        nth = torch.arange(len(users)) - torch.searchsorted(users, users)  # users are sorted: their first place
        chosen = by_user[nth < self.config.per_user]
        for batch in by_length(self.alike[chosen], self.batch_size, generator):
            yield chosen[batch]

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        device = self.items.device
        lengths = self.lengths[examples].to(device)
        width = int(lengths.max())
        items = gather_last(self.items, self.ends[examples].to(device), lengths, width, self.pad)
        wanted = torch.arange(width - 1, device=device) >= width - 1 - self.fresh[examples].to(device)[:, None]
        return items, wanted, self.users[examples].to(device)

    def targets(self, batch: Batch) -> Tensor:
        items, wanted, _ = batch
        return (self.written[items[:, 1:]].sum(2) * wanted).sum(1)

    def loss(self, model: Generator, batch: Batch) -> Tensor:
        items, wanted, users = batch
        targets = items[:, 1:][wanted]
        if self.shared:
            last = int(wanted.sum(1).max())  # the wanted stand at the end
            logits = model.teach(items, users, last)[wanted[:, -last:]]
        else:
            logits = model.after(items[:, :-1], items[:, -1:], users)[:, 0]
        real = self.written[targets]
        return F.cross_entropy(logits[real].float() / self.config.temperature, model.tokens[targets][real])

    def after_step(self, model: Generator) -> None:
        pass
