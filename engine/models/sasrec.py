"""SASRec (Kang & McAuley, ICDM 2018), as its authors' code defines the network.

What ports usually change and this one keeps: item vectors are multiplied by sqrt(d); in a block the query is LayerNorm(x) while
key and value are x itself; heads are joined without an output projection; the residual adds LayerNorm(x), not x. Positions
count from the right end (the latest item always has the last position), which is what left padding means in their code.

**Fold-in.** With `user_vector`, the paper's explicit user modeling, somebody without a trained vector gets the mean of all, so
that states are matched with items as they were in training. (Users with fewer than two training events are among them, whose
vectors stay as they were drawn, near zero, and make it shorter by their share.)

**Time.** With `period`, which is ours, every so many days of the log have two vectors: one is added to the items that were taken
then, one to the states that were reached then, where it says what is popular at the time (as the biases of Koren, KDD 2009, 3.1,
which each have bins of time, but of rank d). What is learnt of a period is learnt of its training events. When the next item
will be taken nobody knows: its probability is the mean over the periods in which that would be after gaps as the log has them.
Where nobody knows when items were, as in bundles and on pages, vectors of their own stand in.

docs/models.md lists what differs from the paper, all of it in how it is trained.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant, added
from engine.models.base import NO_TIME, AttentionShape, LastState, score
from engine.models.layers import (
    NO_RESIDUAL,
    Mask,
    attend,
    check_heads,
    dropout,
    initialise,
    join_heads,
    sinusoid,
    split_heads,
)


@dataclass(frozen=True)
class SASRecConfig:
    dim: int = 50
    """Width d of item vectors and blocks."""
    blocks: int = 2
    """Self-attention blocks b (paper: 2; its ablation has 0, 1, 3)."""
    heads: int = 1
    """Attention heads; must divide dim."""
    dropout: float = 0.5
    """On embeddings, attention weights and both feed-forward layers (paper: .5; .2 for ML-1M)."""
    max_length: int = 50
    """Latest items read, n (paper: 50; 200 for ML-1M)."""
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    """Position signal added to the item vectors."""
    shared_items: bool = True
    """One item table for histories and targets; False is the paper's ablation with a separate output table."""
    residual: bool = True
    """Residual connections around attention and feed-forward layers."""
    init: Literal["glorot", "normal"] = "glorot"
    """glorot: TensorFlow's default, which the authors use. normal: N(0, .02) for every table and matrix."""
    period: int = added(0)
    """Days in a period, of which each has a vector for the items and one for the states in it; 0: times are not read (paper)."""
    without_times: float = added(0.5)
    """With period: share of the training sequences that are read without their times, to answer where these are not known."""
    user_vector: bool = added(False)
    """Add a vector of the user to the last state (paper: tried beside the default, which does without)."""


class Block(nn.Module):
    """One self-attention block (3.2 and 3.3 of the paper)."""

    def __init__(self, config: SASRecConfig) -> None:
        super().__init__()
        d = config.dim
        self.heads, self.dropout, self.residual = config.heads, config.dropout, config.residual
        self.attention_norm = nn.LayerNorm(d, eps=1e-8)
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.forward_norm = nn.LayerNorm(d, eps=1e-8)
        self.inner, self.outer = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x: Tensor, mask: Mask, real: Tensor | None, weights: list[Tensor] | None) -> Tensor:
        """x: [batch, length, d]; mask: what may be looked at; real: where given, [batch, length, 1], 0 at padding."""
        normed = self.attention_norm(x)
        q, k, v = (split_heads(h, self.heads) for h in (self.query(normed), self.key(x), self.value(x)))
        attended = attend(q, k, v, mask, self.dropout if self.training else 0.0, weights)
        x = join_heads(attended)
        if self.residual:
            x = x + normed
        normed = self.forward_norm(x)
        hidden = dropout(F.relu(self.inner(normed)), self.dropout, self.training)
        x = dropout(self.outer(hidden), self.dropout, self.training)
        if self.residual:
            x = x + normed
        return x if real is None else x * real


class Periods(nn.Module):
    """A vector of each period of the log, and one for where the time is not known. times: int64 [training events], seconds."""

    def __init__(self, times: npt.NDArray[np.int64], days: int, dim: int) -> None:
        super().__init__()
        self.first, self.seconds = int(times.min()), days * 86_400
        self.count = (int(times.max()) - self.first) // self.seconds + 1
        self.vectors = nn.Embedding(self.count + 1, dim)

    def forward(self, times: Tensor | None) -> Tensor:
        """float32 [batch, length, dim], or [dim] where no time is known. times: int64 [batch, length], seconds or NO_TIME; before
        and after the log are its first period and its last."""
        if times is None:
            return self.vectors.weight[self.count]
        period = (times - self.first).div(self.seconds, rounding_mode="floor").clamp(0, self.count - 1)
        return self.vectors(period.masked_fill(times == NO_TIME, self.count))


class SelfAttentive(LastState):
    """Histories read by causal self-attention. The configuration has blocks, heads and dropout."""

    draws_apart = True

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """As there; weights: where given, one [batch, heads, length, length] per block is appended to it."""
        raise TypeError(f"{type(self).__name__} has no states")

    def encoded(self, x: Tensor, items: Tensor, blocks: nn.ModuleList, weights: list[Tensor] | None) -> Tensor:
        """States after the last of `blocks`, float32 [batch, length, d]; zeros at padding, but in training. x: what is read,
        of the same shape; items: int64 [batch, length]."""
        x = dropout(x, self.config.dropout, self.training)
        # in training nobody looks at what becomes of padding
        real = None if self.training else (items != self.pad).unsqueeze(-1).float()
        if real is not None:
            x = x * real
        mask = Mask(items, self.pad, causal=True)
        for block in blocks:
            x = block(x, mask, real, weights)
        return x

    @property
    def attention(self) -> AttentionShape | None:
        if not self.config.blocks:
            return None
        return AttentionShape(
            self.config.blocks, self.config.heads, causal=True, window=self.max_length, next_token=False
        )

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        weights: list[Tensor] = []
        hidden = self.hidden(items, weights)
        return hidden[:, -1], torch.stack(weights, dim=1)


