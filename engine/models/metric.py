"""Metric models: people and items are points, and what is near is recommended.

    PRME      −α ‖u − P_i‖² − (1 − α) ‖S_l − S_i‖²     Feng, Li, Zeng, Cong, Chee & Yuan, IJCAI 2015, equation 7
    TransRec  β_i − ‖γ_l + t + τ_u − γ_i‖²             He, Kang & McAuley, RecSys 2017, equations 2 and 3
    CML       −‖u − v_i‖²                              Hsieh, Yang, Cui, Lin, Belongie & Estrin, WWW 2017, equation 2

with l the last item. A squared distance is a dot product and a bias of the item: −w ‖x − y‖² = 2w x · y − w ‖y‖² and what is the
same for every item.

**Fold-in.** In PRME and CML somebody without a trained point stands where squared distances to the history's items are least, at
the mean of their points. In TransRec such a person has τ = 0 and moves by t alone, as its paper has it (3.1).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import Comparing, ItemIndex
from engine.models.factorisation import SUCCESSOR, TASTE, mean_vector, random_table
from engine.models.graph import squared
from engine.models.layers import clip_to_ball

NO_ATTENTION = "It has no attention: it measures distances between points."


class Metric(Comparing):
    """Scores are −Σ w (point − row)² over dimensions, and a bias of the item where there is one."""

    trained_users = True
    histories = 128  # whole ones, which are long

    users: nn.Embedding
    weights: Tensor
    """w, float32 [dim], or [1], a 1, for all."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.ones(1), persistent=False)
        self.bias: nn.Embedding | None = None

    def folded(self, items: Tensor) -> Tensor | None:
        """What stands in for a user's vector: float32 [batch, dim] of int64 [batch, length]; None for nothing."""
        raise TypeError(f"{type(self).__name__} folds nobody in")

    def point(self, user: Tensor | None, last: Tensor | None) -> Tensor:
        """Where somebody stands, float32 [batch, dim]. user: that one's vector; last: int64 [batch], the item before."""
        raise TypeError(f"{type(self).__name__} has no points")

    def of_items(self, items: Tensor) -> Tensor:
        """Where items stand, float32 […, dim] of int64 […]."""
        raise TypeError(f"{type(self).__name__} has no points")

    def penalised(self, point: Tensor, users: Tensor, last: Tensor | None) -> Tensor:
        """Σ‖·‖² of what a point is made of."""
        return squared(point)

    def compare(self, users: Tensor, items: Tensor, last: Tensor | None = None) -> tuple[Tensor, Tensor]:
        point, rows = self.point(self.users(users), last), self.of_items(items)
        scale = self.weights.sqrt()
        scores = -squared_distances(point, rows) if len(scale) == 1 else -squared_distances(point * scale, rows * scale)
        touched = self.penalised(point, users, last) + squared(rows)
        if self.bias is not None:
            biases = self.bias(items).squeeze(-1)
            scores, touched = scores + biases, touched + squared(biases)
        return scores, touched

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return 2 * self.weights * self.point(self.folded(items) if users is None else self.users(users), items[:, -1])

    def index(self) -> ItemIndex:
        rows = self.of_items(torch.arange(self.num_items, device=self.users.weight.device))
        bias = -(rows.square() * self.weights).sum(1)
        return ItemIndex(rows, bias if self.bias is None else bias + self.bias.weight[:, 0])


class _SquaredDistances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor, rows: Tensor) -> Tensor:
        away = rows - points[:, None]
        ctx.save_for_backward(away)
        return torch.linalg.vector_norm(away, dim=-1).square_()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        (away,) = ctx.saved_tensors
        of_rows = away * (2 * gradient).unsqueeze(-1)
        return -of_rows.sum(1), of_rows


def squared_distances(points: Tensor, rows: Tensor) -> Tensor:
    """‖x − y‖², float32 [batch, k] of points x [batch, dim] and rows y [batch, k, dim]. PyTorch's own operations and their
    gradients pass over all coordinates five times more."""
    distances: Tensor = _SquaredDistances.apply(points, rows)
    return distances


# --- PRME


