"""Attention with dropout on a CPU, block by block, with its gradient written out.

PyTorch's fused CPU kernel has no dropout, and slicing under autograd costs more than it saves: the gradient of every slice is a
full tensor of zeros around it. Here each block writes its share of the gradient where it belongs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.dropout import kept

QUERIES = 64
"""Queries per block: a causal block needs no key after its last query, which saves half the work."""
LOGITS = 1 << 20
"""Logits per block: what a block reads and writes stays in the cache."""


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float, causal: bool) -> Tensor:
    """Weighted values, [batch, heads, length, dim] like q, k and v; mask: as in `engine.models.attention.attend`."""
    if torch.is_autocast_enabled("cpu"):
        # autocast would take the weights to float32 and back; a softmax adds in float32 whatever its input is
        low = torch.get_autocast_dtype("cpu")
        q, k, v = q.to(low), k.to(low), v.to(low)
    found: Tensor = _Attend.apply(q, k, v, mask.to(q.dtype), dropout, causal)
    return found


def _blocks(shape: torch.Size, causal: bool) -> Iterator[tuple[slice, slice, slice]]:
    """Which rows of the batch, which queries and which keys; a causal block ends with its last query."""
    batch, heads, length, _ = shape
    size = QUERIES if causal else length
    rows = max(1, LOGITS // (heads * size * length))
    for first in range(0, batch, rows):
        for start in range(0, length, size):
            end = min(start + size, length)
            yield slice(first, first + rows), slice(start, end), slice(0, end)


class _Attend(torch.autograd.Function):
    """With W = dropout(P), P = softmax(S), O = W V: dS = W ∘ (dO Vᵀ) − P ∘ rowsum(dO ∘ O), as in FlashAttention (Dao et al. 2022,
    appendix B.4)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float, causal: bool) -> Tensor:
        scaled = q / math.sqrt(q.shape[-1])
        out = torch.empty_like(q)
        weights = []
        for rows, queries, keys in _blocks(q.shape, causal):
            logits = scaled[rows, :, queries] @ k[rows, :, keys].transpose(-1, -2)
            shares = F.softmax(logits.add_(mask[rows, :, queries, keys]), dim=-1)
            used = shares * kept(shares, dropout)
            out[rows, :, queries] = used @ v[rows, :, keys]
            weights += [shares, used]
        ctx.save_for_backward(scaled, k, v, out, *weights)
        ctx.causal = causal
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scaled, k, v, out, *weights = ctx.saved_tensors
        grad_q, grad_k, grad_v = torch.empty_like(k), torch.zeros_like(k), torch.zeros_like(v)
        whole = (grad * out).sum(-1, keepdim=True)
        for number, (rows, queries, keys) in enumerate(_blocks(k.shape, ctx.causal)):
            shares, used = weights[2 * number : 2 * number + 2]
            arriving = grad[rows, :, queries]
            slope = arriving @ v[rows, :, keys].transpose(-1, -2)
            slope.mul_(used).addcmul_(shares, whole[rows, :, queries], value=-1)
            grad_q[rows, :, queries] = slope @ k[rows, :, keys]
            grad_k[rows, :, keys] += slope.transpose(-1, -2) @ scaled[rows, :, queries]
            grad_v[rows, :, keys] += used.transpose(-1, -2) @ arriving
        return grad_q.div_(math.sqrt(k.shape[-1])), grad_k, grad_v, None, None, None
