"""Text meets text: what a history says and what the item after it says become alike (Recformer, 2.2 and 2.3).

Every target is an example of its own, with the history before it. `Pretraining` has other targets of the batch as wrong answers
and hides words besides; `FineTuning` has the whole catalogue, encoded before the epoch, so that a step costs no item a pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cards import added
from engine.errors import UsageError
from engine.models.recformer import CLASS, Recformer, Sequences
from engine.models.unisrec import UniSRec
from engine.training import losses
from engine.training.distributed import everywhere
from engine.training.objectives.base import Batch, Objective
from engine.training.objectives.sequences import NextItem, NextItemConfig
from engine.training.sampling import few_of_each, gather_last, owners

IGNORED = -100


@dataclass(frozen=True)
class TextConfig:
    """The text of a history meets the text of the item after it (Recformer)."""

    stage: Literal["pre-train", "fine-tune", "frozen"] = "fine-tune"
    """pre-train: hidden words are filled in, and histories meet the items of their batch. fine-tune: histories meet all items,
    encoded anew before every epoch (stage 1). frozen: the same with the items as they are where training starts (stage 2)."""
    per_user: int = 1
    """Targets drawn per user and epoch (authors: 1); 0 takes all. In pre-training from the later half of the history."""
    masked_weight: float = 0.1
    """λ of the hidden words in pre-training (paper: .1); 0 leaves them out."""
    mask_share: float = 0.15
    """Share of words hidden in pre-training (paper: .15): 80 % become [MASK], 10 % any token, 10 % stay."""


def text(
    config: TextConfig, model: Recformer, items: Tensor, offsets: Tensor, batch_size: int
) -> FineTuning | Pretraining:
    if config.stage == "pre-train" and config.masked_weight and model.head is None:
        raise UsageError(
            "hidden words are filled in by a head: set model.masked_words=true, or objective.masked_weight=0"
        )
    kind = Pretraining if config.stage == "pre-train" else FineTuning
    return kind(config, model, items, offsets, batch_size)


class _Examples(Objective):
    """A batch begins with histories, int64 [examples, length], and targets, int64 [examples]."""

    alike: Tensor
    later_half = False
    """Targets of the second half of each history alone."""

    def prepare(self, model: Any, items: Tensor, offsets: Tensor) -> None:
        self.pad = model.pad
        starts = offsets.cpu()
        user = owners(starts)
        place = torch.arange(len(user)) - starts[user]
        first = (starts.diff()[user] // 2).clamp(min=1) if self.later_half else 1
        self.targets_at = (place >= first).nonzero()[:, 0]
        self.users = user[self.targets_at]
        self.lengths = place[self.targets_at].clamp(max=model.max_length)
        self.alike = self.tokens(model) if isinstance(model, Recformer) else self.lengths
        limit = self.config.per_user or len(user)
        self.count = int(torch.bincount(self.users, minlength=1).clamp(max=limit).sum())

    def tokens(self, model: Recformer) -> Tensor:
        """What is read of each history: batches of like length cost least."""
        spent = torch.cat([torch.zeros(1, dtype=torch.int64), model.lengths[self.items].cpu().cumsum(0)])
        return (spent[self.targets_at] - spent[self.targets_at - self.lengths]).clamp(max=model.max_tokens - 1)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        yield from few_of_each(self.users, self.config.per_user, self.alike, self.batch_size, generator)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        device = self.items.device
        ends, lengths = self.targets_at[examples].to(device), self.lengths[examples].to(device)
        history = gather_last(self.items, ends, lengths, int(lengths.max()), self.pad)
        return history, self.items[ends]


class FineTuning(_Examples):
    """Cross-entropy over the catalogue. The item matrix is the model's buffer, so that it is in every checkpoint; a model is
    validated with the matrix of the epoch, as in Algorithm 1."""

    @property
    def frozen(self) -> bool:
        return self.config.stage == "frozen"

    @property
    def begins_with_validation(self) -> bool:  # type: ignore[override]
        """Stage 2 starts from the best of stage 1, and takes its place only with something better (Algorithm 1)."""
        return self.frozen

    def begin_training(self, model: Recformer) -> None:
        if self.frozen and not model.matrix.any():
            raise UsageError(
                f"the stage frozen keeps the items as they are where training starts, and {model.config.start or 'nothing'!r} "
                "has none of this catalogue: set model.start to a run of the stage fine-tune on this dataset"
            )

    def begin_epoch(self, model: Recformer) -> None:
        if not self.frozen:
            model.refresh()

    def loss(self, model: Recformer, batch: Batch) -> Tensor:
        history, targets = batch
        return losses.cross_entropy(model.query(history), model.matrix, None, targets)


class Pretraining(_Examples):
    """L = L_IIC + λ · L_MLM (2.2, equations 8 to 10)."""

    later_half = True

    def end_epoch(self, model: Recformer) -> None:
        model.refresh()

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        """With a seed per example: what is hidden of a share of the batch follows from that of its first."""
        seeds = torch.randint(1 << 62, (len(examples),), generator=generator, device=generator.device)
        return *super().draw(examples, generator), seeds.to(self.items.device)

    def loss(self, model: Recformer, batch: Batch) -> Tensor:
        history, targets, seeds = batch
        texts = model.sequences(history), model.sequences(targets[:, None])
        history_directions, item_directions = (model.direction(text) for text in texts)
        loss = contrast(history_directions, item_directions, targets, model.config.temperature)
        if self.config.masked_weight:
            generator = torch.Generator(history.device).manual_seed(int(seeds[0]))
            # one mean over the histories and one over the items, as in the authors' code
            hidden = [self.filled_in(model, text, generator) for text in texts]
            loss = loss + self.config.masked_weight * sum(total / max(count, 1) for total, count in hidden)
        return loss

    def filled_in(self, model: Recformer, text: Sequences, generator: torch.Generator) -> tuple[Tensor, int]:
        """Summed cross-entropy of the hidden tokens, and how many they are."""
        shown, labels = hide(text, model.mask, model.vocabulary, self.config.mask_share, generator)
        covered = Sequences(shown, text.kinds, text.places, text.real, text.words)
        is_hidden = labels != IGNORED
        states = model.hidden(covered, first_only=False)[is_hidden]
        logits = model.fill_in(states)
        return F.cross_entropy(logits.float(), labels[is_hidden], reduction="sum"), len(states)


def hide(
    text: Sequences, mask: int, vocabulary: int, share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Whole words hidden: each with probability `share`, all its pieces together; of the pieces, 80 % become [MASK], 10 % any
    token, 10 % stay as they are (Devlin et al. 2019, 3.1). Returns what is read and what is wanted there, IGNORED elsewhere."""
    tokens, device = text.tokens, text.tokens.device
    # one draw per word: pieces of a word stand together and carry its number
    new = torch.ones_like(tokens, dtype=torch.bool)
    new[:, 1:] = text.words[:, 1:] != text.words[:, :-1]
    word = new.cumsum(1) - 1
    draws = torch.rand(tokens.shape, generator=generator, device=device)
    chosen = (draws.gather(1, word) < share) & text.real & (text.kinds != CLASS)
    how = torch.rand(tokens.shape, generator=generator, device=device)
    any_token = torch.randint(vocabulary, tokens.shape, generator=generator, device=device)
    shown = torch.where(chosen & (how < 0.8), mask, torch.where(chosen & (how >= 0.9), any_token, tokens))
    return shown, tokens.masked_fill(~chosen, IGNORED)


