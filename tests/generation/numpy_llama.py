"""LLaMA's decoder for one sequence, once more in numpy from Touvron et al. 2023, places as turns of complex numbers."""

import numpy as np

from tests.generation.numpy_t5 import Array, Weights, norm, softmax


def turned(x: Array) -> Array:
    """Su et al. 2021, 3.2.2: of x [heads, n, d], numbers i of both halves turn by place · 10,000^(−2i / d)."""
    half = x.shape[-1] // 2
    turns = np.exp(1j * np.outer(np.arange(x.shape[1]), 10_000.0 ** (-np.arange(half) / half)))
    pairs = (x[..., :half] + 1j * x[..., half:]) * turns
    return np.concatenate([pairs.real, pairs.imag], -1)


def logits(w: Weights, tokens: Array, layers: int, heads: int) -> Array:
    """After each of `tokens`, int [n] → [n, vocabulary]."""
    x = w["table.weight"][tokens]
    later = np.triu(np.full((len(x), len(x)), -np.inf), 1)
    for layer in range(layers):
        of = {name.removeprefix(f"blocks.{layer}."): value for name, value in w.items()}
        normed = norm(x, of["attention_norm.weight"])
        q, k, v = (
            (normed @ of[f"{part}.weight"].T).reshape(len(x), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        shares = softmax(turned(q) @ turned(k).transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + later)
        x = x + (shares @ v).transpose(1, 0, 2).reshape(len(x), -1) @ of["output.weight"].T
        normed = norm(x, of["forward_norm.weight"])
        gate = normed @ of["gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ of["inner.weight"].T)) @ of["outer.weight"].T
    return norm(x, w["norm.weight"]) @ w.get("head.weight", w["table.weight"][:-1]).T
