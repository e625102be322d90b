"""NARM, neural attentive recommendation machine (Li et al., CIKM 2017): a GRU whose states are looked back at.

    h_1 … h_t   states of a gated recurrent unit over the history
    c_g = h_t                                   global encoder: the whole history in order
    c_l = Σ_j α_j h_j,  α_j = v · σ(A1 h_t + A2 h_j)      local encoder: what it is about now (eq. 6 to 8)
    score(i) = e_i · B [c_g; c_l]               bilinear, e the table that is read (eq. 10)

As in the paper the α are neither shares nor positive; in the authors' code, which its figures come from, a softmax makes shares
of them: `variant="code"`, which the recipes take.

Differs: the logistic function where their code has its piecewise linear approximation; the unit as in GRU4Rec.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import AttentionShape, LastState
from engine.models.layers import dropout, gru, gru_states, visible

ALL, LAST = slice(None), slice(-1, None)
"""Of the positions of a history: training asks all of them, which takes memory by the square of the length, a query the last."""


@dataclass(frozen=True)
class NARMConfig:
    dim: int = 50
    """Width of item vectors (paper: 50)."""
    hidden: int = 100
    """Width of the states (paper: 100)."""
    input_dropout: float = 0.25
    """On the vectors of the items that are read (paper: .25)."""
    dropout: float = 0.5
    """On [c_g; c_l] (paper: .5)."""
    max_length: int = 50
    """Latest items read."""
    variant: Literal["paper", "code"] = "paper"
    """code: a softmax over the α of a history, which thereby are attention weights."""


class NARM(LastState):
    name = "narm"
    Config = NARMConfig
    draws_apart = True
    kind = "sequential"
    card = Card(
        title="NARM",
        order=18,
        summary="Reads the history with a gated recurrent network, and looks back from its last state at the ones before: the "
        "whole history and what it is about now, side by side.",
        paper="Li, Ren, Chen, Ren, Lian & Ma, Neural Attentive Session-based Recommendation, CIKM 2017",
        reasons={"attention": "As in its paper, it weighs what it looks back at with numbers that are no shares."},
        variants=(Variant("narm", page=OnPage(examples=1)),),
    )

    def __init__(self, config: NARMConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.items = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)
        self.gru = gru(config.dim, config.hidden, 1, 0.0, generator)
        self.from_last = nn.Linear(config.hidden, config.hidden, bias=False)  # A1
        self.from_each = nn.Linear(config.hidden, config.hidden, bias=False)  # A2
        self.weigh = nn.Linear(config.hidden, 1, bias=False)  # v
        self.bilinear = nn.Linear(2 * config.hidden, config.dim, bias=False)  # B
        self.score_parts = {"the whole history in order": config.dim, "what it is about now": config.dim}
        nn.init.normal_(self.items.weight, std=config.dim**-0.5, generator=generator)
        for matrix in (self.from_last, self.from_each, self.weigh, self.bilinear):
            nn.init.xavier_uniform_(matrix.weight, generator=generator)
        with torch.no_grad():
            self.items.weight[self.pad] = 0

    def _states(self, items: Tensor) -> Tensor:
        """h after every position, float32 [batch, length, hidden]. items: int64 [batch, length]."""
        return gru_states(self.gru, dropout(self.items(items), self.config.input_dropout, self.training))

    def _alpha(self, items: Tensor, states: Tensor, rows: slice) -> Tensor:
        """α of some positions over those up to each, float32 [batch, rows, length]; 0 where it does not look."""
        joint = torch.sigmoid(self.from_last(states[:, rows]).unsqueeze(2) + self.from_each(states).unsqueeze(1))
        alpha = self.weigh(joint).squeeze(-1)
        mask = visible(items, self.pad, causal=True).squeeze(1)[:, rows]
        return F.softmax(alpha + mask, dim=-1) if self.config.variant == "code" else alpha * (mask == 0)

    def _joined(self, states: Tensor, alpha: Tensor, rows: slice) -> Tensor:
        """B [c_g; c_l] of these positions, float32 [batch, rows, dim]."""
        both = torch.cat([states[:, rows], alpha @ states], dim=-1)
        return self.bilinear(dropout(both, self.config.dropout, self.training))

    def hidden(self, items: Tensor) -> Tensor:
        """B [c_g; c_l] after every position, float32 [batch, length, dim]. items: int64 [batch, length]."""
        states = self._states(items)
        return self._joined(states, self._alpha(items, states, ALL), ALL)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        states = self._states(items)
        return self._joined(states, self._alpha(items, states, LAST), LAST)[:, 0]

    def query_parts(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        """B [c_g; 0] and B [0; c_l], without dropout: float32 [batch, 2, dim]."""
        states = self._states(items)
        looked_at = self._alpha(items, states, LAST) @ states
        of_global, of_local = self.bilinear.weight.split(self.config.hidden, dim=1)
        return torch.cat([F.linear(states[:, LAST], of_global), F.linear(looked_at, of_local)], dim=1)

    @property
    def attention(self) -> AttentionShape | None:
        if self.config.variant == "paper":
            return None
        no_rollout = (
            "Rollout is not defined for this model: its one layer weighs states of a recurrent network, which hold all items up "
            "to theirs, and adds no residual."
        )
        return AttentionShape(1, 1, causal=True, window=self.max_length, next_token=False, no_rollout=no_rollout)

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        if self.config.variant == "paper":
            return super().query_with_attention(items)
        states = self._states(items)
        alpha = self._alpha(items, states, ALL)
        return self._joined(states, alpha[:, LAST], LAST)[:, 0], alpha[:, None, None]

    def alpha(self, items: Tensor) -> Tensor:
        """What the last state weighs each state with, float32 [batch, length]: shares in the code's variant, else any numbers."""
        return self._alpha(items, self._states(items), LAST)[:, 0]
