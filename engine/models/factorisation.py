"""Matrix factorisation with BPR, and factorised Markov chains: a score is a sum of dot products of two vectors each.

    BPR-MF   ⟨user, item⟩                      Rendle, Freudenthaler, Gantner & Schmidt-Thieme, UAI 2009
    FMC      ⟨last item, next item⟩            the chain alone, factorised: FPMC without users
    FPMC     ⟨user, item⟩ + ⟨last item, next item⟩    Rendle, Freudenthaler & Schmidt-Thieme, WWW 2010, equation 8

As a query and an index: what is known of somebody, side by side, and as many vectors of an item, side by side.

**Fold-in.** Somebody who has no trained vector gets u = A · m + b, with m the mean vector of the history's different items. A and
b are those that give the training users' own vectors best, by ridge regression on the means of their items: in closed form,
once after training. (FPMC learns nothing of a user with a single item, which none follows.) BPR says why a line will do: where
its gradient is zero, a user's vector is a sum of those of the items taken less those of others,
λ u = Σ_i Σ_j (1 − σ(y_ui − y_uj)) (q_i − q_j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import Comparing, ItemIndex
from engine.models.graph import Graph, distinct, squared

RIDGE = 1e-3
"""Of the fold-in's regression: a share of the variance of the means that it reads."""
TASTE, SUCCESSOR = "the user’s taste", "what follows the last item"
"""Parts of a score (`Recommender.score_parts`), as pages call them."""


class FoldIn(nn.Module):
    """Vectors of users from those of their items: u = A · (mean over the different items) + b, fitted to training users.

    A and b are computed, and no checkpoint holds them: `fit` is called where training ends or a checkpoint was read.
    """

    slope: Tensor
    intercept: Tensor
    items: Tensor
    offsets: Tensor
    somebody: Tensor

    def __init__(self, graph: Graph, item_dim: int, user_dim: int, least: int = 1) -> None:
        """least: different items of a user whose vector is learnt; others keep what was drawn, and are not fitted to."""
        super().__init__()
        different = np.diff(graph.offsets)
        arrays = {"items": torch.from_numpy(graph.items), "offsets": torch.from_numpy(graph.offsets[:-1]).int()}
        arrays |= {"somebody": torch.from_numpy(np.flatnonzero(different >= min(least, different.max())))}
        arrays |= {"slope": torch.zeros(user_dim, item_dim), "intercept": torch.zeros(user_dim)}
        for name, tensor in arrays.items():
            self.register_buffer(name, tensor, persistent=False)

    @torch.no_grad()
    def fit(self, users: Tensor, items: Tensor) -> None:
        """users: float32 [users, user_dim]; items: float32 [items, item_dim]."""
        means = F.embedding_bag(self.items, items.contiguous(), self.offsets, mode="mean")[self.somebody].double()
        vectors = users[self.somebody].double()
        centre, mean = means.mean(0), vectors.mean(0)
        covariance = (means - centre).T @ (means - centre)
        covariance.diagonal().add_(RIDGE * covariance.diagonal().mean() + 1e-12)
        slope = torch.linalg.solve(covariance, (means - centre).T @ (vectors - mean)).T
        self.slope.copy_(slope)
        self.intercept.copy_(mean - slope @ centre)

    def forward(self, items: Tensor, table: Tensor, pad: int) -> Tensor:
        """float32 [batch, user_dim]. items: int64 [batch, length], padded with `pad`; table: float32 [items, item_dim]."""
        return F.linear(mean_vector(items, table, pad), self.slope, self.intercept)


