"""LightGCN (dense, with its gradient worked out by hand) and NGCF (message by message) in numpy, from paper and code.

The graph of docs/models.md, ten nodes: users 0 to 3 with items {0, 1}, {1, 2, 3}, {3}, {0, 3, 4}; nobody has item 5.
"""

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
    all_layers = [e0]
    for _ in range(count):
        all_layers.append(normalised() @ all_layers[-1])
    return all_layers


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
    all_layers, items = layers(e0, count), [USERS + item for item in sorted(set(history))]
    degrees = np.maximum(adjacency().sum(1), 1)
    own = [np.mean([e0[i] for i in items], axis=0)]
    for layer in all_layers[:-1]:
        own.append(sum(layer[i] / np.sqrt(len(items) * degrees[i]) for i in items))
    return np.mean(own, axis=0)


# --- NGCF


def ngcf_layers(e0: Array, weights: list[tuple[Array, ...]], variant: str) -> list[Array]:
    """Layers 0 … L, as they go on to the next. weights: per layer W1, W2 [dim, dim] (rows are inputs), and of the code b1, b2."""
    a, all_layers = adjacency(), [e0]
    for matrices in weights:
        before = all_layers[-1]
        all_layers.append(
            np.stack([_step(before[node], before, a[node], a.sum(1), matrices, variant) for node in range(len(a))])
        )
    return all_layers


def _step(own: Array, before: Array, edges: Array, degrees: Array, matrices: tuple[Array, ...], variant: str) -> Array:
    """One node, message by message. own: [dim]; edges: [nodes], 1 where there is one."""
    neighbours, count = np.flatnonzero(edges), max(edges.sum(), 1)
    w1, w2, *biases = matrices
    if variant == "paper":
        total = own @ w1
        for other in neighbours:
            message = before[other] @ w1 + (before[other] * own) @ w2
            total = total + message / np.sqrt(count * max(degrees[other], 1))
        return _leaky(total)
    side = own + sum((before[other] for other in neighbours), np.zeros_like(own)) / count
    return _leaky(side @ w1 + biases[0]) + _leaky((side * own) @ w2 + biases[1])


def _leaky(x: Array) -> Array:
    return np.where(x > 0, x, 0.2 * x)


def ngcf_shown(layers: list[Array], variant: str) -> Array:
    """Side by side, along the last axis."""
    if variant == "code":
        layers = [layers[0], *(layer / np.linalg.norm(layer, axis=-1, keepdims=True) for layer in layers[1:])]
    return np.concatenate(layers, axis=-1)


def ngcf_folded(e0: Array, weights: list[tuple[Array, ...]], variant: str, history: list[int]) -> Array:
    """The vector of a new user."""
    edges = np.zeros(USERS + ITEMS)
    edges[[USERS + item for item in history]] = 1
    layers, degrees = ngcf_layers(e0, weights, variant), adjacency().sum(1)
    own = [e0[edges == 1].mean(0)]
    for before, matrices in zip(layers, weights, strict=False):
        own.append(_step(own[-1], before, edges, degrees, matrices, variant))
    return ngcf_shown(own, variant)


def ngcf_loss(
    e0: Array, weights: list[tuple[Array, ...]], variant: str, batch: list[tuple[int, int, int]], l2: float
) -> float:
    """BPR; the L2 term is over the final vectors (code), or over the batch's rows of E⁰ and the matrices (paper)."""
    final = ngcf_shown(ngcf_layers(e0, weights, variant), variant)
    loss = 0.0 if variant == "code" else l2 / 2 * sum((matrix**2).sum() for layer in weights for matrix in layer)
    for user, item, negative in batch:
        nodes = [user, USERS + item, USERS + negative]
        u, i, j = final[nodes]
        loss += np.log1p(np.exp(-(u @ (i - j)))) + l2 / 2 * ((final if variant == "code" else e0)[nodes] ** 2).sum()
    return float(loss / len(batch))