@dataclass(frozen=True)
class PRMEConfig:
    dim: int = 60
    """Width of each of the two spaces (paper: 60)."""
    preference: float = 0.2
    """α, what the distance from the user weighs; the one from the last item weighs 1 − α (paper: .2)."""
    init_std: float = 0.1
    """Standard deviation that points are drawn with (paper: .01, from which batches of pairs start slowly)."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class PRME(Metric):
    name = "prme"
    kind = "sequential"
    Config = PRMEConfig
    objective = "transitions"
    card = Card(
        title="PRME",
        order=27,
        summary="Places users and items in one space and items once more in another: recommended is what is near the user in "
        "the first and near the last item in the second.",
        paper="Feng, Li, Zeng, Cong, Chee & Yuan, Personalized Ranking Metric Embedding for Next New POI Recommendation, "
        "IJCAI 2015",
        geometry="euclidean",
        reasons={"attention": NO_ATTENTION},
        variants=(Variant("prme", page=OnPage(examples=10)),),
    )

    def __init__(self, config: PRMEConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.users = random_table(num_users, config.dim, config.init_std, generator)
        self.taste = random_table(num_items, config.dim, config.init_std, generator)  # P
        self.sequence = random_table(num_items, config.dim, config.init_std, generator, pad=True)  # S
        self.weights = torch.tensor([config.preference, 1 - config.preference]).repeat_interleave(config.dim)
        self.score_parts = {TASTE: config.dim, SUCCESSOR: config.dim}

    def folded(self, items: Tensor) -> Tensor:
        return mean_vector(items, self.taste.weight, self.pad)

    def point(self, user: Tensor | None, last: Tensor | None) -> Tensor:
        assert user is not None and last is not None
        return torch.cat([user, self.sequence(last)], dim=1)

    def of_items(self, items: Tensor) -> Tensor:
        return torch.cat([self.taste(items), self.sequence(items)], dim=-1)


# --- TransRec


@dataclass(frozen=True)
class TransRecConfig:
    dim: int = 64
    """Width of the transition space."""
    init_std: float = 0.1
    """Standard deviation that the points of items and the translation of all are drawn with; τ and β start from zero."""


class TransRec(Metric):
    name = "transrec"
    kind = "sequential"
    Config = TransRecConfig
    objective = "transitions"
    card = Card(
        title="TransRec",
        order=26,
        summary="Places items in a space in which a user is a translation: from the last item by a shared step and one of "
        "their own. It recommends items near the end point, and popular ones.",
        paper="He, Kang & McAuley, Translation-based Recommendation, RecSys 2017",
        geometry="euclidean",
        reasons={"attention": NO_ATTENTION},
        variants=(Variant("transrec", page=OnPage(examples=10)),),
    )

    def __init__(self, config: TransRecConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, 1
        self.items = random_table(num_items, config.dim, config.init_std, generator, pad=True)  # γ
        self.everybody = nn.Parameter(torch.empty(config.dim).normal_(std=config.init_std, generator=generator))  # t
        self.users = nn.Embedding(num_users, config.dim)  # τ
        self.bias = nn.Embedding(num_items, 1)  # β
        self.score_parts = {"where the last item stands": config.dim, "the step from there": config.dim}
        nn.init.zeros_(self.users.weight)
        nn.init.zeros_(self.bias.weight)
        self.constrain()

    def folded(self, items: Tensor) -> None:
        return None

    def point(self, user: Tensor | None, last: Tensor | None) -> Tensor:
        assert last is not None
        return self.items(last) + self._step(user)

    def _step(self, user: Tensor | None) -> Tensor:
        return self.everybody if user is None else self.everybody + user

    def of_items(self, items: Tensor) -> Tensor:
        return self.items(items)

    def penalised(self, point: Tensor, users: Tensor, last: Tensor | None) -> Tensor:
        assert last is not None
        return squared(self.users(users)) + squared(self.items(last)) + len(users) * squared(self.everybody)

    def constrain(self) -> None:
        """Items stay in the unit ball (paper, 3.1)."""
        clip_to_ball(self.items)

    def query_parts(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """Twice γ_l and t + τ_u (t of somebody who is not known): float32 [batch, 2, dim]."""
        last = self.items(items[:, -1])
        step = self._step(None if users is None else self.users(users))
        return 2 * torch.stack([last, step.expand_as(last)], dim=1)


# --- CML


@dataclass(frozen=True)
class CMLConfig:
    dim: int = 64
    """Width of the space of users and items."""
    init_std: float = 0.1
    """Standard deviation that points are drawn with."""
    max_length: int = 1000
    """Latest items of a history that fold a user in."""


class CML(Metric):
    name = "cml"
    kind = "collaborative"
    Config = CMLConfig
    objective = "warp"
    card = Card(
        title="CML",
        order=36,
        summary="Places users and items in one space, so that items that a user interacted with are nearer by a margin than "
        "others. Items of the same users come near each other; order does not matter.",
        paper="Hsieh, Yang, Cui, Lin, Belongie & Estrin, Collaborative Metric Learning, WWW 2017",
        geometry="euclidean",
        reasons={"attention": NO_ATTENTION},
        variants=(Variant("cml", page=OnPage(examples=10)),),
    )
    reads_order = False

    def __init__(self, config: CMLConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.users = random_table(num_users, config.dim, config.init_std, generator)
        self.items = random_table(num_items, config.dim, config.init_std, generator)
        self.constrain()

    def folded(self, items: Tensor) -> Tensor:
        return mean_vector(items, self.items.weight, self.pad)

    def point(self, user: Tensor | None, last: Tensor | None) -> Tensor:
        assert user is not None
        return user

    def of_items(self, items: Tensor) -> Tensor:
        # its gradient takes two thirds of the time of an embedding's
        return self.items.weight.index_select(0, items.flatten()).view(*items.shape, -1)

    def constrain(self) -> None:
        """Users and items stay in the unit ball (paper, 3.3)."""
        clip_to_ball(self.users, self.items)
