"""Self-attention: one arithmetic, two ways to run it.

`attend` uses a fused kernel wherever nobody looks at the weights; `attend_with_weights` writes them out.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models import blocked


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
    return blocked.attend(q, k, v, mask, dropout, causal)


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
