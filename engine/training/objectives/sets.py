"""Objectives on sets of items: pairs of an item that a user has and one that the user has not (with the item before it, too), and
draws of one multinomial."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cards import added
from engine.models.base import Comparing, score
from engine.models.graph import squared
from engine.models.metric import CML
from engine.models.mult_vae import MultDAE, MultVAE, SetAutoencoder
from engine.training import losses
from engine.training.objectives.base import Batch, Objective
from engine.training.sampling import Taken, gather_last, owners

# --- pairs: an item that a user has beside ones that the user has not. Rendle et al., BPR, UAI 2009, 4.1: mean of
# −log σ(y_ui − y_uj) + λ/2 · (Σ‖·‖² of what the batch touches) / batch, as LightGCN's and NGCF's code has it
#
# Models over a graph compute all layers once per batch, whatever its size: large batches mean fewer propagations an epoch.


@dataclass(frozen=True)
class PairsConfig:
    """An item that a user has scores above one that the user has not: BPR."""

    sampling: Literal["pairs", "users"] = "pairs"
    """pairs: every training pair once an epoch, as BPR is defined. users: as many draws of a uniform user and one of their items,
    as the code of LightGCN, NGCF and TransRec does, so that users with few items weigh as much as those with many."""
    negatives: int = 1
    """Negatives per pair, uniform outside the user's training items."""
    l2: float = 1e-4
    """λ of ½‖·‖² per example, over the vectors that it touches (LightGCN: 10⁻⁴ over the batch's rows of E⁰; NGCF: 10⁻⁵)."""
    loss: Literal["bpr", "bce"] = added("bpr")
    """bpr: −log σ(y_ui − y_uj), the mean over negatives. bce: −log σ(y_ui) − Σ log(1 − σ(y_uj)), each item for itself (NeuMF)."""


class Pairs(Objective):
    """An example is a user and an item that the user has, a pair once. A batch is users int64 [batch], their items int64 [batch],
    negatives int64 [batch, negatives].
    """

    def prepare(self, model: Comparing, items: Tensor, offsets: Tensor) -> None:
        self.taken = Taken(items, offsets, model.num_items)
        self.users, self.items, *self.before = self.examples(items, offsets)
        self.somebody, self.counts = torch.unique_consecutive(self.users, return_counts=True)
        self.starts = self.counts.cumsum(0) - self.counts
        self.count = len(self.items)

    def examples(self, items: Tensor, offsets: Tensor) -> tuple[Tensor, ...]:
        """User and item of each example, users ascending, and what else `Comparing.compare` gets; int64 [examples] each."""
        return self.taken.keys // self.taken.num_items, self.taken.keys % self.taken.num_items

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        device = self.items.device
        if self.config.sampling == "pairs":
            pairs = examples.to(device)
        else:
            place = torch.randint(len(self.somebody), (len(examples),), generator=generator, device=device)
            share = torch.rand(len(examples), dtype=torch.float64, generator=generator, device=device)
            pairs = self.starts[place] + (share * self.counts[place]).long()
        users, items = self.users[pairs], self.items[pairs]
        negatives = self.taken.negatives(users[:, None], (len(users), self.config.negatives), generator)
        return users, items, negatives, *(column[pairs] for column in self.before)

    def loss(self, model: Comparing, batch: Batch) -> Tensor:
        users, items, negatives, *before = batch
        scores, touched = model.compare(users, torch.cat([items[:, None], negatives], dim=1), *before)
        if self.config.loss == "bpr":
            loss = losses.bpr(scores[:, 0], scores[:, 1:])
        else:
            loss = losses.binary_cross_entropy(scores[:, 0], scores[:, 1:])
        if self.config.l2:
            # matrices by the whole batch, of which this may be one process's share
            penalty = touched / len(users) + model.penalised_matrices() / self.batch_size
            loss = loss + self.config.l2 / 2 * penalty
        return loss


# --- transitions: the same of an item and the one before it (Rendle et al., FPMC, WWW 2010, 4.3: S-BPR of baskets of one item)


class Transitions(Pairs):
    """An example is an event of a user that has another one before it. A batch ends with that item, int64 [batch]."""

    def examples(self, items: Tensor, offsets: Tensor) -> tuple[Tensor, ...]:
        users = owners(offsets)
        later = (users[1:] == users[:-1]).nonzero()[:, 0] + 1
        return users[later], items[later], items[later - 1]


# --- distances with a margin (CML, 3.2 and 3.3). Of a user i and an item j that the user has, against U sampled ones k:
# w_ij · mean over k of [m + d²_ij − d²_ik]₊, w_ij = log(1 + ⌊J · M / U⌋), M of the U breaking the margin, J items; and
# λ_c (‖C‖²_F − ‖diag C‖²) / N, C the covariance of the coordinates of the batch's N points


