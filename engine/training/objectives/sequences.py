"""Objectives on sequences of items: the next item at every position, hidden items (cloze), windows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cards import added
from engine.errors import UsageError
from engine.models.base import NO_TIME
from engine.models.bert4rec import BERT4Rec
from engine.models.layers import looked_up
from engine.models.sasrec import SASRec
from engine.models.windowed import Windowed
from engine.training import losses
from engine.training.distributed import processes
from engine.training.objectives.base import Batch, Objective
from engine.training.sampling import Taken, gather_last, owners, stride, windows

SCORES = 1 << 19
"""Of shared negatives, at a time: what a block of them reads and writes stays in a CPU's cache; a GPU takes more."""

# --- next item at every position: the input is a window without its last item, the targets are the window without its first


@dataclass(frozen=True)
class NextItemConfig:
    """Every position of a sequence predicts the item after it (SASRec, GRU4Rec, NARM, eSASRec, HSTU)."""

    loss: Literal["bce", "gbce", "sampled-softmax", "cross-entropy", "bpr", "top1", "bpr-max", "top1-max"] = "bce"
    """bce: one or more sampled negatives; gbce: BCE corrected for sampling; cross-entropy: the whole catalogue; bpr, top1: the
    mean over negatives (GRU4Rec, 2016); bpr-max, top1-max: those that score highest count most (GRU4Rec, 2018)."""
    negatives: int = 1
    """Uniform negatives per target, outside the user's training items (all losses but cross-entropy)."""
    gbce_t: float = 0.75
    """Calibration t of gBCE."""
    step: float = added(0.0)
    """Windows over sequences longer than max_length start every step · max_length items; 0: the latest window alone (authors)."""
    shared_negatives: int = added(0)
    """Negatives that all targets of a batch share, whoever took them, in place of `negatives`: one matrix product scores them."""
    batch_negatives: bool = added(False)
    """Other sequences' targets at the same place of the batch are negatives, too, as in session-parallel batches (GRU4Rec)."""
    popularity_power: float = added(0.0)
    """Shared negatives are drawn in proportion to count^power; 0: uniformly, 1: as often as they occur (GRU4Rec's α)."""
    score_penalty: float = added(0.0)
    """bpr-max: weight λ of the squared scores of negatives (authors: .5 to 2)."""
    activation: Literal["linear", "tanh", "elu"] = added("linear")
    """Of scores within the loss, all losses but cross-entropy (2016: tanh; 2018: elu). Ranks stay as they are."""
    consistency: float = added(0.0)
    """cross-entropy: weight α of R-Drop (Liang et al., NeurIPS 2021). A sequence is read twice, each time with dropout of its
    own, and what both predict is drawn together, in twice the time or more; 0: it is read once."""


