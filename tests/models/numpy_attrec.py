"""AttRec in plain numpy, from the paper (Zhang, Tay, Yao & Sun 2018, sections 3.2 to 3.4) and the authors' code."""

import numpy as np

from tests.models.numpy_sasrec import time_signal

Array = np.ndarray


def intent(
    window: list[int], *, size: int, table: Array, projection: Array | None, diagonal: str, aggregate: str = "mean"
) -> tuple[Array, Array]:
    """Short-term intent m [d] of the latest items (at most `size`), and what each looked at [items, items].

    The time signal is added before the one projection that query and key share; values are the plain vectors. A window that is
    not full lies at the end of the positions. diagonal: "before", an item is masked from itself before the softmax, or "after",
    the weights are multiplied by (1 − I) afterwards. Without a projection there is no attention: rows are the items' vectors.
    """
    count, d = len(window), table.shape[1]
    together = {"mean": np.mean, "sum": np.sum, "max": np.max, "min": np.min}[aggregate]
    if projection is None:
        return together([table[item] for item in window], axis=0), np.eye(count)
    projected = []
    for i, item in enumerate(window):
        signal = table[item] + time_signal(size - count + i, d)
        projected.append(np.maximum(projection @ signal, 0))
    weights = np.zeros((count, count))
    for i in range(count):
        looked = [j for j in range(count) if diagonal == "after" or j != i] or [i]
        logits = np.array([projected[i] @ projected[j] / np.sqrt(d) for j in looked])
        shares = np.exp(logits) / np.exp(logits).sum()
        for j, share in zip(looked, shares, strict=True):
            weights[i, j] = 0 if diagonal == "after" and j == i else share
    rows = [sum(weights[i, j] * table[window[j]] for j in range(count)) for i in range(count)]
    return together(rows, axis=0), weights


def distance(user: Array, m: Array, taste: Array, aim: Array, omega: float) -> float:
    """y = ω‖u − V_i‖² + (1 − ω)‖m − X_i‖²: smaller is nearer."""
    return float(omega * ((user - taste) ** 2).sum() + (1 - omega) * ((m - aim) ** 2).sum())


def product(user: Array, m: Array, taste: Array, aim: Array, omega: float) -> float:
    """ω u·V_i + (1 − ω) m·X_i: larger is nearer."""
    return float(omega * user @ taste + (1 - omega) * m @ aim)