class SASRec(SelfAttentive):
    name = "sasrec"
    Config = SASRecConfig
    kind = "sequential"
    where_no_times = "take sasrec without model.period, which reads the order alone"
    card = Card(
        title="SASRec",
        order=10,
        summary="Reads the history left to right with causal self-attention; the last position's state is matched with every "
        "item. Recent items usually weigh most, and the order matters.",
        paper="Kang & McAuley, Self-Attentive Sequential Recommendation, ICDM 2018",
        variants=(
            Variant("sasrec", "blue", OnPage(chosen=True, examples=1)),
            Variant(
                "sasrec-bce",
                "moss",
                summary="SASRec with the loss of its paper, binary cross-entropy: it learns to tell every next item from one "
                "drawn at random. Its probabilities over the catalogue are overconfident.",
            ),
            Variant(
                "sasrec-time",
                summary="SASRec with vectors of the weeks, or other periods, in which items were taken, to know what is popular "
                "when. Pages ask it without times; Metrics has it both ways.",
            ),
        ),
    )

    def __init__(
        self,
        config: SASRecConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        times: npt.NDArray[np.int64] | None = None,
        gaps: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """times: int64 [training events]; gaps: int64 [some], seconds from an event to the next; both with `period`."""
        super().__init__()
        check_heads(config.dim, config.heads)
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.items = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)
        self.positions = nn.Embedding(config.max_length, config.dim) if config.positions == "learned" else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(config.dim, eps=1e-8)
        self.targets = None if config.shared_items else nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)
        self.trained_users = config.user_vector  # type: ignore[misc]
        self.users = nn.Embedding(num_users, config.dim) if config.user_vector else None
        self.register_buffer("newcomer", None, persistent=False)
        self.times, self.reads_times = times, times is not None
        self.item_periods, self.state_periods = (
            None if times is None else Periods(times, config.period, config.dim) for _ in range(2)
        )
        self.register_buffer("gaps", None if gaps is None else torch.from_numpy(gaps), persistent=False)
        draw = (
            functools.partial(nn.init.xavier_uniform_, generator=generator)
            if config.init == "glorot"
            else functools.partial(nn.init.normal_, std=0.02, generator=generator)
        )
        initialise(self, matrices=draw, tables=draw)

    @classmethod
    def needs_of(cls, config: SASRecConfig) -> tuple[str, ...]:
        return ("times", "gaps") if config.period else ()

    gaps: Tensor | None
    newcomer: Tensor | None
    """float32 [dim]: the mean of all user vectors, where nothing is learnt and there are any."""

    def train(self, mode: bool = True) -> SASRec:
        super().train(mode)
        self.newcomer = None if mode or self.users is None else self.users.weight.detach().mean(0)
        return self

    def hidden(
        self,
        items: Tensor,
        weights: list[Tensor] | None = None,
        users: Tensor | None = None,
        times: Tensor | None = None,
    ) -> Tensor:
        """State after every position, float32 [batch, length, dim]; zeros before normalisation at padding.

        items: int64 [batch, length]; weights, if given, receives one [batch, heads, length, length] per block; users: int64
        [batch], whose vectors are added where there are any; times: as of `scores_with_times`; where given, `period` was.
        """
        states = self._read(items, weights, times)
        if self.state_periods is not None:
            states = states + self.state_periods(times)
        return self._with_users(states, None if users is None else users[:, None])

    def _with_users(self, states: Tensor, users: Tensor | None) -> Tensor:
        """`states`, with the vectors of these users where there are any, or that of a newcomer."""
        if self.users is None:
            return states
        if users is not None:
            return states + self.users(users)
        return states + (self.users.weight.mean(0) if self.newcomer is None else self.newcomer)

    def _read(self, items: Tensor, weights: list[Tensor] | None, times: Tensor | None) -> Tensor:
        """`hidden` but for what is added to states."""
        length = items.shape[1]
        x = self.items(items) * math.sqrt(self.config.dim)
        if self.positions is not None:
            x = x + self.positions.weight[self.max_length - length :]
        elif self.config.positions == "sinusoidal":
            x = x + sinusoid(self.max_length, self.config.dim, items.device)[self.max_length - length :]
        if self.item_periods is not None:
            x = x + self.item_periods(times)
        states: Tensor = self.norm(self.encoded(x, items, self.blocks, weights))
        return states

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.hidden(items, users=users)[:, -1]

    def scores_with_times(self, items: Tensor, times: Tensor) -> Tensor:
        """log of the mean probability of each item over the gaps after which the next one may be taken."""
        assert self.gaps is not None and self.state_periods is not None
        state, last, index = self._with_users(self._read(items, None, times)[:, -1], None), times[:, -1:], self.index()
        after = self.state_periods((last + self.gaps).masked_fill(last == NO_TIME, NO_TIME)).unbind(1)
        logs = (score(state + moment, index).log_softmax(1) for moment in after)
        return functools.reduce(torch.logaddexp, logs) - math.log(len(after))

    @property
    def attention(self) -> AttentionShape | None:
        shape = super().attention
        if shape is None or self.config.residual:
            return shape
        return replace(shape, no_rollout=NO_RESIDUAL)

    @property
    def table(self) -> Tensor:
        """Vectors that a state is matched with, [num_items + 1, dim]; the last row is padding."""
        return (self.items if self.targets is None else self.targets).weight
