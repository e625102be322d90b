"""Sequential networks in plain numpy, one item after the other, from their papers."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def sigma(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gru(vectors: Array, layers: list[tuple[Array, Array]]) -> Array:
    """States [items, d] of Hidasi et al. 2016, eq. 1 to 4, the reset gate after U; layers: ([3d, in], [3d, d]), gates r, z, ĥ."""
    for w, u in layers:
        d, states = u.shape[1], []
        h = np.zeros(d)
        for x in vectors:
            r, z = sigma(w[:d] @ x + u[:d] @ h), sigma(w[d : 2 * d] @ x + u[d : 2 * d] @ h)
            candidate = np.tanh(w[2 * d :] @ x + r * (u[2 * d :] @ h))
            h = z * h + (1 - z) * candidate
            states.append(h)
        vectors = np.stack(states)
    return vectors


def ranking_loss(loss: str, positive: float, negatives: list[float], penalty: float = 0.0) -> float:
    """Of one target: Hidasi et al. 2016, 3.1.3 (bpr, top1), and Hidasi & Karatzoglou 2018, 3.2 (the others)."""
    if not negatives:
        return 0.0
    r = np.array(negatives)
    shares = np.exp(r) / np.exp(r).sum()
    if loss == "bpr":
        return float(-np.log(sigma(positive - r)).mean())
    if loss == "top1":
        return float((sigma(r - positive) + sigma(r**2)).mean())
    if loss == "bpr-max":
        return float(-np.log((shares * sigma(positive - r)).sum()) + penalty * (shares * r**2).sum())
    if loss == "top1-max":
        return float((shares * (sigma(r - positive) + sigma(r**2))).sum())
    return float(-np.log(np.exp(positive) / (np.exp(positive) + np.exp(r).sum())))
