"""BERT4Rec in plain numpy, from the paper (Sun et al. 2019, sections 3.3 to 3.5) and the authors' code."""

from math import erf

import numpy as np

from tests.models.numpy_sasrec import attention, layer_norm

Array = np.ndarray


def gelu(x: Array) -> Array:
    """x Φ(x), with the normal distribution's own Φ"""
    return np.array([value * (1 + erf(value / np.sqrt(2))) / 2 for value in x])


def layer(
    x: list[Array], p: dict[str, Array], heads: int, looks: Array, residual: bool = True
) -> tuple[list[Array], Array]:
    """Of BERT, and its weights [heads, length, length]. p: Wq bq Wk bk Wv bv Wo bo, alpha1 beta1 (after attention), W1 b1 W2 b2,
    alpha2 beta2 (after the feed-forward part); what is missing of it is left out. looks: as `attention` takes it."""
    q, k, v = ([p[f"W{name}"] @ vector + p[f"b{name}"] for vector in x] for name in "qkv")
    joined, weights = attention(q, k, v, heads, looks)

    def after(before: list[Array], out: list[Array], number: int) -> list[Array]:
        left = [one + other for one, other in zip(before, out, strict=True)] if residual else out
        if f"alpha{number}" not in p:
            return left
        return [layer_norm(vector, p[f"alpha{number}"], p[f"beta{number}"], 1e-12) for vector in left]

    x = after(x, [p["Wo"] @ vector + p["bo"] for vector in joined], 1)
    if "W1" in p:
        x = after(x, [p["W2"] @ gelu(p["W1"] @ vector + p["b1"]) + p["b2"] for vector in x], 2)
    return x, weights


def forward(
    tokens: list[int],
    *,
    items: Array,
    positions: Array | None,
    norm: tuple[Array, Array],
    layers: list[dict[str, Array]],
    heads: int,
    head: dict[str, Array] | None = None,
    causal: bool = False,
    residual: bool = True,
) -> tuple[Array, Array]:
    """Output of the head (states without one) at every position [length, d], and attention [layers, heads, length, length].

    tokens: items and [MASK], without padding; items: [n + 2, d], positions count from the first token. layers: as `layer` takes
    them. head: W b alpha beta. causal: no position sees a later one.
    """
    placed = [items[token] + (0 if positions is None else positions[i]) for i, token in enumerate(tokens)]
    x = [layer_norm(vector, *norm, epsilon=1e-12) for vector in placed]
    looks = np.tri(len(x), dtype=bool) if causal else np.ones((len(x), len(x)), bool)
    seen = []
    for parameters in layers:
        x, weights = layer(x, parameters, heads, looks, residual)
        seen.append(weights)
    if head is not None:
        x = [layer_norm(gelu(head["W"] @ v + head["b"]), head["alpha"], head["beta"], 1e-12) for v in x]
    return np.array(x), np.array(seen)
