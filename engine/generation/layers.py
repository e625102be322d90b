"""What the two networks share with T5 and LLaMA: RMSNorm, relative position buckets, rotary positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

BUCKETS, FARTHEST = 32, 128
"""T5's: half of the buckets are single distances, the others grow with the distance up to 128."""


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + eps) · weight (Zhang & Sennrich 2019): no mean, no bias."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.eps).to(x.dtype) * self.weight


def bucket(distance: Tensor, both_sides: bool) -> Tensor:
    """T5's bucket of key place − query place, int64 as `distance`; one-sided where keys never lie ahead."""
    buckets, side = BUCKETS, torch.zeros_like(distance)
    if both_sides:
        buckets //= 2
        side = torch.where(distance > 0, buckets, 0)
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    scaled = torch.log(distance.clamp(min=1).double() / exact) / math.log(FARTHEST / exact) * (buckets - exact)
    far = (exact + scaled.long()).clamp(max=buckets - 1)
    return side + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    """What to add to a logit for how far apart query and key stand; one table for all layers (T5, 2.1)."""

    distances: Tensor

    def __init__(self, heads: int, longest: int, both_sides: bool) -> None:
        super().__init__()
        self.table, self.longest = nn.Embedding(BUCKETS, heads), longest
        # looked up rather than computed: logarithms of integers would otherwise be part of the exported graph
        distances = torch.arange(1 - longest, longest)
        self.register_buffer("distances", bucket(distances, both_sides), persistent=False)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Places int64 [queries] and [keys] → float32 [heads, queries, keys]."""
        found = self.distances[keys[None, :] - queries[:, None] + self.longest - 1]
        return self.table(found).permute(2, 0, 1)


def rotate(x: Tensor, places: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021), by halves as in LLaMA. x: [..., length, dim]; places: [length]."""
    half = x.shape[-1] // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, device=x.device) / half)
    angles = places[:, None].float() * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)
