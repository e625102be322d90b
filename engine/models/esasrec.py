"""eSASRec (Tikhonovich et al., RecSys 2025): SASRec's task with LiGR layers and sampled softmax; and what HSTU shares with it.

A LiGR layer (Borisyuk et al. 2025, arXiv 2502.03417) normalises first and gates what it adds:

    x ← x + σ(W_a x) ⊙ dropout(attention(LayerNorm(x)))
    x ← x + σ(W_f x) ⊙ dropout(SwiGLU(LayerNorm(x))),   SwiGLU(x) = (SiLU(x W_1) ⊙ x W_2) W_3

Attention has several heads and an output projection; there is no last LayerNorm. Positions count from the latest item.

Differs: by default the 256 negatives of a target are shared by the batch (`objective.shared_negatives`), where theirs are drawn
for every target (`objective.negatives`).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import LastState
from engine.models.layers import Mask, attend, check_heads, dropout, join_heads, split_heads
from engine.models.sasrec import SelfAttentive


class NextItemNetwork(LastState):
    """Item vectors with learned positions through causal blocks; the last state is matched with the item table.

    The configuration has dim, blocks, heads, dropout and max_length. A block is called with x [batch, length, dim], what may be
    looked at, a list for its attention weights, or None, and what `states` is given beside them, and returns x.
    """

    kind = "sequential"
    item_scale: float = 1.0
    """What item vectors are multiplied by before positions are added."""

    def __init__(self, config: Any, num_items: int, blocks: list[nn.Module], generator: torch.Generator) -> None:
        super().__init__()
        check_heads(config.dim, config.heads)
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.items = nn.Embedding(num_items + 1, config.dim, padding_idx=num_items)
        self.positions = nn.Embedding(config.max_length, config.dim)
        self.blocks = nn.ModuleList(blocks)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_normal_(parameter, generator=generator)
        with torch.no_grad():
            self.items.weight[self.pad] = 0

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """State after every position, float32 [batch, length, dim]. items: int64 [batch, length]; weights, if given, receives one
        [batch, heads, length, length] per block."""
        return self.states(items, weights)

    def states(self, items: Tensor, weights: list[Tensor] | None, *beside: Tensor) -> Tensor:
        """What the last block returns; arguments as of `hidden`, beside: for the blocks."""
        x = self.items(items) * self.item_scale + self.positions.weight[self.max_length - items.shape[1] :]
        x = dropout(x, self.config.dropout, self.training)
        mask = Mask(items, self.pad, causal=True)
        for block in self.blocks:
            x = block(x, mask, weights, *beside)
        return x


@dataclass(frozen=True)
class ESASRecConfig:
    dim: int = 64
    """Width of item vectors and layers (authors: 64 to 256; 64 for Beauty in their README)."""
    blocks: int = 2
    """LiGR layers (authors: 1 for Amazon, 2 to 4 elsewhere)."""
    heads: int = 2
    """Attention heads; must divide dim (authors: 1 to 8)."""
    inner: int = 4
    """Width of the feed-forward layers, in multiples of dim (authors: 4, 2 for Sports, 1 for Toys)."""
    dropout: float = 0.2
    """On embeddings, attention weights, and in and after both halves of a layer."""
    max_length: int = 50
    """Latest items read (authors: 50 for Amazon, 200 for MovieLens)."""


class LiGRLayer(nn.Module):
    def __init__(self, config: ESASRecConfig) -> None:
        super().__init__()
        d = config.dim
        self.heads, self.dropout = config.heads, config.dropout
        self.attention_norm, self.forward_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.attention_gate, self.forward_gate = nn.Linear(d, d), nn.Linear(d, d)
        self.gated, self.linear = (nn.Linear(d, config.inner * d, bias=False) for _ in range(2))
        self.outer = nn.Linear(config.inner * d, d, bias=False)
        for module in (self.query, self.key, self.value, self.out, self.attention_gate, self.forward_gate):
            nn.init.zeros_(module.bias)

    def forward(self, x: Tensor, mask: Mask, weights: list[Tensor] | None) -> Tensor:
        """x: [batch, length, d]; mask: what may be looked at."""
        normed = self.attention_norm(x)
        q, k, v = (split_heads(project(normed), self.heads) for project in (self.query, self.key, self.value))
        attended = attend(q, k, v, mask, self.dropout if self.training else 0.0, weights)
        x = x + torch.sigmoid(self.attention_gate(x)) * self._dropped(self.out(join_heads(attended)))
        normed = self.forward_norm(x)
        inner = self._dropped(F.silu(self.gated(normed)) * self.linear(normed))
        return x + torch.sigmoid(self.forward_gate(x)) * self._dropped(self.outer(inner))

    def _dropped(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class ESASRec(NextItemNetwork, SelfAttentive):
    name = "esasrec"
    Config = ESASRecConfig
    card = Card(
        title="eSASRec",
        order=12,
        summary="SASRec with the layers and the loss of later years: gates decide how much each layer adds, and every position "
        "learns to tell the next item from many others.",
        paper="Tikhonovich, Zelenkov, Kashirin et al., eSASRec: Enhancing Transformer-based Recommendations in a Modular "
        "Fashion, RecSys 2025",
        variants=(Variant("esasrec", page=OnPage(examples=1)),),
    )

    def __init__(self, config: ESASRecConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__(config, num_items, [LiGRLayer(config) for _ in range(config.blocks)], generator)