def contrast(histories: Tensor, items: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Mean of −log softmax(cos / τ) of each history's own item among those of all processes (equation 8).

    histories, items: unit vectors [examples, dim]; targets: int64 [examples], which item each is. Another example with the same
    item is no wrong answer.
    """
    offset, others, number = everywhere(items, targets)
    logits = histories @ others.T / temperature
    mine = offset + torch.arange(len(histories), device=histories.device)
    same = (number[None, :] == targets[:, None]).scatter(1, mine[:, None], False)
    return F.cross_entropy(logits.masked_fill(same, -torch.inf).float(), mine)


# --- UniSRec: what its pre-training contrasts (Hou et al. 2022, 2.3)


@dataclass(frozen=True)
class UniversalConfig(NextItemConfig):
    """States meet items and states of the batch, where the model is pre-trained; else as next-item (UniSRec)."""

    per_user: int = added(1)
    """Targets drawn per user and epoch in pre-training (authors: all); 0 takes all."""
    sequence_weight: float = added(0.001)
    """λ of the contrast of histories with themselves (paper: .001)."""
    drop_share: float = added(0.2)
    """Share of items that a history's other view leaves out (authors: .2)."""


def universal(
    config: UniversalConfig, model: UniSRec, items: Tensor, offsets: Tensor, batch_size: int
) -> NextItem | Contrasts:
    if not model.config.pretrain:
        return NextItem(config, model, items, offsets, batch_size)
    return Contrasts(config, model, items, offsets, batch_size)


class Contrasts(_Examples):
    """L = L_S-I + λ · L_S-S (equations 5 to 7)."""

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        """With the histories of which items are left out, int64 [examples, length]; one item stays at least."""
        history, targets = super().draw(examples, generator)
        stays = torch.rand(history.shape, generator=generator, device=history.device) >= self.config.drop_share
        stays &= history != self.pad
        stays[:, -1] |= ~stays.any(1)
        order = stays.long().argsort(dim=1, stable=True)  # what is left stands at the end, in its order
        return history, targets, history.masked_fill(~stays, self.pad).gather(1, order)

    def loss(self, model: UniSRec, batch: Batch) -> Tensor:
        history, targets, dropped = batch
        temperature = model.config.temperature
        states, others = (model.query(items) * temperature for items in (history, dropped))
        rows = F.normalize(model.vectors(targets).float(), dim=-1)
        loss = contrast(states, rows, targets, temperature)
        return loss + self.config.sequence_weight * contrast(states, others, targets, temperature)