@dataclass(frozen=True)
class WARPConfig:
    """An item that a user has is nearer by a margin than those that the user has not: weighted by its rank (CML)."""

    sampling: Literal["pairs", "users"] = "pairs"
    """pairs: every training pair once an epoch. users: as many draws of a uniform user and one of their items."""
    negatives: int = 20
    """U, negatives per pair, uniform outside the user's training items (authors' code: 20)."""
    margin: float = 0.5
    """m; distances are at most 4, as all points are in the unit ball (authors' code: 1.9)."""
    ranked: bool = True
    """Weigh a pair by the logarithm of its rank, which is guessed from how many negatives break the margin."""
    nearest: bool = False
    """The nearest negative alone counts, as in the authors' code; else the mean over all (paper, equation 3)."""
    covariance: float = 1.0
    """λ_c, which keeps coordinates from saying the same (authors' code: .1, and none in its example, where d is 100)."""


class WARP(Pairs):
    """Examples and batches as `Pairs` has them."""

    def loss(self, model: Comparing, batch: Batch) -> Tensor:
        assert isinstance(model, CML)
        users, items, negatives = batch
        config = self.config
        scores, _ = model.compare(users, torch.cat([items[:, None], negatives], dim=1))
        loss = losses.warp(
            scores[:, 0], scores[:, 1:], model.num_items, config.margin, ranked=config.ranked, nearest=config.nearest
        )
        if config.covariance:
            loss = loss + config.covariance * losses.covariance(torch.cat([model.users(users), model.items(items)]))
        return loss


# --- the items of a history as draws of one multinomial distribution. Mult-VAE, 2.2: −Σ_i log π_i + β · KL(q(z | x) ‖ N(0, 1));
# Mult-DAE, 2.3: −Σ_i log π_i + λ/2 · ‖W‖²
#
# An example is a user with all training items, each once. β grows from 0 by the same amount with every step of a training
# until it has its cap; it follows the number of the step, so that an interruption does not change it.


class _Histories(Objective):
    """A batch begins with histories, int64 [users, width]. Every user weighs the same."""

    def prepare(self, model: SetAutoencoder, items: Tensor, offsets: Tensor) -> None:
        self.pad = model.pad
        user = owners(offsets)
        to_come = offsets[1:][user] - torch.arange(len(items), device=items.device)
        read = to_come <= model.max_length
        users_items = torch.unique(user[read] * model.num_items + items[read])
        self.items = users_items % model.num_items
        self.lengths = torch.unique_consecutive(users_items // model.num_items, return_counts=True)[1]
        self.ends = self.lengths.cumsum(0)
        self.count = len(self.ends)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        rows = examples.to(self.items.device)
        lengths = self.lengths[rows]
        return (gather_last(self.items, self.ends[rows], lengths, int(lengths.max()), self.pad),)


@dataclass(frozen=True)
class MultinomialConfig:
    """All items of a history are draws of one distribution, which a code drawn at random gives (Mult-VAE)."""

    beta: float = 0.2
    """Cap of β, the weight of the KL divergence (authors: .2 on ML-20M; best on validation, so each dataset has its own)."""
    anneal_steps: int = 200_000
    """β grows from 0 by 1 / anneal_steps a step until it has its cap, after beta · anneal_steps (authors: 200,000, thus 40,000);
    0: it has its cap from the beginning."""


class Multinomial(_Histories):
    """A batch ends with each user's β, float32 [users]."""

    beta = 0.0

    def begin_step(self, step: int) -> None:
        steps = self.config.anneal_steps
        self.beta = min(self.config.beta, step / steps) if steps else self.config.beta

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        (histories,) = super().draw(examples, generator)
        return histories, torch.full((len(histories),), self.beta, device=histories.device)

    def loss(self, model: MultVAE, batch: Batch) -> Tensor:
        histories, beta = batch
        mean, log_variance = model.code(histories)
        likelihood = negative_log_likelihood(score(model.decode(mean, log_variance), model.index()), histories)
        return (likelihood + beta * divergence(mean, log_variance)).mean()


@dataclass(frozen=True)
class DenoisingConfig:
    """All items of a history are draws of one distribution (Mult-DAE)."""

    l2: float = 4e-5
    """λ of ½‖·‖² of all weights, biases left out (authors: .01 / 500 of ‖·‖²)."""


class Denoising(_Histories):
    def loss(self, model: MultDAE, batch: Batch) -> Tensor:
        (histories,) = batch
        loss = negative_log_likelihood(model.scores(histories), histories).mean()
        if self.config.l2:
            weights = [squared(parameter) for parameter in model.parameters() if parameter.ndim > 1]
            loss = loss + self.config.l2 / 2 * torch.stack(weights).sum()
        return loss


def negative_log_likelihood(logits: Tensor, histories: Tensor) -> Tensor:
    """−Σ log softmax(logits) over the items of each history, float32 [users].

    logits: [users, items]; histories: int64 [users, width], padded with the number of items.
    """
    real = histories < logits.shape[1]
    log_shares = F.log_softmax(logits.float(), 1).gather(1, histories.clamp(max=logits.shape[1] - 1))
    return -(log_shares * real).sum(1)


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, e^log_variance) ‖ N(0, 1)), [users], of [users, dim] each."""
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(1)
