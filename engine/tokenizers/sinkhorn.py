"""Sinkhorn's balanced assignment (Cuturi 2013; at the last level of LC-Rec's and LETTER's quantiser)."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def plan(distances: Tensor, epsilon: float, iterations: int = 50) -> Tensor:
    """A transport plan in which each row sums to 1 and each column to rows / columns.

    distances: [rows, columns], any floats. They are centred and scaled to −1 … 1 first, as the authors do, so that `epsilon`
    means the same in every batch. Returns float64 [rows, columns]. The last thing made even is the columns, so rows are even
    up to what the iterations left.
    """
    distances = distances.double()
    low, high = distances.min(), distances.max()
    scaled = (distances - (low + high) / 2) / ((high - low) / 2 + 1e-5)
    log = -scaled / epsilon
    rows, columns = log.shape
    transport = _scaled(log, iterations)
    if not bool(torch.isfinite(transport).all()):
        transport = _in_logarithms(log, iterations)
    return transport * (rows / columns)


def _scaled(log: Tensor, iterations: int) -> Tensor:
    """Columns that sum to 1, by two vectors that scale rows and columns; not finite where epsilon is too small for that."""
    kernel = (log - log.amax(1, keepdim=True)).exp()
    right = torch.ones(log.shape[1], dtype=log.dtype, device=log.device)
    for _ in range(iterations):
        left = 1 / (kernel @ right)
        right = 1 / (left @ kernel)
    return left[:, None] * kernel * right


def _in_logarithms(log: Tensor, iterations: int) -> Tensor:
    for _ in range(iterations):
        log = log - log.logsumexp(1, keepdim=True)
        log = log - log.logsumexp(0, keepdim=True)
    return log.exp()


def assign(distances: Tensor, epsilon: float, iterations: int = 50) -> Tensor:
    """int64 [rows]: the column that takes most of each row; the nearest one where epsilon is 0."""
    if epsilon <= 0:
        return distances.argmin(1)
    return plan(distances, epsilon, iterations).argmax(1)