class Factors(Comparing):
    """Scores are sums of dot products, of `of_user` and `of_items` one by one, and of a bias of the item where there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.bias: nn.Embedding | None = None

    def of_user(self, users: Tensor, last: Tensor | None) -> tuple[Tensor, ...]:
        """What is known of somebody, float32 [batch, dim] each. users, last: int64 [batch], the last item where it is read."""
        raise TypeError(f"{type(self).__name__} has no vectors")

    def of_items(self, items: Tensor) -> tuple[Tensor, ...]:
        """As many vectors of items, float32 […, dim] each of int64 […]."""
        raise TypeError(f"{type(self).__name__} has no vectors")

    def compare(self, users: Tensor, items: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # a product at a time: side by side they would be copied, and their gradients cut apart
        products, touched = [], []
        for known, rows in zip(self.of_user(users, last), self.of_items(items), strict=True):
            products.append((known[:, None] * rows).sum(-1))
            touched += [squared(known), squared(rows)]
        if self.bias is not None:
            products.append(self.bias(items).squeeze(-1))
            touched.append(squared(products[-1]))
        return sum(products[1:], products[0]), sum(touched[1:], touched[0])

    def index(self) -> ItemIndex:
        rows = torch.cat(self.of_items(torch.arange(self.num_items, device=next(self.parameters()).device)), dim=1)
        return ItemIndex(rows, rows.new_zeros(len(rows)) if self.bias is None else self.bias.weight[:, 0])


class WithUsers(Factors):
    """Those with a vector per training user, `users`, beside a table of items, `taste`, that others are folded in from."""

    trained_users = True
    needs = ("graph",)
    histories = 128  # whole ones, which are long

    users: nn.Embedding
    taste: nn.Embedding
    fold_in: FoldIn

    def train(self, mode: bool = True) -> WithUsers:
        super().train(mode)
        if not mode:
            self.fold_in.fit(self.users.weight, self.taste.weight)
        return self

    def user_vectors(self, items: Tensor, users: Tensor | None) -> Tensor:
        """Trained ones of `users`, else folded in from the history. items: int64 [batch, length]."""
        return self.fold_in(items, self.taste.weight, self.pad) if users is None else self.users(users)


def mean_vector(items: Tensor, table: Tensor, pad: int) -> Tensor:
    """Of each history's different items, float32 [batch, dim]; zeros of none. items: int64 [batch, length], padded with `pad`;
    table: float32 [items, dim]. No order of a history changes a bit of it."""
    items = distinct(items, pad)
    real = (items != pad).unsqueeze(-1)
    return (F.embedding(items.clamp(max=pad - 1), table) * real).sum(1) / real.sum(1).clamp(min=1)


def random_table(rows: int, dim: int, std: float, generator: torch.Generator, pad: bool = False) -> nn.Embedding:
    """A table from N(0, std²); with `pad`, one row more, of zeros."""
    table = nn.Embedding(rows + pad, dim, padding_idx=rows if pad else None)
    nn.init.normal_(table.weight, std=std, generator=generator)
    if pad:
        with torch.no_grad():
            table.weight[rows] = 0
    return table


# --- BPR-MF


@dataclass(frozen=True)
class BPRMFConfig:
    dim: int = 64
    """Width d of the vectors of users and items."""
    item_bias: bool = False
    """A number per item beside the dot product (later implementations, among them TransRec's authors'; the paper: none)."""
    init_std: float = 0.1
    """Standard deviation that vectors are drawn with."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class BPRMF(WithUsers):
    name = "bpr-mf"
    kind = "collaborative"
    Config = BPRMFConfig
    objective = "pairs"
    card = Card(
        title="BPR-MF",
        order=39,
        summary="Gives every user and every item a vector, so that items that a user interacted with score above others. The "
        "order of the history does not matter.",
        paper="Rendle, Freudenthaler, Gantner & Schmidt-Thieme, BPR: Bayesian Personalized Ranking from Implicit Feedback, "
        "UAI 2009",
        reasons={"attention": "It has no attention: a user is one vector."},
        variants=(Variant("bpr-mf", page=OnPage(examples=10)),),
    )
    reads_order = False

    def __init__(
        self, config: BPRMFConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.users = random_table(num_users, config.dim, config.init_std, generator)
        self.taste = random_table(num_items, config.dim, config.init_std, generator)
        if config.item_bias:
            self.bias = nn.Embedding(num_items, 1)
            nn.init.zeros_(self.bias.weight)
        self.fold_in = FoldIn(graph, config.dim, config.dim)

    def of_user(self, users: Tensor, last: Tensor | None) -> tuple[Tensor, ...]:
        return (self.users(users),)

    def of_items(self, items: Tensor) -> tuple[Tensor, ...]:
        return (self.taste(items),)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.user_vectors(items, users)


# --- FMC


@dataclass(frozen=True)
class FMCConfig:
    dim: int = 64
    """Width d of the vectors of an item as the last one, and as the next."""
    init_std: float = 0.1
    """Standard deviation that vectors are drawn with."""


class FMC(Factors):
    name = "fmc"
    kind = "sequential"
    Config = FMCConfig
    objective = "transitions"
    card = Card(
        title="FMC",
        order=29,
        summary="A Markov chain of first order, factorised: the last item alone decides, by the dot product of its vector with "
        "one of each next item, so that pairs that never followed each other in training have a score, too.",
        paper="The chain of Rendle, Freudenthaler & Schmidt-Thieme, Factorizing Personalized Markov Chains for Next-Basket "
        "Recommendation, WWW 2010, without its users",
        reasons={"attention": "It reads the last item alone."},
        variants=(Variant("fmc", page=OnPage(examples=10)),),
    )

    def __init__(self, config: FMCConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, 1
        self.last = random_table(num_items, config.dim, config.init_std, generator, pad=True)
        self.next = random_table(num_items, config.dim, config.init_std, generator)

    def of_user(self, users: Tensor, last: Tensor | None) -> tuple[Tensor, ...]:
        assert last is not None
        return (self.last(last),)

    def of_items(self, items: Tensor) -> tuple[Tensor, ...]:
        return (self.next(items),)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        vectors: Tensor = self.last(items[:, -1])
        return vectors


# --- FPMC


@dataclass(frozen=True)
class FPMCConfig:
    dim: int = 64
    """Width of all four vectors: of a user and an item for the user's taste, of the last and the next item for the chain."""
    init_std: float = 0.1
    """Standard deviation that vectors are drawn with."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class FPMC(WithUsers):
    name = "fpmc"
    kind = "sequential"
    Config = FPMCConfig
    objective = "transitions"
    card = Card(
        title="FPMC",
        order=28,
        summary="Adds up two things: how well an item goes with a user, whatever came when, and how well it goes after the "
        "last item. Both are dot products of vectors.",
        paper="Rendle, Freudenthaler & Schmidt-Thieme, Factorizing Personalized Markov Chains for Next-Basket "
        "Recommendation, WWW 2010",
        reasons={"attention": "It has no attention: it reads the user and the last item."},
        variants=(Variant("fpmc", page=OnPage(examples=10)),),
    )

    def __init__(
        self, config: FPMCConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.users = random_table(num_users, config.dim, config.init_std, generator)
        self.taste = random_table(num_items, config.dim, config.init_std, generator)
        self.last = random_table(num_items, config.dim, config.init_std, generator, pad=True)
        self.next = random_table(num_items, config.dim, config.init_std, generator)
        self.fold_in = FoldIn(graph, config.dim, config.dim, least=2)
        self.score_parts = {TASTE: config.dim, SUCCESSOR: config.dim}

    def of_user(self, users: Tensor, last: Tensor | None) -> tuple[Tensor, ...]:
        assert last is not None
        return self.users(users), self.last(last)

    def of_items(self, items: Tensor) -> tuple[Tensor, ...]:
        return self.taste(items), self.next(items)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return torch.cat([self.user_vectors(items, users), self.last(items[:, -1])], dim=1)
