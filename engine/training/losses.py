"""Losses over next-item targets: pure functions of tensors, each the mean over its targets.

Where items are scored: `hidden` float [targets, dim] against rows of `table` [items, dim].
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def binary_cross_entropy(positive: Tensor, negative: Tensor) -> Tensor:
    """SASRec's loss (section III-E): −log σ(s⁺) − Σ log(1 − σ(s⁻)). positive: [targets]; negative: [targets, k]."""
    return (F.softplus(-positive) + F.softplus(negative).sum(1)).mean()


def generalised_binary_cross_entropy(positive: Tensor, negative: Tensor, items: int, t: float) -> Tensor:
    """gBCE (Petrov & Macdonald, RecSys 2023, 4.3): the positive's probability raised to β, which undoes the bias of sampling.

    With k negatives of `items` − 1: α = k / (items − 1), β = α(t(1 − 1/α) + 1/α); t = 1 calibrates where any item but the
    target may be drawn (negatives that leave out a user's other items are drawn a little more often), t = 0 is BCE; the sum is
    divided by k + 1. −log σ(s)^β = β·softplus(−s), so no power is ever taken.
    """
    k = negative.shape[1]
    alpha = k / max(items - 1, 1)
    beta = alpha * (t * (1 - 1 / alpha) + 1 / alpha)
    return ((beta * F.softplus(-positive) + F.softplus(negative).sum(1)) / (k + 1)).mean()


def sampled_softmax(positive: Tensor, negative: Tensor) -> Tensor:
    """Cross-entropy of the positive among itself and its k negatives. positive: [targets]; negative: [targets, k]."""
    return (torch.logsumexp(torch.cat([positive[:, None], negative], 1), 1) - positive).mean()


def hinge(positive: Tensor, negative: Tensor, margin: float) -> Tensor:
    """Σ max(0, margin + s⁻ − s⁺) (AttRec, 3.5, of distances −s). positive: [targets]; negative: [targets, k]."""
    return F.relu(margin + negative - positive[:, None]).sum(1).mean()


def warp(positive: Tensor, negative: Tensor, items: int, margin: float, *, ranked: bool, nearest: bool) -> Tensor:
    """Weighted approximate-rank pairwise loss (Weston, Bengio & Usunier 2011), as CML computes it in parallel (3.3).

    w · mean over k of [margin − s⁺ + s⁻]₊, with w = log(1 + ⌊items · M / k⌋) where M of the k negatives break the margin (1
    unless `ranked`); `nearest`: of the k the largest alone. positive: [targets]; negative: [targets, k].
    """
    broken = F.relu(margin - positive[:, None] + negative)
    rank = items * (broken > 0).sum(1) // broken.shape[1]
    each = broken.amax(1) if nearest else broken.mean(1)
    return (each * torch.log1p(rank) if ranked else each).mean()


def covariance(points: Tensor) -> Tensor:
    """What coordinates have in common: (‖C‖²_F − ‖diag C‖²) / N, C the covariance of points, [N, dim] (CML, 3.4; Cogswell et al.
    2016, which has the squares that CML's equation 6 lacks)."""
    centred = points.float() - points.float().mean(0)
    together = centred.T @ centred / len(points)
    return (together.square().sum() - together.diagonal().square().sum()) / len(points)


# Of sessions trained side by side (GRU4Rec). `real` bool [targets, k] says which negatives count: an item is none of its own. A
# target without any has the loss 0.

NONE = -1e9
"""The score of a negative that does not count: no softmax sees it, and unlike −∞ it leaves no NaN where none counts."""
SMALL = 1e-30
"""The least that a share of won comparisons counts as: its logarithm and its inverse are still numbers."""


def bpr(positive: Tensor, negative: Tensor, real: Tensor | None = None) -> Tensor:
    """−1/N Σ log σ(s⁺ − s⁻) (Rendle et al. 2009, 4.1; Hidasi et al. 2016, 3.1.3).

    positive: [targets]; negative: [targets, k]; real: bool, its shape, or None where all count.
    """
    if real is None:
        return F.softplus(negative - positive[:, None]).mean()
    return (F.softplus(negative - positive[:, None]) * _shares(real)).sum(1).mean()


def top1(positive: Tensor, negative: Tensor, real: Tensor) -> Tensor:
    """1/N Σ σ(s⁻ − s⁺) + σ(s⁻²) (Hidasi et al. 2016, 3.1.3). Shapes as in `bpr`."""
    return (_top1(positive, negative) * _shares(real)).sum(1).mean()


def bpr_max(positive: Tensor, negative: Tensor, real: Tensor, penalty: float) -> Tensor:
    """−log Σ p σ(s⁺ − s⁻) + penalty · Σ p s⁻², p the softmax over negatives (Hidasi & Karatzoglou 2018, 3.2 and 3.3).

    Shapes as in `bpr`. Hard negatives, those that score high, give most of the gradient.
    """
    loss: Tensor = _BPRMax.apply(positive, negative, real, penalty)
    return loss


