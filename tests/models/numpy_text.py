"""Models that read vectors or words of items beside their order, in plain numpy, one item after the other, from their papers."""

import numpy as np

from tests.models.numpy_networks import softmax

Array = np.ndarray


def unisrec_item(x: Array, biases: Array, whitenings: Array, router: Array) -> Array:
    """v of Hou et al. 2022, eq. 2 to 4, without noise. x: [width], of a text; biases, router: [experts, width]; whitenings:
    [experts, dim, width]."""
    gates = softmax(router @ x)
    return sum(g * (w @ (x - b)) for g, w, b in zip(gates, whitenings, biases, strict=True))


def fdsa_item(attributes: list[list[Array]], w: Array) -> Array:
    """Attributes of an item as one vector (Zhang et al. 2019, 3.2); each is the vectors of its words, none is empty."""
    means = [np.mean(words, axis=0) for words in attributes]
    shares = softmax(np.array([w @ mean for mean in means]))
    return sum(share * mean for share, mean in zip(shares, means, strict=True))


def cross_entropy(scores: Array, target: int) -> float:
    return float(np.log(np.exp(scores - scores.max()).sum()) - (scores[target] - scores.max()))


def told(query: Array, vectors: Array, there: Array) -> float:
    """Binary cross-entropy of σ(query · attribute), summed over attributes (Zhou et al. 2020, 4.2). there: bool [attributes]."""
    shares = 1 / (1 + np.exp(-(vectors @ query)))
    return -float(np.log(shares[there]).sum() + np.log(1 - shares[~there]).sum())


def chosen(query: Array, positive: Array, negative: Array) -> float:
    """−log σ(σ(s⁺) − σ(s⁻)) of one target."""
    right, wrong = 1 / (1 + np.exp(-(query @ positive))), 1 / (1 + np.exp(-(query @ negative)))
    return -float(np.log(1 / (1 + np.exp(wrong - right))))
