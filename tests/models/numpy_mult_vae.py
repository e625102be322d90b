"""Mult-VAE in plain numpy, from the paper (Liang et al. 2018, section 2), with its gradient worked out by hand."""

import numpy as np

Array = np.ndarray
Parameters = dict[str, Array]
"""w1 [items, hidden], b1; w2 [hidden, 2 · dim], b2; w3 [dim, hidden], b3; w4 [hidden, items], b4."""


def loss(history: list[int], parameters: Parameters, noise: Array, beta: float) -> tuple[float, Parameters, Array]:
    """−Σ x log π(z) + β KL of one user at z = μ + noise · σ; its gradient; and the logits [items].

    noise: [dim]; zero gives the logits that are ranked. The input x is dense here, and nothing of it is dropped.
    """
    p = parameters
    x = np.zeros(len(p["w1"]))
    x[history] = 1
    normal = x / np.sqrt(max((x**2).sum(), 1))
    h1 = np.tanh(normal @ p["w1"] + p["b1"])
    mean, log_variance = np.split(h1 @ p["w2"] + p["b2"], 2)
    sigma = np.exp(log_variance / 2)
    z = mean + noise * sigma
    h2 = np.tanh(z @ p["w3"] + p["b3"])
    logits = h2 @ p["w4"] + p["b4"]
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    value = -(x * np.log(shares)).sum() + beta * 0.5 * (mean**2 + sigma**2 - log_variance - 1).sum()

    at_logits = x.sum() * shares - x
    at_h2 = p["w4"] @ at_logits * (1 - h2**2)
    at_z = p["w3"] @ at_h2
    at_mean = at_z + beta * mean
    at_log_variance = at_z * noise * sigma / 2 + beta * (sigma**2 - 1) / 2
    at_code = np.concatenate([at_mean, at_log_variance])
    at_h1 = p["w2"] @ at_code * (1 - h1**2)
    gradient = {
        "w1": np.outer(normal, at_h1), "b1": at_h1, "w2": np.outer(h1, at_code), "b2": at_code,
        "w3": np.outer(z, at_h2), "b3": at_h2, "w4": np.outer(h2, at_logits), "b4": at_logits,
    }  # fmt: skip
    return float(value), gradient, logits


def denoised(history: list[int], weights: list[Array], biases: list[Array]) -> Array:
    """Mult-DAE's logits: tanh layers from the normalised set of items, and a linear one. weights: [outputs, inputs] each."""
    state = np.zeros(weights[0].shape[1])
    state[list(set(history))] = 1 / np.sqrt(len(set(history)))
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        state = np.tanh(weight @ state + bias)
    return weights[-1] @ state + biases[-1]
