"""Self-attention in a sliding window with one global token, at a cost linear in length (Longformer, Beltagy et al. 2020, 3.1).

Token i sees the tokens within `radius` places of it and token 0; token 0 sees all, and all see it. Queries are cut into blocks of
`radius`; a block needs the keys of its own and of the two blocks beside it. No n × n matrix exists at any time.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.dropout import dropout

# q, k, v: float [batch, heads, length, dim]; real: bool [batch, length], True where a token may be looked at; token 0 always is.


def attend_to_all(q: Tensor, k: Tensor, v: Tensor, real: Tensor, rate: float) -> Tensor:
    """Weighted values of any queries [batch, heads, queries, dim]: every real key is looked at."""
    return shares_of_all(q, k, real, rate) @ v


def shares_of_all(q: Tensor, k: Tensor, real: Tensor, rate: float = 0.0) -> Tensor:
    """Weights, [batch, heads, queries, length]"""
    return _shares(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), real[:, None, None], rate)


def attend(q: Tensor, k: Tensor, v: Tensor, real: Tensor, radius: int, rate: float) -> Tensor:
    """Weighted values in the window, [batch, heads, length, dim]."""
    length = q.shape[2]
    found = (blocked_shares(q, k, real, radius, rate) @ _around(v, radius)).flatten(2, 3)[:, :, 1:length]
    return torch.cat([attend_to_all(q[:, :, :1], k, v, real, rate), found], 2)


def spread(q: Tensor, k: Tensor, real: Tensor, radius: int, groups: Tensor) -> Tensor:
    """How much each token looks at each group of tokens, float [batch, heads, length, groups], without dropout.

    groups: float [batch, length, groups], 1 where a token is of the group.
    """
    length = q.shape[2]
    shares = blocked_shares(q, k, real, radius, 0.0)
    found = (shares @ _around(groups[:, None], radius)).flatten(2, 3)[:, :, 1:length]
    return torch.cat([shares_of_all(q[:, :, :1], k, real) @ groups[:, None], found], 2)


def blocked_shares(q: Tensor, k: Tensor, real: Tensor, radius: int, rate: float) -> Tensor:
    """Weights of each block, [batch, heads, blocks, radius, 1 + 3 · radius]: of token 0, then of the keys around the block."""
    length = q.shape[2]
    blocks = (length + radius - 1) // radius
    queries = F.pad(q, (0, 0, 0, blocks * radius - length)).unflatten(2, (blocks, radius))
    logits = queries @ _around(k, radius).transpose(-1, -2) / math.sqrt(q.shape[-1])
    row = torch.arange(radius, device=q.device)[:, None]
    column = torch.arange(3 * radius, device=q.device)[None, :] - radius
    near = (row - column).abs() <= radius
    # token 0 stands in front of every block; among the keys around it, it is not seen a second time
    others = real & (torch.arange(length, device=q.device) > 0)
    there = _beside(others[:, None, :, None].to(q.dtype), radius)[..., 0] > 0  # [batch, 1, blocks, 3 · radius]
    seen = near & there[:, :, :, None]
    return _shares(logits, torch.cat([torch.ones_like(seen[..., :1]), seen], -1), rate)


def _around(x: Tensor, radius: int) -> Tensor:
    """[batch, heads, length, dim] → [batch, heads, blocks, 1 + 3 · radius, dim]: token 0, then what lies around each block."""
    beside = _beside(x, radius)
    first = x[:, :, :1, None].expand(-1, -1, beside.shape[2], -1, -1)
    return torch.cat([first, beside], 3)


def _beside(x: Tensor, radius: int) -> Tensor:
    """[batch, heads, length, dim] → [batch, heads, blocks, 3 · radius, dim]; zeros where there is nothing."""
    length = x.shape[2]
    blocks = (length + radius - 1) // radius
    size = blocks * radius
    wide = F.pad(x, (0, 0, radius, radius + size - length))
    return torch.cat([wide[:, :, s : s + size].unflatten(2, (blocks, radius)) for s in (0, radius, 2 * radius)], 3)


def _shares(logits: Tensor, seen: Tensor, rate: float) -> Tensor:
    shares = F.softmax(logits.masked_fill(~seen, -torch.inf), -1)
    return dropout(shares, rate, rate > 0)
