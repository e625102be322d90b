"""SASRec in plain numpy, one position at a time, from the paper (Kang & McAuley 2018, section 3) and the authors' network.

No padding exists here: a history is its own length, and the latest item has the last row of the position table.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor

Array = np.ndarray


def layer_norm(x: Array, alpha: Array, beta: Array, epsilon: float = 1e-8) -> Array:
    """LayerNorm(x) = α ⊙ (x − μ) / sqrt(σ² + ε) + β, for one vector"""
    mean = x.sum() / len(x)
    variance = ((x - mean) ** 2).sum() / len(x)
    return alpha * (x - mean) / np.sqrt(variance + epsilon) + beta


def time_signal(position: int, dim: int) -> Array:
    """Sines, then cosines, of wavelengths from 2π to 10,000 · 2π in geometric steps."""
    half = dim // 2
    signal = np.zeros(dim)
    for k in range(half):
        angle = position * 10_000.0 ** (-k / (half - 1))
        signal[k], signal[half + k] = np.sin(angle), np.cos(angle)
    return signal


def attention(q: list[Array], k: list[Array], v: list[Array], heads: int, looks: Array) -> tuple[list[Array], Array]:
    """Of every position Σ_j softmax_j(q_i · k_j / sqrt(d / heads)) v_j, heads side by side [length, d]; and the weights
    [heads, length, length]. looks: bool [length, length], at which others each position looks."""
    length, size = len(q), len(q[0]) // heads
    weights, joined = np.zeros((heads, length, length)), []
    for i in range(length):
        parts = []
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            others = np.flatnonzero(looks[i])
            shares = np.exp([q[i][part] @ k[j][part] / np.sqrt(size) for j in others])
            weights[head, i, others] = shares / shares.sum()
            parts.append(sum(weights[head, i, j] * v[j][part] for j in others))
        joined.append(np.concatenate(parts))
    return joined, weights


def forward(
    history: list[int],
    *,
    items: Array,
    positions: Array | str | None,
    longest: int,
    blocks: list[dict[str, Array]],
    last_norm: tuple[Array, Array],
    heads: int,
    residual: bool = True,
    user: Array | None = None,
    periods: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """States after every position [length, d], and attention [blocks, heads, length, length]. user: added to every state.

    items: [n, d]; positions: a table [longest, d], "sinusoidal" or None. A block holds Wq bq Wk bk Wv bv (queries are W x + b),
    W1 b1 W2 b2, and the norms' alpha1 beta1 alpha2 beta2. periods: of when each item was, [length, d] to add to what is read and
    to the states.
    """
    length, d = len(history), items.shape[1]
    x = []
    for i, item in enumerate(history):
        vector = items[item] * np.sqrt(d)
        place = longest - length + i
        if isinstance(positions, str):
            vector = vector + time_signal(place, d)
        elif positions is not None:
            vector = vector + positions[place]
        x.append(vector if periods is None else vector + periods[0][i])
    earlier, seen = np.tri(length, dtype=bool), []
    for block in blocks:
        normed = [layer_norm(vector, block["alpha1"], block["beta1"]) for vector in x]
        query = [block["Wq"] @ vector + block["bq"] for vector in normed]
        key, value = ([block[f"W{name}"] @ vector + block[f"b{name}"] for vector in x] for name in "kv")
        joined, shares = attention(query, key, value, heads, earlier)
        seen.append(shares)
        attended = [one + before for one, before in zip(joined, normed, strict=True)] if residual else joined
        x = []
        for vector in attended:
            into = layer_norm(vector, block["alpha2"], block["beta2"])
            inner = np.maximum(block["W1"] @ into + block["b1"], 0)
            out = block["W2"] @ inner + block["b2"]
            x.append(out + into if residual else out)
    states = np.array([layer_norm(vector, *last_norm) for vector in x])
    return states + (0 if user is None else user) + (0 if periods is None else periods[1]), np.array(seen)


def numbers(tensor: Tensor) -> Array:
    """What the model holds or answers, in double precision."""
    return tensor.detach().double().numpy()


def block_weights(blocks: Iterable[Any]) -> list[dict[str, Array]]:
    """The parameters of the model's blocks, as `forward` takes them."""
    found = []
    for part in blocks:
        linear = {"q": part.query, "k": part.key, "v": part.value}
        linear |= {"o": part.project} if hasattr(part, "project") else {}
        linear |= {"1": part.inner, "2": part.outer} if hasattr(part, "inner") else {}
        norms = {"1": part.attention_norm, "2": getattr(part, "forward_norm", None)}
        norms = {key: norm for key, norm in norms.items() if hasattr(norm, "weight")}
        weights = {f"W{key}": layer.weight for key, layer in linear.items()}
        weights |= {f"b{key}": layer.bias for key, layer in linear.items()}
        weights |= {f"alpha{key}": norm.weight for key, norm in norms.items()}
        weights |= {f"beta{key}": norm.bias for key, norm in norms.items()}
        found.append({key: numbers(weight) for key, weight in weights.items()})
    return found