class NextItem(Objective):
    """Asks of a model `hidden` and `table`, and `bias` where it has one; and `prior`, −log of that of its parameters. `hidden` is
    given the users, int64 [batch], where it has vectors of them, and when the items were where it has `times` (int64 [events], of
    the training log), but for the share `without_times` of the sequences.
    """

    asks = ("hidden", "table")

    def prepare(self, model: SASRec, items: Tensor, offsets: Tensor) -> None:
        self.pad, self.max_length, self.num_items = model.pad, model.max_length, model.num_items
        starts, size = offsets.cpu(), model.max_length
        ends, lengths = windows(starts, size + 1, stride(self.config.step, size))
        self.users = (torch.searchsorted(starts, ends - 1, right=True) - 1).to(items.device)
        self.count, self.alike = len(ends), lengths
        self.ends, self.lengths = ends.to(items.device), (lengths - 1).to(items.device)
        self.sampled = self.config.loss != "cross-entropy"
        self.together = bool(self.config.shared_negatives or self.config.batch_negatives)
        self.apart = model.draws_apart and not self.config.batch_negatives
        if self.together and not self.sampled:
            raise UsageError(
                "objective.loss=cross-entropy is over the whole catalogue and takes no negatives; "
                "sampled-softmax is the same over shared_negatives and batch_negatives"
            )
        if self.config.consistency and self.sampled:
            raise UsageError(
                "objective.consistency compares two readings over the whole catalogue: take objective.loss=cross-entropy"
            )
        self.taken = Taken(items, offsets, model.num_items) if self.sampled and not self.together else None
        self.chances = torch.bincount(items, minlength=model.num_items).double().pow(self.config.popularity_power)
        times = getattr(model, "times", None)
        self.times = None if times is None else torch.from_numpy(times).to(items.device)
        self.personal = model.trained_users
        self.without_times = 1.0 if times is None else model.config.without_times

    @property
    def typical_targets(self) -> float:
        return float(self.lengths.sum()) / self.steps

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        rows = examples.to(self.items.device)
        lengths, ends = self.lengths[rows], self.ends[rows]
        width = int(lengths.max())
        sequence = gather_last(self.items, ends, lengths + 1, width + 1, self.pad)
        # the first target belongs to the first input; what stands left of it is padding in both
        inputs, targets = sequence[:, :-1], sequence[:, 1:]
        targets = targets.masked_fill(inputs == self.pad, self.pad)
        batch: Batch = inputs, targets
        if self.together:
            count = self.config.shared_negatives
            shared = (
                torch.multinomial(self.chances, count, replacement=True, generator=generator) if count else rows[:0]
            )
            batch += (shared.expand(len(rows), -1),)  # a row per example, of which each process has some
        elif self.taken is not None:
            count, of_users = self.config.negatives, self.users[rows][:, None]
            if count == 1:  # for padding, too, as always: a training that was interrupted goes on with the same numbers
                negatives = self.taken.negatives(of_users[:, None], (*targets.shape, 1), generator)
            else:
                real = targets != self.pad
                negatives = targets.new_zeros(*targets.shape, count)
                users = of_users.expand_as(real)[real][:, None]
                negatives[real] = self.taken.negatives(users, (len(users), count), generator)
            batch += (negatives,)
        if self.personal:
            batch += (self.users[rows],)
        if self.times is None:
            return batch
        # as of the inputs: when the last target was is left out
        times = gather_last(self.times, ends, lengths + 1, width + 1, NO_TIME)[:, :-1]
        without = torch.rand(len(rows), generator=generator, device=rows.device) < self.without_times
        return (*batch, times.masked_fill(without[:, None], NO_TIME))

    def targets(self, batch: Batch) -> Tensor:
        return (batch[1] != self.pad).sum(1)

    def loss(self, model: SASRec, batch: Batch) -> Tensor:
        loss = self._loss_of_targets(model, batch)
        prior: Callable[[], Tensor] | None = getattr(model, "prior", None)
        return loss if prior is None else loss + prior() / (self.typical_targets * self.steps)

    def _loss_of_targets(self, model: SASRec, batch: Batch) -> Tensor:
        inputs, targets = batch[:2]
        real = targets != self.pad
        bias: Tensor | None = getattr(model, "bias", None)
        hidden_of: Callable[..., Tensor] = model.hidden
        names = ["users"] * self.personal + ["times"] * (self.times is not None)  # what `draw` put last into the batch
        beside = dict(zip(names, batch[len(batch) - len(names) :], strict=True))
        if self.config.consistency:
            twice = {name: tensor.repeat(2, *[1] * (tensor.ndim - 1)) for name, tensor in beside.items()}
            first, second = (states[real] for states in hidden_of(inputs.repeat(2, 1), **twice).chunk(2))
            table = model.table[: self.num_items]
            return losses.consistent_cross_entropy(first, second, table, bias, targets[real], self.config.consistency)
        hidden, table = hidden_of(inputs, **beside), model.table
        if self.together:
            return self._loss_together(hidden, targets, batch[2][0], table, bias)
        hidden = hidden[real]  # [targets, dim]
        target_items = targets[real]
        if not self.sampled:
            return losses.cross_entropy(hidden, table[: self.num_items], bias, target_items)
        negatives = batch[2][real]
        positive = (hidden * F.embedding(target_items, table)).sum(-1)
        # scores of all items are fewer numbers than the vectors of the negatives
        if self.num_items <= negatives.shape[1] * hidden.shape[1]:
            rows = (0, 0, 0, -len(hidden) % 64)  # for every new shape oneDNN writes a new program
            scores = F.pad(hidden, rows) @ F.pad(table, (0, 0, 0, -len(table) % 32)).T
            negative = scores.gather(1, F.pad(negatives, rows))[: len(hidden)].float()
        else:
            negative = (hidden.unsqueeze(1) * F.embedding(negatives, table)).sum(-1)
        if bias is not None:
            positive, negative = positive + looked_up(bias, target_items), negative + looked_up(bias, negatives)
        return self._loss_of(positive, negative, torch.ones_like(negative, dtype=torch.bool))

    def _loss_together(
        self, hidden: Tensor, targets: Tensor, shared: Tensor, table: Tensor, bias: Tensor | None
    ) -> Tensor:
        """hidden: [batch, length, dim]; targets: int64 [batch, length]; shared: int64 [negatives]. Scores exist for a few places
        of the sequences at a time."""
        targets = targets.T.contiguous()
        real = targets != self.pad
        if bias is None:
            bias = table.new_zeros(self.num_items)

        def summed(
            places: slice, state: Tensor, rows: Tensor, offset: Tensor, shared_rows: Tensor, shared_offset: Tensor
        ) -> Tensor:
            items, there = targets[places], real[places]
            positive = ((state * rows).sum(-1) + offset)[there]
            negative = torch.addmm(shared_offset, state[there], shared_rows.T)
            counts = items[there].unsqueeze(-1) != shared
            if self.config.batch_negatives:
                others = state @ rows.transpose(1, 2) + offset.unsqueeze(1)
                other = (items.unsqueeze(1) != items.unsqueeze(2)) & there.unsqueeze(1)
                negative, counts = torch.cat([others[there], negative], -1), torch.cat([other[there], counts], -1)
            if not len(positive):  # a process's share of a batch may have no target at these places
                return positive.sum() + negative.sum()
            return self._loss_of(positive.float(), negative.float(), counts) * len(positive)

        parts = (hidden.transpose(0, 1), F.embedding(targets, table), looked_up(bias, targets))
        whole = (F.embedding(shared, table), looked_up(bias, shared))
        scores = targets.shape[1] * (len(shared) + targets.shape[1] * self.config.batch_negatives)
        budget = SCORES if hidden.device.type == "cpu" else 128 * SCORES
        return losses.by_blocks(summed, parts, whole, max(1, budget // scores)) / real.sum().clamp(min=1)

    def _loss_of(self, positive: Tensor, negative: Tensor, counts: Tensor) -> Tensor:
        """positive: [targets]; negative: [targets, k]; counts: bool, its shape: which of them are negatives."""
        config = self.config
        if config.activation != "linear":
            grow = torch.tanh if config.activation == "tanh" else F.elu
            positive, negative = grow(positive), grow(negative)
        if config.loss == "bpr":
            return losses.bpr(positive, negative, counts)
        if config.loss == "top1":
            return losses.top1(positive, negative, counts)
        if config.loss == "bpr-max":
            return losses.bpr_max(positive, negative, counts, config.score_penalty)
        if config.loss == "top1-max":
            return losses.top1_max(positive, negative, counts)
        negative = negative.masked_fill(~counts, losses.NONE)
        if config.loss == "bce":
            return losses.binary_cross_entropy(positive, negative)
        if config.loss == "gbce":
            return losses.generalised_binary_cross_entropy(positive, negative, self.num_items, config.gbce_t)
        return losses.sampled_softmax(positive, negative)


# --- cloze: hidden items are filled in from both sides (BERT4Rec, 3.6). Every hidden item becomes [MASK], none is left or
# swapped
#
# Examples are windows of at most max_length items over each training sequence, the last one first and the others every step ·
# max_length items before it. A share of examples hides the last item alone, as recommendation does.


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


class Cloze(Objective):
    asks = ("mask_token", "hidden", "transform", "table", "bias")

    def prepare(self, model: BERT4Rec, items: Tensor, offsets: Tensor) -> None:
        self.pad, self.mask, self.num_items = model.pad, model.mask_token, model.num_items
        self.apart = model.draws_apart
        size = model.config.max_length
        ends, lengths = windows(offsets.cpu(), size, stride(self.config.step, size))
        self.count, self.alike = len(ends), lengths
        self.ends, self.lengths = ends.to(items.device), lengths.to(items.device)

    @property
    def typical_targets(self) -> float:
        hidden = (self.lengths * self.config.mask_share).round().clamp(1, self.config.max_masked)
        share = self.config.last_only
        return float(hidden.sum() * (1 - share) + len(hidden) * share) / self.steps

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        rows = examples.to(self.items.device)
        lengths = self.lengths[rows]
        width = int(lengths.max())
        tokens = gather_last(self.items, self.ends[rows], lengths, width, self.pad)
        # a random order of each row's items; the first ones are hidden, at least one and at most max_masked
        order = torch.rand(tokens.shape, generator=generator, device=tokens.device)
        order = order.masked_fill(tokens == self.pad, 2.0).argsort(1).argsort(1)
        num_masked = (lengths * self.config.mask_share).round().long().clamp(1, self.config.max_masked)
        hidden = order < num_masked[:, None]
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


# --- windows: L items in a row predict the T that follow (AttRec, 3.5; Caser, 3.4; HGN, 3.6)
#
# Each training sequence gives one window per position that has a following item; windows near the start are padded on the
# left, windows near the end have fewer targets.


@dataclass(frozen=True)
class WindowConfig:
    """L items in a row predict the T after them (AttRec, Caser, HGN)."""

    targets: int = 3
    """Items predicted per window, T."""
    negatives: int = 1
    """Negatives per target, uniform outside the user's training items."""
    margin: float = 0.5
    """Hinge margin γ."""
    dropout: float = 0.0
    """On the gathered vectors of users (and AttRec's of windows; an option of later implementations)."""
    l2: float = 0.001
    """Weight of ½‖·‖² over the vectors that an example touches (AttRec's code: .001 over whole tables)."""
    loss: Literal["hinge", "bpr", "bce"] = added("hinge")
    """hinge: a target is nearer than a negative by the margin (AttRec); bpr: −log σ(s⁺ − s⁻), the mean over negatives (HGN); bce:
    −log σ(s⁺) − Σ log(1 − σ(s⁻)) (Caser)."""


class Windows(Objective):
    asks = ("window_scores", "touched", "penalised_matrices")

    def prepare(self, model: Windowed, items: Tensor, offsets: Tensor) -> None:
        self.pad, self.size = model.pad, model.config.window
        user = owners(offsets)
        place = torch.arange(len(items), device=items.device) - offsets[user]
        first = (place > 0).nonzero().squeeze(1)  # first target of each window
        self.count, self.first, self.user = len(first), first, user[first]
        self.before = place[first]
        self.after = (offsets[1:][self.user] - first).clamp(max=self.config.targets)
        self.taken = Taken(items, offsets, model.num_items)

    @property
    def typical_targets(self) -> float:
        return float(self.after.sum()) / self.steps

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

    def loss(self, model: Windowed, batch: Batch) -> Tensor:
        users, window, targets, negatives = batch
        config = self.config
        real = targets != self.pad
        candidates = torch.cat([targets.unsqueeze(-1), negatives], dim=-1)  # [batch, T, 1 + negatives]
        scores = model.window_scores(users, window, candidates, config.dropout)[real]
        positive, negative = scores[:, 0], scores[:, 1:]
        if config.loss == "hinge":
            loss = losses.hinge(positive, negative, config.margin)
        elif config.loss == "bpr":
            loss = losses.bpr(positive, negative, torch.ones_like(negative, dtype=torch.bool))
        else:
            loss = losses.binary_cross_entropy(positive, negative)
        if config.l2:
            # padding is a row of zeros, so what belongs to no target adds nothing
            touched = model.touched(users, window, candidates.masked_fill(~real.unsqueeze(-1), self.pad))
            # matrices belong to the whole batch, of which this may be one process's share
            penalty = (touched + model.penalised_matrices() / processes()) / real.sum().clamp(min=1)
            loss = loss + config.l2 / 2 * penalty
        return loss
