"""HSTU, hierarchical sequential transduction units (Zhai et al., ICML 2024): attention without a softmax.

    U, V, Q, K = split(SiLU(W_1 LayerNorm(x)))
    A = SiLU(Q Kᵀ + p) / n,                     p_ij a learnt bias of how many places j lies before i (3.2, eq. 1 to 3)
    x ← x + W_2 (LayerNorm(A V) ⊙ U)

Each item's weight stands for itself: what an item gets is not taken from the others, so how often something occurs is seen. n is
the longest history, `max_length`. Both LayerNorms have no parameters.

Differs: the bias is of places alone. The paper's has one of the time between items beside it, and histories come without times
here (docs/models.md says what it would need). One LayerNorm after the last layer, in place of unit length.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.esasrec import NextItemNetwork
from engine.models.layers import dropout, join_heads, looked_up, split_heads


@dataclass(frozen=True)
class HSTUConfig:
    dim: int = 64
    """Width of item vectors and layers (authors: 50 for MovieLens, 64 for Books)."""
    blocks: int = 2
    """Layers (authors: 2; HSTU-large 8 for MovieLens, 16 for Books)."""
    heads: int = 2
    """Attention heads; must divide dim (authors: 1, HSTU-large 2)."""
    dropout: float = 0.2
    """On embeddings and before W_2 (authors: .2 for MovieLens, .5 for Books)."""
    max_length: int = 50
    """Latest items read, n (authors: 200 for MovieLens, 50 for Books)."""


class HSTULayer(nn.Module):
    def __init__(self, config: HSTUConfig, generator: torch.Generator) -> None:
        super().__init__()
        d = config.dim
        self.heads, self.dropout, self.longest = config.heads, config.dropout, config.max_length
        self.inner, self.outer = nn.Linear(d, 4 * d, bias=False), nn.Linear(d, d)
        self.bias = nn.Parameter(torch.empty(config.max_length))
        nn.init.normal_(self.bias, std=0.02, generator=generator)
        nn.init.zeros_(self.outer.bias)

    def forward(self, x: Tensor, mask: Tensor, weights: list[Tensor] | None) -> Tensor:
        """x: [batch, length, d]; mask: from `visible`."""
        d, place = x.shape[-1:], torch.arange(x.shape[1], device=x.device)
        gate, *projected = F.silu(self.inner(F.layer_norm(x, d))).chunk(4, dim=-1)
        v, q, k = (split_heads(part, self.heads) for part in projected)
        before = looked_up(self.bias, (place[:, None] - place[None, :]).clamp(min=0))
        share = F.silu(q @ k.transpose(-1, -2) + before) / self.longest * (mask == 0)
        if weights is not None:
            weights.append(share)
        attended = F.layer_norm(join_heads(share @ v), d) * gate
        return x + self.outer(dropout(attended, self.dropout, self.training))


class HSTU(NextItemNetwork):
    name = "hstu"
    Config = HSTUConfig
    card = Card(
        title="HSTU",
        order=14,
        summary="Reads the history left to right like SASRec, but weighs each item for itself instead of sharing one weight out "
        "among all of them, so that the strength of an interest counts.",
        paper="Zhai, Liao, Liu et al., Actions Speak Louder than Words: Trillion-Parameter Sequential Transducers for Generative "
        "Recommendations, ICML 2024",
        reasons={"attention": "Its weights are no shares: they do not add up to one, and some are below zero."},
        variants=(Variant("hstu", page=OnPage(examples=1)),),
    )

    def __init__(self, config: HSTUConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        layers: list[nn.Module] = [HSTULayer(config, generator) for _ in range(config.blocks)]
        super().__init__(config, num_items, layers, generator)
        self.norm = nn.LayerNorm(config.dim)

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        return self.norm(super().hidden(items, weights))

    def weights(self, items: Tensor) -> Tensor:
        """What each position weighs those up to it with, float32 [batch, layers, heads, length, length]: no shares."""
        weights: list[Tensor] = []
        self.hidden(items, weights)
        return torch.stack(weights, dim=1)
