"""Recformer in straight-line numpy, from the paper (section 2.1) and Longformer's (3.1): one history, dense attention, a mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Text = list[list[tuple[int, int]]]
"""Of each item, its tokens with their types: 1 of a key, 2 of a value."""


def sequence(history: list[int], items: Text, first: int, longest: int) -> np.ndarray:
    """[length, 3]: token, type and item position of [CLS] and of everything read, newest item first."""
    rows = [(first, 0, 0)]
    for place, item in enumerate(reversed(history), start=1):
        rows += [(token, kind, place) for token, kind in items[item]]
    return np.array(rows[:longest])


def visible(length: int, window: int | None) -> np.ndarray:
    """bool [length, length]: who sees whom. window None: everybody sees everybody."""
    found = np.zeros((length, length), bool)
    for i in range(length):
        for j in range(length):
            found[i, j] = window is None or abs(i - j) <= max(1, window // 2) or i == 0 or j == 0
    return found


def norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return weight * (x - mean) / np.sqrt(variance + 1e-12) + bias


def gelu(x: np.ndarray) -> np.ndarray:
    return np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]).reshape(x.shape)


def forward(rows: np.ndarray, state: dict[str, np.ndarray], layers: int, heads: int, window: int | None) -> Any:
    """States [length, dim] after the last layer, and the weights [layers, heads, length, length]; state: names as the model's."""
    x = state["words.weight"][rows[:, 0]] + state["positions.weight"][: len(rows)]
    if "types.weight" in state:
        x = x + state["types.weight"][rows[:, 1]]
    if "places.weight" in state:
        x = x + state["places.weight"][rows[:, 2]]
    x = norm(x, state["norm.weight"], state["norm.bias"])
    seen, weights = visible(len(rows), window), []
    for number in range(layers):

        def of(name: str, number: int = number) -> np.ndarray:
            return state[f"layers.{number}.{name}"]

        def linear(name: str, x: np.ndarray) -> np.ndarray:
            return x @ of(f"{name}.weight").T + of(f"{name}.bias")

        q, k, v = (linear(name, x) for name in ("query", "key", "value"))
        size = q.shape[1] // heads
        parts, maps = [], []
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            logits = np.where(seen, q[:, own] @ k[:, own].T / math.sqrt(size), -np.inf)
            shares = np.exp(logits - logits.max(1, keepdims=True))
            shares /= shares.sum(1, keepdims=True)
            maps.append(shares)
            parts.append(shares @ v[:, own])
        weights.append(maps)
        attended = linear("projection", np.concatenate(parts, 1))
        x = norm(x + attended, of("attention_norm.weight"), of("attention_norm.bias"))
        inner = linear("outer", gelu(linear("inner", x)))
        x = norm(x + inner, of("output_norm.weight"), of("output_norm.bias"))
    return x, np.array(weights)
