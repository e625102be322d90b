"""Sequential networks in plain numpy, one item after the other, from their papers."""

from typing import Any

import numpy as np

from tests.models.numpy_sasrec import attention, layer_norm, numbers

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


def gru_layers(module: Any) -> list[tuple[Array, Array]]:
    """The weights of a torch.nn.GRU, as `gru` takes them."""
    return [(numbers(layer[0]), numbers(layer[1])) for layer in module.all_weights]


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


def caser(image: Array, rows: list[Array], columns: Array, joint: tuple[Array, Array], user: Array) -> Array:
    """The query [z; user] of Tang & Wang 2018, 3.2 and 3.3. image: [L, d]; rows: of each height h [filters, d, h]; columns:
    [filters, L]; joint: W [d, …] and b [d]."""
    found = []
    for filters in rows:
        for kernel in filters:  # [d, h]
            height = kernel.shape[1]
            fits = [(image[t : t + height] * kernel.T).sum() for t in range(len(image) - height + 1)]
            found.append(max(max(fit, 0) for fit in fits))
    for weights in columns:
        found.extend(sum(weight * item for weight, item in zip(weights, image, strict=True)))
    weight, bias = joint
    return np.concatenate([np.maximum(weight @ np.array(found) + bias, 0), user])


def hgn(
    items: Array, user: Array, w1: Array, w2: Array, b: Array, w3: Array, w4: Array, variant: str
) -> tuple[Array, Array, Array]:
    """Ma et al. 2019, 3.2 to 3.5: the gated window, the sum of the items, and the gates of the items. items: [n, d],
    those there are; w4: [n, d], of their places. variant "code" divides by the gates of the items."""
    gated = items * np.array([sigma(w1 @ item + w2 @ user + b) for item in items])
    instances = np.array([sigma(w3 @ item + place @ user) for item, place in zip(gated, w4, strict=True)])
    total = sum(gate * item for gate, item in zip(instances, gated, strict=True))
    return total / (len(items) if variant == "paper" else instances.sum()), items.sum(0), instances


def narm(states: Array, a1: Array, a2: Array, v: Array, b: Array, variant: str) -> tuple[Array, Array]:
    """The query B [c_g; c_l] of Li et al. 2017, eq. 6 to 10, and the α. states: [items, units]. "code": α through a softmax."""
    alpha = np.array([v @ sigma(a1 @ states[-1] + a2 @ state) for state in states])
    if variant == "code":
        alpha = softmax(alpha)
    local = sum(weight * state for weight, state in zip(alpha, states, strict=True))
    return b @ np.concatenate([states[-1], local]), alpha


def softmax(x: Array) -> Array:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def silu(x: Array) -> Array:
    return x * sigma(x)


def ligr(x: Array, p: dict[str, Array], heads: int) -> tuple[Array, Array]:
    """A LiGR layer, one position after the other, and its weights [heads, items, items]. x: [items, d]; p: parameters by name."""
    normed = [layer_norm(row, p["attention_norm.weight"], p["attention_norm.bias"], 1e-5) for row in x]
    q, k, v = ([p[f"{key}.weight"] @ row + p[f"{key}.bias"] for row in normed] for key in ("query", "key", "value"))
    joined, weights = attention(q, k, v, heads, np.tri(len(x), dtype=bool))
    out = np.zeros_like(x)
    for i in range(len(x)):
        gate = sigma(p["attention_gate.weight"] @ x[i] + p["attention_gate.bias"])
        y = x[i] + gate * (p["out.weight"] @ joined[i] + p["out.bias"])
        inner = layer_norm(y, p["forward_norm.weight"], p["forward_norm.bias"], 1e-5)
        inner = silu(p["gated.weight"] @ inner) * (p["linear.weight"] @ inner)
        out[i] = y + sigma(p["forward_gate.weight"] @ y + p["forward_gate.bias"]) * (p["outer.weight"] @ inner)
    return out, weights


def hstu(
    x: Array, p: dict[str, Array], heads: int, longest: int, times: list[int] | None = None, eps: float = 1e-5
) -> tuple[Array, Array]:
    """A layer of Zhai et al. 2024, eq. 1 to 3, with a bias of places and, where p has it, one of times (in steps of .301 of the
    natural logarithm of seconds, as in the authors' code; the last one without times), and its weights [heads, items, items]."""
    count, d = x.shape
    size, weights, out = d // heads, np.zeros((heads, count, count)), np.zeros_like(x)
    u, v, q, k = (
        np.array(part)
        for part in np.split(np.array([silu(p["inner.weight"] @ layer_norm(row, 1, 0, eps)) for row in x]), 4, axis=1)
    )
    for i in range(count):
        joined = np.zeros(d)
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            for j in range(i + 1):
                bias = p["bias"][i - j]
                if "time_bias" in p:
                    bucket = -1 if times is None else min(int(np.log(max(1, times[i] - times[j])) / 0.301), 127)
                    bias = bias + p["time_bias"][bucket]
                weights[head, i, j] = silu(q[i][part] @ k[j][part] + bias) / longest
                joined[part] += weights[head, i, j] * v[j][part]
        out[i] = x[i] + p["outer.weight"] @ (layer_norm(joined, 1, 0, eps) * u[i]) + p["outer.bias"]
    return out, weights
