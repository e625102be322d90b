"""HSTU, hierarchical sequential transduction units (Zhai et al., ICML 2024): attention without a softmax.

    U, V, Q, K = split(SiLU(W_1 LayerNorm(x)))
    A = SiLU(Q Kᵀ + p + t) / n,                 p_ij, t_ij learnt biases of how far, how long j lies before i (3.2, eq. 1 to 3)
    x ← x + W_2 (LayerNorm(A V) ⊙ U)

Each item's weight stands for itself: what an item gets is not taken from the others, so how often something occurs is seen. n is
the longest history, `max_length`. Both LayerNorms have no parameters.

t, a number for each bucket of the logarithm of the time between them, is there with `time_bias`. Where nobody knows the times, as
in bundles and on pages, it is a number of its own, which a share of the training sequences (`without_times`) teaches.

Differs: t_ij is of the times of i and j themselves. In the authors' code it is of the item after i and of j, so the state that
is to tell the next item knows when that was; here the time of what is asked for is never used. One LayerNorm after the last
layer, in place of unit length.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant, added
from engine.models.base import NO_TIME, score
from engine.models.esasrec import NextItemNetwork
from engine.models.layers import Mask, dropout, join_heads, looked_up, split_heads

BUCKETS, WIDTH = 128, 0.301
"""Of the time between two items, as the authors': bucket b begins at e^(WIDTH b) seconds, the first at 0; the last never ends."""


@dataclass(frozen=True)
class HSTUConfig:
    dim: int = 64
    """Width of item vectors and layers (authors: 50 for ML-1M, 64 for Books)."""
    blocks: int = 2
    """Layers (authors, ML-1M: 2; HSTU-large 8)."""
    heads: int = 2
    """Attention heads; must divide dim (authors, ML-1M: 1, HSTU-large 2)."""
    dropout: float = 0.2
    """On embeddings and before W_2 (authors: .2 for MovieLens, .5 for Books)."""
    max_length: int = 50
    """Latest items read, n (authors: 200 for MovieLens, 50 for Books)."""
    time_bias: bool = added(False)
    """Weigh items by the time between them, too (authors: true). It needs a log with times; bundles and pages answer without."""
    without_times: float = added(0.5)
    """With time_bias: share of the training sequences that are read without their times, to answer where these are not known."""
    scaled: bool = added(False)
    """Item vectors are multiplied by √d before positions are added to them, and LayerNorm adds 10⁻⁶ to the variance where
    PyTorch adds 10⁻⁵: as the authors have both. A·V / n is so small that it matters."""


def buckets(times: Tensor) -> Tensor:
    """How long before each item each other was: int64 [batch, length, length], 0 to BUCKETS − 1, or BUCKETS if it is not known.
    times: int64 [batch, length], seconds, or NO_TIME."""
    seconds = (times[:, :, None] - times[:, None, :]).clamp(min=1)  # an item after the other is masked
    bucket = (seconds.double().log() / WIDTH).long().clamp(max=BUCKETS - 1)
    unknown = times == NO_TIME
    return bucket.masked_fill(unknown[:, :, None] | unknown[:, None, :], BUCKETS)


class HSTULayer(nn.Module):
    def __init__(self, config: HSTUConfig, generator: torch.Generator) -> None:
        super().__init__()
        d = config.dim
        self.heads, self.dropout, self.longest = config.heads, config.dropout, config.max_length
        self.eps = 1e-6 if config.scaled else 1e-5
        self.inner, self.outer = nn.Linear(d, 4 * d, bias=False), nn.Linear(d, d)
        self.bias = nn.Parameter(torch.empty(config.max_length))
        nn.init.normal_(self.bias, std=0.02, generator=generator)
        self.time_bias: nn.Parameter | None = None
        if config.time_bias:
            self.time_bias = nn.Parameter(torch.empty(BUCKETS + 1))
            nn.init.normal_(self.time_bias, std=0.02, generator=generator)
        nn.init.zeros_(self.outer.bias)

    def forward(self, x: Tensor, mask: Mask, weights: list[Tensor] | None, apart: Tensor | None = None) -> Tensor:
        """x: [batch, length, d]; mask: what may be looked at; apart: from `buckets`, None where no time is known."""
        d, place = x.shape[-1:], torch.arange(x.shape[1], device=x.device)
        gate, *projected = F.silu(self.inner(F.layer_norm(x, d, eps=self.eps))).chunk(4, dim=-1)
        v, q, k = (split_heads(part, self.heads) for part in projected)
        before = looked_up(self.bias, (place[:, None] - place[None, :]).clamp(min=0))
        if self.time_bias is not None:
            before = before + (self.time_bias[BUCKETS] if apart is None else looked_up(self.time_bias, apart)[:, None])
        share = F.silu(q @ k.transpose(-1, -2) + before) / self.longest * (mask.added == 0)
        if weights is not None:
            weights.append(share)
        attended = F.layer_norm(join_heads(share @ v), d, eps=self.eps) * gate
        return x + self.outer(dropout(attended, self.dropout, self.training))


class HSTU(NextItemNetwork):
    name = "hstu"
    Config = HSTUConfig
    draws_apart = True
    where_no_times = "take hstu without model.time_bias, which reads the order alone"
    card = Card(
        title="HSTU",
        order=22,
        summary="Reads the history left to right like SASRec, but weighs each item for itself instead of sharing one weight out "
        "among all of them, so that the strength of an interest counts.",
        paper="Zhai, Liao, Liu et al., Actions Speak Louder than Words: Trillion-Parameter Sequential Transducers for Generative "
        "Recommendations, ICML 2024",
        reasons={"attention": "Its weights are no shares: they do not add up to one, and some are below zero."},
        variants=(
            Variant("hstu", page=OnPage(examples=1)),
            Variant(
                "hstu-time",
                page=OnPage(examples=1),
                summary="HSTU with the time bias of its paper: how far apart in time two items were taken counts for the weight "
                "between them. Pages ask it without times; Metrics has it both ways.",
            ),
        ),
    )

    def __init__(
        self,
        config: HSTUConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        times: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """times: int64 [training events], to train with `time_bias`."""
        layers: list[nn.Module] = [HSTULayer(config, generator) for _ in range(config.blocks)]
        super().__init__(config, num_items, layers, generator)
        self.norm = nn.LayerNorm(config.dim)
        self.item_scale = math.sqrt(config.dim) if config.scaled else 1.0
        self.times, self.reads_times = times, config.time_bias

    @classmethod
    def needs_of(cls, config: HSTUConfig) -> tuple[str, ...]:
        return ("times",) if config.time_bias else ()

    def hidden(self, items: Tensor, weights: list[Tensor] | None = None, times: Tensor | None = None) -> Tensor:
        """times: as of `scores_with_times`; where they are given, `time_bias` was."""
        apart = () if times is None else (buckets(times),)
        return self.norm(self.states(items, weights, *apart))

    def scores_with_times(self, items: Tensor, times: Tensor) -> Tensor:
        return score(self.hidden(items, times=times)[:, -1], self.index())

    def weights(self, items: Tensor, times: Tensor | None = None) -> Tensor:
        """What each position weighs those up to it with, float32 [batch, layers, heads, length, length]: no shares."""
        weights: list[Tensor] = []
        self.hidden(items, weights, times)
        return torch.stack(weights, dim=1)
