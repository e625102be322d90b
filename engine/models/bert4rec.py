"""BERT4Rec (Sun et al., CIKM 2019): a bidirectional encoder that fills in the item behind [MASK].

As the authors' code: item and position embeddings are summed, normalised and dropped out; post-LN layers with an output
projection and a feed-forward of 4·d; a head GELU(hW + b) → LayerNorm; logits against the tied item table plus a bias per item.
Positions count from the first item (their padding is on the right); padding here is on the left, so positions are counted.

Differs: there is no token-type embedding, and training never sees the validation item, which the authors merge into the history.
docs/models.md lists all that differs from the paper.
"""

import functools
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant, added
from engine.models.base import AttentionShape, ItemIndex, LastState
from engine.models.layers import (
    NO_RESIDUAL,
    Mask,
    attend,
    check_heads,
    dropout,
    initialise,
    join_heads,
    split_heads,
)


@dataclass(frozen=True)
class BERT4RecConfig:
    dim: int = 64
    """Width d (authors' scripts: 64; best in the paper: 256)."""
    layers: int = 2
    """Transformer layers L."""
    heads: int = 2
    """Attention heads h; must divide dim."""
    inner: int = 4
    """Feed-forward width as a multiple of dim."""
    dropout: float = 0.1
    """On embeddings, projections and feed-forward layers (authors: .5 Beauty, .2 ML-1M, .1 ML-20M and Steam)."""
    attention_dropout: float = 0.1
    """On attention weights (authors: .2 Beauty and ML-1M, .1 ML-20M and Steam)."""
    max_length: int = 200
    """Positions, one of which is [MASK] when asked for the next item; so max_length − 1 items of the history are read."""
    positions: Literal["learned", "none"] = added("learned")
    """Position embeddings (PE of the paper's ablation)."""
    feed_forward: bool = added(True)
    """Feed-forward part of each layer (PFFN); False: a layer is its attention."""
    norm: bool = added(True)
    """LayerNorm after each part of a layer (LN); those of the embeddings and of the head, which the paper's equations have not,
    stay."""
    residual: bool = added(True)
    """Residual connections around each part of a layer (RC)."""


class TransformerLayer(nn.Module):
    """One post-LN Transformer layer."""

    def __init__(self, config: BERT4RecConfig) -> None:
        super().__init__()
        d = config.dim
        self.heads, self.dropout, self.attention_dropout = config.heads, config.dropout, config.attention_dropout
        self.residual, self.feed_forward = config.residual, config.feed_forward
        self.query, self.key, self.value, self.project = (nn.Linear(d, d) for _ in range(4))
        self.attention_norm = nn.LayerNorm(d, eps=1e-12) if config.norm else nn.Identity()
        if config.feed_forward:
            self.inner, self.outer = nn.Linear(d, config.inner * d), nn.Linear(config.inner * d, d)
            self.forward_norm = nn.LayerNorm(d, eps=1e-12) if config.norm else nn.Identity()

    def forward(self, x: Tensor, mask: Mask, weights: list[Tensor] | None) -> Tensor:
        """x: [batch, length, d]; mask: what may be looked at"""
        q, k, v = (split_heads(project(x), self.heads) for project in (self.query, self.key, self.value))
        rate = self.attention_dropout if self.training else 0.0
        attended = attend(q, k, v, mask, rate, weights)
        x = self._added(x, self.project(join_heads(attended)), self.attention_norm)
        if not self.feed_forward:
            return x
        return self._added(x, self.outer(F.gelu(self.inner(x))), self.forward_norm)

    def _added(self, x: Tensor, part: Tensor, norm: nn.Module) -> Tensor:
        """What a part of the layer leaves behind. x: what it was given; part: what it made of that."""
        part = dropout(part, self.dropout, self.training)
        left: Tensor = norm(x + part if self.residual else part)
        return left


class BERT4Rec(LastState):
    name = "bert4rec"
    Config = BERT4RecConfig
    objective = "cloze"
    draws_apart = True
    kind = "sequential"
    card = Card(
        title="BERT4Rec",
        order=20,
        summary="Reads the history in both directions with [MASK] standing where the next item will be, and fills it in. "
        "It learns from items hidden anywhere in a sequence, so it knows what surrounds an item, not only what follows it.",
        paper="Sun et al., BERT4Rec: Sequential Recommendation with Bidirectional Encoder Representations from "
        "Transformer, CIKM 2019",
        variants=(Variant("bert4rec", "red", OnPage(examples=1)),),
    )
    min_history = 0

    def __init__(self, config: BERT4RecConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        check_heads(config.dim, config.heads)
        if config.max_length < 2:
            raise ValueError(f"max_length {config.max_length} leaves no position beside [MASK]; it must be 2 or more")
        self.config, self.num_items, self.max_length = config, num_items, config.max_length - 1
        self.mask_token = num_items + 1
        self.items = nn.Embedding(num_items + 2, config.dim, padding_idx=num_items)
        self.positions = nn.Embedding(config.max_length, config.dim) if config.positions == "learned" else None
        self.norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.layers))
        self.head = nn.Linear(config.dim, config.dim)
        self.head_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(num_items))
        normal = functools.partial(nn.init.trunc_normal_, std=0.02, a=-0.04, b=0.04, generator=generator)
        initialise(self, matrices=normal, tables=normal)

    def hidden(self, tokens: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """State at every position before the head, float32 [batch, length, dim].

        tokens: int64 [batch, length] of items, padding (num_items) on the left and [MASK] (num_items + 1).
        """
        x = self.items(tokens)
        if self.positions is not None:
            place = ((tokens != self.pad).cumsum(dim=1) - 1).clamp(min=0)
            x = x + self.positions(place)
        x = dropout(self.norm(x), self.config.dropout, self.training)
        mask = Mask(tokens, self.pad, causal=False)
        for layer in self.layers:
            x = layer(x, mask, weights)
        return x

    def transform(self, hidden: Tensor) -> Tensor:
        """The head: [..., dim] → [..., dim], to be matched with the item table."""
        return self.head_norm(F.gelu(self.head(hidden)))

    def _with_mask(self, items: Tensor) -> Tensor:
        return torch.cat([items, torch.full_like(items[:, :1], self.mask_token)], dim=1)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return self.transform(self.hidden(self._with_mask(items))[:, -1])

    def index(self) -> ItemIndex:
        return ItemIndex(self.items.weight[: self.num_items], self.bias)

    @property
    def attention(self) -> AttentionShape | None:
        shape = AttentionShape(
            self.config.layers, self.config.heads, causal=False, window=self.max_length, next_token=True
        )
        return shape if self.config.residual else replace(shape, no_rollout=NO_RESIDUAL)

    def query_with_attention(self, items: Tensor) -> tuple[Tensor, Tensor]:
        weights: list[Tensor] = []
        hidden = self.hidden(self._with_mask(items), weights)
        return self.transform(hidden[:, -1]), torch.stack(weights, dim=1)