class _BPRMax(torch.autograd.Function):
    """With p_j the shares, g_j = σ(s⁺ − s_j), A = Σ p g and R = Σ p s², the gradient for s_j is
    p_j (1 − g_j²/A + penalty (s_j² + 2 s_j − R)), and that for s⁺ is −Σ p g (1 − g) / A: a third of the passes over targets × k
    that autograd makes."""

    @staticmethod
    def forward(ctx: Any, positive: Tensor, negative: Tensor, real: Tensor, penalty: float) -> Tensor:
        hidden = ~real
        shares = torch.where(real, negative, NONE).softmax(1).masked_fill_(hidden, 0)
        wins = torch.sub(positive[:, None], negative).sigmoid_()
        won = shares * wins
        beaten = won.sum(1, keepdim=True)
        positive_gradient = -(beaten - (won * wins).sum(1, keepdim=True)) / beaten.clamp(min=SMALL)
        none = ~real.any(1)
        loss = -beaten.squeeze(1).masked_fill(none, 1).clamp(min=SMALL).log()
        gradient = wins.square_().div_(-beaten.clamp(min=SMALL)).add_(1)
        if penalty:
            squares = negative.square()
            length = (shares * squares).sum(1, keepdim=True)
            loss = loss + penalty * length.squeeze(1)
            gradient.add_(squares.add_(negative, alpha=2).sub_(length), alpha=penalty)
        count = max(1, len(positive))
        ctx.save_for_backward(positive_gradient.squeeze(1) / count, gradient.mul_(shares).div_(count))
        return loss.sum() / count

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        positive, negative = ctx.saved_tensors
        return positive * grad, negative * grad, None, None


def top1_max(positive: Tensor, negative: Tensor, real: Tensor) -> Tensor:
    """Σ p (σ(s⁻ − s⁺) + σ(s⁻²)), p the softmax over negatives (Hidasi & Karatzoglou 2018, 3.2). Shapes as in `bpr`."""
    shares = F.softmax(negative.masked_fill(~real, NONE), 1)
    return (_top1(positive, negative) * shares * real).sum(1).mean()


def _top1(positive: Tensor, negative: Tensor) -> Tensor:
    return torch.sigmoid(negative - positive[:, None]) + torch.sigmoid(negative.square())


def _shares(real: Tensor) -> Tensor:
    return real / real.sum(1, keepdim=True).clamp(min=1)


# --- memory: where scores of many targets would not fit, the gradient is taken block by block


def by_blocks(loss: Callable[..., Tensor], parts: tuple[Tensor, ...], whole: tuple[Tensor, ...], size: int) -> Tensor:
    """The sum of `loss(rows, *parts[rows], *whole)` over slices `rows` of at most `size` rows of each of `parts`.

    Gradients of the float tensors in `parts` and `whole` are taken while a block is at hand; nothing of it is kept.
    """
    total: Tensor = _ByBlocks.apply(loss, size, len(parts), *parts, *whole)
    return total


class _ByBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: Callable[..., Tensor], size: int, count: int, *tensors: Tensor) -> Tensor:
        parts, whole = tensors[:count], [tensor.detach().requires_grad_() for tensor in tensors[count:]]
        part_gradients = [torch.empty_like(part) for part in parts]
        whole_gradients = [torch.zeros_like(tensor) for tensor in whole]
        total = torch.zeros((), device=tensors[0].device)
        for start in range(0, len(parts[0]), size):
            rows = slice(start, min(start + size, len(parts[0])))
            block = [part[rows].detach().requires_grad_() for part in parts]
            with torch.enable_grad():
                value = loss(rows, *block, *whole)
            gradients = torch.autograd.grad(value, [*block, *whole])
            total += value.detach()
            for into, gradient in zip(part_gradients, gradients[:count], strict=True):
                into[rows] = gradient
            for into, gradient in zip(whole_gradients, gradients[count:], strict=True):
                into += gradient
        ctx.save_for_backward(*part_gradients, *whole_gradients)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *(gradient * grad for gradient in ctx.saved_tensors)


