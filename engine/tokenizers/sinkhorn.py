"""Sinkhorn's balanced assignment (Cuturi 2013; at the last level of LC-Rec's and LETTER's quantiser)."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.tokenizers.base import Codes, Vectors


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


# --- Uniform semantic mapping (LC-Rec, Zheng et al., ICDE 2024, section III-B): items that share all codes get other last codes.
#
# The items of a colliding group go through Sinkhorn's balanced assignment among themselves, and each takes another last code.
# Repeated in rounds, because an item may move onto another one's codes. As in the authors' code, all codes are shared out among a
# group that has fewer items, so that these take ones that are seldom near: `separate` takes the nearest that are free.


def crowded(codes: Codes) -> list[npt.NDArray[np.int64]]:
    """The groups of items (their rows, ascending) that share all codes, in the order of the codes."""
    _, group, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(counts)
    return [order[end - count : end] for end, count in zip(ends, counts, strict=True) if count > 1]


def neighbourhood(codes: Codes) -> npt.NDArray[np.int64]:
    """Rows of all items that share all codes but the last with a crowded one: those that re-assignment may move."""
    prefix = np.unique(codes[:, :-1], axis=0, return_inverse=True)[1]
    touched = {int(prefix[rows[0]]) for rows in crowded(codes)}
    return np.flatnonzero(np.isin(prefix, list(touched)))


def reassign(codes: Codes, last: Vectors, epsilon: float = 0.003, rounds: int = 20, iterations: int = 50) -> Codes:
    """`codes` with other last codes for items that collide; what still collides after `rounds` stays (authors: 20).

    codes: int32 [items, levels]; last: float32 [items, K], squared distance of each item's last residual to every last code.
    Items of equal vectors are equally near to every code, so that rounds alone never part them; see `separate`.
    """
    codes = codes.copy()
    for _ in range(rounds):
        groups = crowded(codes)
        if not groups:
            break
        for rows in groups:
            codes[rows, -1] = assign(torch.from_numpy(last[rows]), epsilon, iterations).numpy()
    return codes


def separate(codes: Codes, last: Vectors) -> Codes:
    """`codes` with every item that still collides on the nearest last code that nobody uses behind its other codes.

    Of a group the item nearest to the shared code keeps it. Where all last codes are taken the rest goes on colliding.
    """
    codes = codes.copy()
    for rows in crowded(codes):
        under = (codes[:, :-1] == codes[rows[0], :-1]).all(1)
        free = np.ones(last.shape[1], bool)
        free[codes[under, -1]] = False
        by_distance = rows[np.argsort(last[rows, codes[rows[0], -1]], kind="stable")]
        for row in by_distance[1:]:
            if not free.any():
                break
            codes[row, -1] = np.where(free, last[row], np.inf).argmin()
            free[codes[row, -1]] = False
    return codes
