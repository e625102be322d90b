"""Recformer in straight-line numpy, from the paper (section 2.1) and Longformer's (3.1): one history, dense attention, a mask."""

from typing import Any

import numpy as np

from tests.models.numpy_bert4rec import layer
from tests.models.numpy_sasrec import layer_norm

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


NAMES = {
    "Wq": "query.weight", "bq": "query.bias", "Wk": "key.weight", "bk": "key.bias", "Wv": "value.weight", "bv": "value.bias",
    "Wo": "projection.weight", "bo": "projection.bias", "alpha1": "attention_norm.weight", "beta1": "attention_norm.bias",
    "W1": "inner.weight", "b1": "inner.bias", "W2": "outer.weight", "b2": "outer.bias", "alpha2": "output_norm.weight",
    "beta2": "output_norm.bias",
}  # fmt: skip
"""Of a layer's parameters: in numpy_bert4rec, in the model."""


def forward(rows: np.ndarray, state: dict[str, np.ndarray], layers: int, heads: int, window: int | None) -> Any:
    """States [length, dim] after the last layer, and the weights [layers, heads, length, length]; state: names as the model's."""
    x = state["words.weight"][rows[:, 0]] + state["positions.weight"][: len(rows)]
    if "types.weight" in state:
        x = x + state["types.weight"][rows[:, 1]]
    if "places.weight" in state:
        x = x + state["places.weight"][rows[:, 2]]
    states, seen = [layer_norm(row, state["norm.weight"], state["norm.bias"], 1e-12) for row in x], []
    for number in range(layers):
        parameters = {name: state[f"layers.{number}.{ours}"] for name, ours in NAMES.items()}
        states, weights = layer(states, parameters, heads, visible(len(rows), window))
        seen.append(weights)
    return np.array(states), np.array(seen)
