"""T5's encoder–decoder for one person, written out once more in numpy from Raffel et al. 2020 and TIGER's appendix.

One departure, as in the network: logits are divided by √head_dim, which T5 leaves to the queries.
"""

import math

import numpy as np

Array = np.ndarray
Weights = dict[str, Array]


def norm(x: Array, weight: Array) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * weight


def softmax(logits: Array) -> Array:
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def bucket(distance: int, both_sides: bool) -> int:
    """key − query → one of 32: half of them for each distance alone, half for distances that grow by a factor up to 128."""
    buckets, start = 32, 0
    if both_sides:
        buckets = 16
        start = 16 if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return start + distance
    grown = exact + int(math.log(distance / exact) / math.log(128 / exact) * (buckets - exact))
    return start + min(grown, buckets - 1)


def bias(table: Array, queries: int, keys: int, both_sides: bool) -> Array:
    """[heads, queries, keys]"""
    rows = [[table[bucket(key - query, both_sides)] for key in range(keys)] for query in range(queries)]
    return np.array(rows).transpose(2, 0, 1)


def attend(w: Weights, name: str, x: Array, seen: Array, heads: int, added: Array) -> Array:
    """Multi-head attention of the normalised x [n, d] over `seen` [m, d]; added: [heads, n, m] to the logits."""

    def split(states: Array, part: str) -> Array:
        out = states @ w[f"{name}.{part}.weight"].T
        return out.reshape(len(states), heads, -1).transpose(1, 0, 2)

    q, k, v = split(norm(x, w[f"{name}.norm.weight"]), "query"), split(seen, "key"), split(seen, "value")
    found = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + added) @ v
    return x + found.transpose(1, 0, 2).reshape(len(x), -1) @ w[f"{name}.output.weight"].T


def feed_forward(w: Weights, name: str, x: Array) -> Array:
    inner = np.maximum(norm(x, w[f"{name}.norm.weight"]) @ w[f"{name}.inner.weight"].T, 0)
    return x + inner @ w[f"{name}.outer.weight"].T


def logits(w: Weights, history: Array, target: Array, bos: int, layers: int, heads: int) -> Array:
    """history: tokens read, int [n]; target: tokens to write, int [levels] → [levels, vocabulary]."""
    table = w["table.weight"]
    x = table[history]
    added = bias(w["encoder_bias.table.weight"], len(x), len(x), True)
    for layer in range(layers):
        name = f"encoder.{layer}.attention"
        x = attend(w, name, x, norm(x, w[f"{name}.norm.weight"]), heads, added)
        x = feed_forward(w, f"encoder.{layer}.forward_layer", x)
    read = norm(x, w["encoder_norm.weight"])
    y = table[np.concatenate([[bos], target[:-1]])]
    added = bias(w["decoder_bias.table.weight"], len(y), len(y), False)
    added = added + np.triu(np.full((len(y), len(y)), -np.inf), 1)
    for layer in range(layers):
        name = f"decoder.{layer}.own"
        y = attend(w, name, y, norm(y, w[f"{name}.norm.weight"]), heads, added)
        y = attend(w, f"decoder.{layer}.cross", y, read, heads, np.zeros((heads, len(y), len(read))))
        y = feed_forward(w, f"decoder.{layer}.forward_layer", y)
    return norm(y, w["decoder_norm.weight"]) / np.sqrt(table.shape[1]) @ table[:bos].T
