"""BERT4Rec in plain numpy, from the paper (Sun et al. 2019, sections 3.3 to 3.5) and the authors' code."""

from __future__ import annotations

from math import erf

import numpy as np

from tests.models.numpy_sasrec import layer_norm

Array = np.ndarray


def gelu(x: Array) -> Array:
    """x Φ(x), with the normal distribution's own Φ"""
    return np.array([value * (1 + erf(value / np.sqrt(2))) / 2 for value in x])


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

    tokens: items and [MASK], without padding; items: [n + 2, d], positions count from the first token. A layer holds Wq bq Wk bk
    Wv bv Wo bo, alpha1 beta1 (after attention), W1 b1 W2 b2, alpha2 beta2 (after the feed-forward part); what is missing of it is
    left out. head: W b alpha beta. causal: no position sees a later one.
    """
    length, d = len(tokens), items.shape[1]
    placed = [items[token] + (0 if positions is None else positions[i]) for i, token in enumerate(tokens)]
    x = [layer_norm(vector, *norm, epsilon=1e-12) for vector in placed]
    seen = np.zeros((len(layers), heads, length, length))
    for number, layer in enumerate(layers):
        attended = []
        for i in range(length):
            parts, before = [], x[: i + 1] if causal else x
            for h in range(heads):
                part = slice(h * d // heads, (h + 1) * d // heads)
                query = (layer["Wq"] @ x[i] + layer["bq"])[part]
                logits = np.array([query @ (layer["Wk"] @ other + layer["bk"])[part] for other in before])
                shares = np.exp(logits / np.sqrt(d / heads))
                shares = shares / shares.sum()
                seen[number, h, i, : len(shares)] = shares
                parts.append(
                    sum(s * (layer["Wv"] @ other + layer["bv"])[part] for s, other in zip(shares, before, strict=True))
                )
            projected = layer["Wo"] @ np.concatenate(parts) + layer["bo"]
            left = x[i] + projected if residual else projected
            attended.append(layer_norm(left, layer["alpha1"], layer["beta1"], 1e-12) if "alpha1" in layer else left)
        if "W1" not in layer:
            x = attended
            continue
        x = []
        for vector in attended:
            out = layer["W2"] @ gelu(layer["W1"] @ vector + layer["b1"]) + layer["b2"]
            left = vector + out if residual else out
            x.append(layer_norm(left, layer["alpha2"], layer["beta2"], 1e-12) if "alpha2" in layer else left)
    if head is None:
        return np.array(x), seen
    return np.array([layer_norm(gelu(head["W"] @ v + head["b"]), head["alpha"], head["beta"], 1e-12) for v in x]), seen