def cross_entropy(
    hidden: Tensor, table: Tensor, bias: Tensor | None, targets: Tensor, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Softmax cross-entropy over the whole catalogue. targets: int64 [targets]; bias: [items] or None.

    Logits exist a block of targets at a time, and the gradient is taken while a block is at hand, so memory does not grow with
    targets × items. `dtype` is the precision of logits, probabilities and the three matrix products, by default that of autocast
    (float32 outside of it); sums, within a softmax too, are float32.
    """
    if dtype is None:
        kind = hidden.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
    return _LinearCrossEntropy.apply(hidden, table, bias, targets, dtype)


def consistent_cross_entropy(
    first: Tensor, second: Tensor, table: Tensor, bias: Tensor | None, targets: Tensor, weight: float
) -> Tensor:
    """Half of R-Drop's loss (Liang et al., NeurIPS 2021, 2.2): ½ Σ −log p(target) + ¼ weight · (KL(p₁‖p₂) + KL(p₂‖p₁)), with p₁
    and p₂ the probabilities over the catalogue of two readings, each with dropout of its own.

    first, second: [targets, dim]; bias: [items] or None; targets: int64 [targets]; weight: α, above 0. Computed a block of
    targets at a time.
    """
    offset = table.new_zeros(len(table)) if bias is None else bias

    def summed(rows: slice, *tensors: Tensor) -> Tensor:
        readings, (vectors, shift) = tensors[:2], tensors[2:]
        scores = torch.addmm(shift, torch.cat(readings), vectors.T)
        total: Tensor = _Consistent.apply(scores, targets[rows, None], weight)
        return total

    block = max(32, _block(len(table), first.device) // 2)  # a target has a row of scores of each reading
    return by_blocks(summed, (first, second), (table, offset), block) / len(targets)


class _Consistent(torch.autograd.Function):
    """`consistent_cross_entropy` of scores, summed. scores: [2 · targets, items], of both readings; labels: int64 [targets, 1].

    With d = log p₁ − log p₂, the gradient for the scores of the first reading is ½ (p₁ − one-hot) + ¼ weight (p₁ (d − KL(p₁‖p₂))
    + p₁ − p₂): half of the passes that autograd makes.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, weight: float) -> Tensor:
        logs = scores.float().log_softmax(1)
        shares = logs.exp()
        likelihood = logs.gather(1, labels.repeat(2, 1)).sum() / 2
        (first, second), (log_first, log_second) = shares.chunk(2), logs.chunk(2)
        apart = log_first.sub_(log_second)
        divergence = torch.linalg.vecdot(first, apart).unsqueeze(1), -torch.linalg.vecdot(second, apart).unsqueeze(1)
        gradient = torch.empty_like(shares)
        for share, other, sign, kl, into in zip(
            (first, second), (second, first), (1, -1), divergence, gradient.chunk(2), strict=True
        ):
            torch.mul(apart, sign, out=into).add_(1 - kl + 2 / weight).mul_(share).sub_(other).mul_(weight / 4)
        gradient.scatter_add_(1, labels.repeat(2, 1), gradient.new_full((len(gradient), 1), -0.5))
        ctx.save_for_backward(gradient.to(scores.dtype))
        return weight / 4 * (divergence[0].sum() + divergence[1].sum()) - likelihood

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(grad), None, None


def _block(items: int, device: torch.device) -> int:
    """Targets per block, a multiple of 32: logits that stay in a CPU's last cache, or that fill a GPU but not its memory."""
    budget = (1 << 20) if device.type == "cpu" else (1 << 28)
    return max(32, budget // items // 32 * 32)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, table: Tensor, bias: Tensor | None, targets: Tensor, dtype: torch.dtype
    ) -> Tensor:
        total, items = len(targets), len(table)
        # Padded: rows of whole vector registers are multiplied faster, and for every new shape oneDNN writes a new program
        height, width = (math.ceil(length / 32) * 32 for length in (total, items))
        h = F.pad(hidden.detach().to(dtype), (0, 0, 0, height - total))
        e = F.pad(table.detach().to(dtype), (0, 0, 0, width - items))
        et = e.T.contiguous() if hidden.device.type == "cpu" else e.T
        grad_h = hidden.new_empty(h.shape)
        grad_et = torch.zeros(et.shape, dtype=torch.float32, device=table.device)
        grad_b = None if bias is None else torch.zeros_like(bias)
        loss = torch.zeros(
            (), dtype=torch.float64 if hidden.device.type == "cpu" else torch.float32, device=hidden.device
        )
        tiny = torch.finfo(torch.float32).tiny
        size = min(_block(items, hidden.device), height)
        logits_space, weights_space = (torch.empty(size, width, dtype=dtype, device=h.device) for _ in range(2))
        for start in range(0, height, size):
            part, labels = h[start : start + size], targets[start : start + size]
            rows = torch.arange(len(labels), device=h.device)
            logits, weights = logits_space[: len(part)], weights_space[: len(part)]
            torch.mm(part, et, out=logits)
            if bias is not None:
                logits[:, :items] += bias.detach()
            logits[:, items:] = -math.inf
            torch.softmax(logits, 1, out=weights)
            # a probability below the smallest float counts as that float (a loss of 87): only the printed loss is bounded
            probabilities = weights[rows, labels]
            loss -= probabilities.float().clamp(min=tiny).log().sum()
            # d loss / d logits = softmax − one-hot, before the division by the number of targets
            weights[rows, labels] = probabilities - 1  # scatter_ would copy a bfloat16 tensor to float32 and back
            weights[len(labels) :] = 0
            if grad_b is not None:
                grad_b += weights.sum(0, dtype=torch.float32)[:items]
            grad_h[start : start + size] = weights @ e
            grad_et += part.T @ weights
        ctx.save_for_backward(
            grad_h[:total] / total, grad_et[:, :items].T / total, *(() if grad_b is None else (grad_b / total,))
        )
        return (loss / total).float()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_h, grad_e, *grad_b = ctx.saved_tensors
        return grad_h * grad, grad_e * grad, grad_b[0] * grad if grad_b else None, None, None
