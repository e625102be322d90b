"""AttRec (Zhang, Tay, Yao & Sun, 2018): self-attentive short-term intent and metric long-term taste.

The score of an item is a weighted squared distance, smaller is better:  y = ω‖u − V_i‖² + (1 − ω)‖m − X_i‖²,
with m the mean of the attended last L items. As a query and an index: q = (2ωu, 2(1−ω)m), e_i = (V_i, X_i),
b_i = −ω‖V_i‖² − (1−ω)‖X_i‖²; the terms of ‖u‖² and ‖m‖² are the same for every item.

**Fold-in.** Somebody who has no trained vector gets the point of the taste space nearest to the items of the history:
u = argmin Σ_j ‖u − V_j‖² = the mean of their V_j (inside the unit ball, as they are). With `score="dot"`, for which no point is
nearest, it is the same mean.

Differs: shipped recipes have no L2 (`objective.l2`; authors' code: .001). docs/models.md lists all that differs from the paper.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant, added
from engine.models.base import AttentionShape, ItemIndex
from engine.models.factorisation import TASTE
from engine.models.graph import squared
from engine.models.layers import clip_to_ball, dropout, sinusoid
from engine.models.windowed import Windowed


@dataclass(frozen=True)
class AttRecConfig:
    dim: int = 100
    """Width d of both metric spaces (authors' code: 150)."""
    window: int = 5
    """Latest items attended to, L."""
    omega: float = 0.2
    """Weight ω of the long-term distance; 1 − ω goes to the short-term one (authors' code: .2)."""
    diagonal: Literal["before", "after"] = "before"
    """How an item is kept from attending to itself. before: masked before the softmax, as the paper says.
    after: weights times (1 − I) without renormalising, as the authors' code does."""
    clip: bool = True
    """Keep every vector in the unit ball (paper, 3.4); the authors' code defines the operation and leaves the call out."""
    fold_in: int = 200
    """Latest items of a history that fold a user in."""
    init_std: float = 0.001
    """Standard deviation of the truncated normal that tables start from."""
    attention: bool = added(True)
    """Self-attention over the window; False: m is made of its items as they are (the paper's ablation)."""
    aggregate: Literal["mean", "sum", "max", "min"] = added("mean")
    """How the rows of the window become m, number by number (paper: mean, compared with the others)."""
    score: Literal["distance", "dot"] = added("distance")
    """distance: the paper's. dot: ω u·V_i + (1 − ω) m·X_i, which the paper compares it with."""


class AttRec(Windowed):
    name = "attrec"
    Config = AttRecConfig
    card = Card(
        title="AttRec",
        order=30,
        summary="Places users and items in two metric spaces and ranks by distance: one for lasting taste, one for the "
        "intent of the last few items, read by self-attention. Nearer is better.",
        paper="Zhang, Tay, Yao & Sun, Next Item Recommendation with Self-Attention, 2018 (arXiv 1808.06414)",
        geometry="euclidean",
        variants=(Variant("attrec", "green", OnPage()),),
    )

    def __init__(self, config: AttRecConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items = config, num_items
        self.max_length = max(config.fold_in, config.window)
        self.users = nn.Embedding(num_users, config.dim)
        self.taste = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)  # V
        self.intent = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)  # X
        # one projection for query and key
        self.project = nn.Linear(config.dim, config.dim, bias=False) if config.attention else None
        self.score_parts = {TASTE: config.dim, "the intent of the latest items": config.dim}
        if self.project is not None:
            nn.init.xavier_uniform_(self.project.weight, generator=generator)
        for table in (self.users, self.taste, self.intent):
            std = config.init_std
            nn.init.trunc_normal_(table.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
        with torch.no_grad():
            self.taste.weight[self.pad] = 0
            self.intent.weight[self.pad] = 0

    def attended(self, window: Tensor) -> tuple[Tensor, Tensor]:
        """Short-term intent m [batch, dim] of int64 [batch, L] items, and the weights [batch, L, L], without attention those of
        items that look at themselves alone."""
        real = window != self.pad
        x = self.intent(window)
        if self.project is None:
            weights = torch.diag_embed(real.float())
            return self._aggregated(x, real), weights
        signal = x + sinusoid(window.shape[1], self.config.dim, window.device)
        projected = F.relu(self.project(signal))
        logits = projected @ projected.transpose(1, 2) / math.sqrt(self.config.dim)
        place = torch.arange(window.shape[1], device=window.device)
        itself = place[None, :] == place[:, None]
        others = real[:, None, :] & ~itself
        if self.config.diagonal == "before":
            # with a single item there is nothing else to attend to: it attends to itself
            allowed = others | (itself & ~others.any(-1, keepdim=True))
            weights = F.softmax(logits.masked_fill(~allowed, -torch.inf), dim=-1)
        else:
            weights = F.softmax(logits.masked_fill(~(real[:, None, :] | itself), -torch.inf), dim=-1)
            weights = weights.masked_fill(itself, 0.0)
        return self._aggregated(weights @ x, real), weights

    def _aggregated(self, rows: Tensor, real: Tensor) -> Tensor:
        """One vector of a window's rows, [batch, L, dim] → [batch, dim]; zeros of padding alone. real: bool [batch, L]."""
        there, aggregate = real.unsqueeze(-1), self.config.aggregate
        if aggregate in ("mean", "sum"):
            total = (rows * there.float()).sum(1)
            return total / there.float().sum(1).clamp(min=1) if aggregate == "mean" else total
        sign = 1 if aggregate == "max" else -1
        extreme = sign * (sign * rows).masked_fill(~there, -torch.inf).amax(1)
        return extreme.masked_fill(~real.any(1, keepdim=True), 0.0)

    def folded(self, items: Tensor) -> Tensor:
        """A taste vector for histories without a trained user: [batch, dim]"""
        real = (items != self.pad).unsqueeze(-1).float()
        return self.taste(items).sum(1) / real.sum(1).clamp(min=1)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        taste = self.folded(items) if users is None else self.users(users)
        intent, _ = self.attended(self.window(items))
        factor = 2 if self.config.score == "distance" else 1
        return torch.cat([factor * self.config.omega * taste, factor * (1 - self.config.omega) * intent], dim=1)

    def index(self) -> ItemIndex:
        taste, intent = self.taste.weight[: self.num_items], self.intent.weight[: self.num_items]
        omega, rows = self.config.omega, torch.cat([taste, intent], dim=1)
        if self.config.score == "dot":
            return ItemIndex(rows, rows.new_zeros(self.num_items))
        return ItemIndex(rows, -omega * taste.square().sum(1) - (1 - omega) * intent.square().sum(1))

    def window_scores(self, users: Tensor, window: Tensor, candidates: Tensor, rate: float) -> Tensor:
        """Distances, negated, or dot products."""
        people = dropout(self.users(users), rate, self.training)
        intent = dropout(self.attended(window)[0], rate, self.training)
        among = (slice(None), *[None] * (candidates.ndim - 1))
        omega, taste, aims = self.config.omega, self.taste(candidates), self.intent(candidates)
        if self.config.score == "dot":
            return omega * (people[among] * taste).sum(-1) + (1 - omega) * (intent[among] * aims).sum(-1)
        distance = omega * (people[among] - taste).square().sum(-1)
        return -distance - (1 - omega) * (intent[among] - aims).square().sum(-1)

    def touched(self, users: Tensor, window: Tensor, candidates: Tensor) -> Tensor:
        vectors = (self.users(users), self.intent(window), self.taste(candidates), self.intent(candidates))
        return torch.stack([squared(part) for part in vectors]).sum()

    def penalised_matrices(self) -> Tensor | float:
        return 0.0 if self.project is None else squared(self.project.weight)

    def constrain(self) -> None:
        """Scale back every row longer than 1."""
        if self.config.clip:
            clip_to_ball(self.users, self.taste, self.intent)

    @property
    def geometry(self) -> Literal["cosine", "euclidean", "none"]:
        return "euclidean" if self.config.score == "distance" else "cosine"

    @property
    def attention(self) -> AttentionShape | None:
        if self.project is None or self.config.aggregate in ("max", "min"):  # of which no row's share can be said
            return None
        return AttentionShape(
            1, 1, causal=False, window=self.config.window, next_token=False, masked_diagonal=True, pooled=True
        )

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        _, weights = self.attended(self.window(items))
        return self.query(items), weights[:, None, None]
