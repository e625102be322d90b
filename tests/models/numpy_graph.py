"""LightGCN in numpy from its paper, with a dense adjacency and its gradient worked out by hand.

The graph of docs/models.md, ten nodes: users 0 to 3 with items {0, 1}, {1, 2, 3}, {3}, {0, 3, 4}; nobody has item 5.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
USERS, ITEMS = 4, 6
HISTORIES = [[0, 1], [1, 2, 3], [3], [0, 3, 4]]


def adjacency() -> Array:
    """A [10, 10]: users first, then items."""
    a = np.zeros((USERS + ITEMS, USERS + ITEMS))
    for user, items in enumerate(HISTORIES):
        for item in items:
            a[user, USERS + item] = a[USERS + item, user] = 1
    return a


def normalised() -> Array:
    """D^-1/2 A D^-1/2, and 0 for a node without edges."""
    a = adjacency()
    scale = np.array([1 / np.sqrt(degree) if degree else 0.0 for degree in a.sum(1)])
    return scale[:, None] * a * scale[None, :]


def layers(e0: Array, count: int) -> list[Array]:
    """E⁰ … E^count, each [10, dim]."""
    found = [e0]
    for _ in range(count):
        found.append(normalised() @ found[-1])
    return found


def lightgcn_loss(e0: Array, count: int, batch: list[tuple[int, int, int]], l2: float) -> tuple[float, Array]:
    """BPR with the L2 term of the authors' code over (user, item, negative), and its gradient with respect to E⁰."""
    powers = [np.linalg.matrix_power(normalised(), k) for k in range(count + 1)]
    mean = sum(powers) / (count + 1)
    final = mean @ e0
    loss, at_final, at_e0 = 0.0, np.zeros_like(e0), np.zeros_like(e0)
    for user, item, negative in batch:
        u, i, j = user, USERS + item, USERS + negative
        margin = final[u] @ (final[i] - final[j])
        loss += np.log1p(np.exp(-margin)) + l2 / 2 * sum((e0[node] ** 2).sum() for node in (u, i, j))
        slope = -1 / (1 + np.exp(margin))
        at_final[u] += slope * (final[i] - final[j])
        at_final[i] += slope * final[u]
        at_final[j] -= slope * final[u]
        for node in (u, i, j):
            at_e0[node] += l2 * e0[node]
    return loss / len(batch), (mean.T @ at_final + at_e0) / len(batch)


def folded(e0: Array, count: int, history: list[int]) -> Array:
    """LightGCN's vector of a new user: an own node that nobody hears of."""
    found, items = layers(e0, count), [USERS + item for item in sorted(set(history))]
    degrees = np.maximum(adjacency().sum(1), 1)
    own = [np.mean([e0[i] for i in items], axis=0)]
    for layer in found[:-1]:
        own.append(sum(layer[i] / np.sqrt(len(items) * degrees[i]) for i in items))
    return np.mean(own, axis=0)
