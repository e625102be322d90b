"""Dropout that does not dominate a training step on a CPU.

PyTorch draws CPU dropout one float at a time (about 8 ns an element; attention weights at length 200 have 10 million of them a
step). Here 64 random bits decide four elements. The rate is kept to 1/65536.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def dropout(x: Tensor, rate: float, training: bool = True) -> Tensor:
    """`x` with each element zeroed with probability `rate` and the rest divided by 1 − rate.

    Draws from PyTorch's default generator, which the training loop seeds at every step.
    """
    if not training or rate == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    return x * kept(x, rate)


def kept(like: Tensor, rate: float) -> Tensor:
    """What `dropout` multiplies with, of the shape and dtype of `like`, a CPU tensor: 0 with probability `rate`, else
    1 / (1 − rate)."""
    dropped = round(rate * 65536)
    if dropped == 65536:
        return torch.zeros_like(like)
    words = torch.empty((like.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: like.numel()].view(like.shape)
    found = torch.ge(bits, dropped - 32768, out=torch.empty(like.shape, dtype=like.dtype))
    return found.mul_(65536 / (65536 - dropped))
