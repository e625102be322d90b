"""Self-attention: one arithmetic, two ways to run it.

`attend` uses the fused kernel of PyTorch wherever nobody looks at the weights; `attend_with_weights` writes them out.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.dropout import dropout as drop

QUERIES = 64
"""Queries per block of CPU attention in training: a causal block needs no key after its last query, which saves half the work."""
LOGITS = 1 << 20
"""Logits per block of CPU attention in training: what a block reads and writes stays in the cache."""


def visible(items: Tensor, pad: int, causal: bool) -> Tensor:
    """What to add to a logit: 0 where a query may look at a key, −inf elsewhere; float32 [batch, 1, length, length].

    items: int64 [batch, length]. A padding position may look at itself, so that no row of a softmax is empty.
    """
    length = items.shape[1]
    # arange comparisons rather than torch.tril and torch.eye: these export to ONNX with a dynamic length
    place = torch.arange(length, device=items.device)
    allowed = (items != pad)[:, None, None, :]
    if causal:
        allowed = allowed & (place[None, :] <= place[:, None])
    allowed = allowed | (place[None, :] == place[:, None])
    return torch.zeros(allowed.shape, device=items.device).masked_fill(~allowed, -torch.inf)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float, causal: bool) -> Tensor:
    """Weighted values, [batch, heads, length, dim] like q, k and v; mask: from `visible`."""
    if dropout == 0 or q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype), dropout_p=dropout)
    # the fused CPU kernel has no dropout
    batch, heads, length, dim = q.shape
    size = QUERIES if causal else length
    rows = max(1, LOGITS // (heads * size * length))
    scaled = q / math.sqrt(dim)
    blocks = []
    for first in range(0, batch, rows):
        part = slice(first, first + rows)
        columns = []
        for start in range(0, length, size):
            end = min(start + size, length)
            logits = scaled[part, :, start:end] @ k[part, :, :end].transpose(-1, -2)
            weights = F.softmax(logits.add_(mask[part, :, start:end, :end]), dim=-1)
            columns.append(drop(weights, dropout) @ v[part, :, :end])
        blocks.append(torch.cat(columns, dim=2) if len(columns) > 1 else columns[0])
    return torch.cat(blocks)


def attend_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """As `attend` without dropout, and the weights [batch, heads, length, length]; rows sum to 1."""
    weights = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask, dim=-1)
    return weights @ v, weights


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, length, dim] → [batch, heads, length, dim / heads]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[batch, heads, length, dim] → [batch, length, heads · dim]"""
    return x.transpose(1, 2).flatten(2)


def sinusoid(length: int, dim: int, device: torch.device | None = None) -> Tensor:
    """Fixed position signal, float32 [length, dim]: sines in the first half, cosines in the second (Vaswani et al. 2017, 3.5)."""
    half = (dim + 1) // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=device) / max(half - 1, 1))
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :dim]
