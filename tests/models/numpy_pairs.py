"""Models that compare pairs of items, in plain numpy, item by item: scores as papers write them, BPR, the fold-in by regression.

Every score takes the tables of a model by name, a user, the item before, and the item that is asked for.
"""

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray
Tables = dict[str, Array]


def bpr_mf(of: Tables, user: int, last: int, item: int) -> float:
    """Rendle et al. 2009, 4.3.1: ⟨w_u, h_i⟩; with a bias of the item where there is one."""
    return float(of["users"][user] @ of["taste"][item] + (of["bias"][item, 0] if "bias" in of else 0.0))


def fmc(of: Tables, user: int, last: int, item: int) -> float:
    """Rendle et al. 2010, 4.2: the chain's part, ⟨v_last, v_next⟩."""
    return float(of["last"][last] @ of["next"][item])


def fpmc(of: Tables, user: int, last: int, item: int) -> float:
    """Rendle et al. 2010, equation 8 for a basket of one item: ⟨v^UI_u, v^IU_i⟩ + ⟨v^IL_i, v^LI_l⟩."""
    return float(of["users"][user] @ of["taste"][item] + of["next"][item] @ of["last"][last])


def prme(of: Tables, user: int, last: int, item: int) -> float:
    """Feng et al. 2015, equation 7: −(α D^P + (1 − α) D^S), with α = .2."""
    from_user = ((of["users"][user] - of["taste"][item]) ** 2).sum()
    from_last = ((of["sequence"][last] - of["sequence"][item]) ** 2).sum()
    return float(-(0.2 * from_user + 0.8 * from_last))


def transrec(of: Tables, user: int, last: int, item: int) -> float:
    """He et al. 2017, equations 2 and 3: β_j − d(γ_i + t + τ_u, γ_j), d the squared distance."""
    arrives = of["items"][last] + of["everybody"] + of["users"][user]
    return float(of["bias"][item, 0] - ((arrives - of["items"][item]) ** 2).sum())


def cml(of: Tables, user: int, last: int, item: int) -> float:
    """Hsieh et al. 2017, equation 2, squared."""
    return float(-((of["users"][user] - of["items"][item]) ** 2).sum())


def neumf(of: Tables, user: int, last: int, item: int) -> float:
    """He et al. 2017, equation 12 before the sigmoid; 8 factors, then those that the network reads."""
    p, q = of["users"][user], of["taste"][item]
    state = np.concatenate([p[8:], q[8:]])
    for layer in range(2):
        state = np.maximum(of[f"network.{layer}"] @ state + of[f"network.{layer}.bias"], 0)
    return float(of["output"][0] @ np.concatenate([p[:8] * q[:8], state]))


SCORES: dict[str, Callable[[Tables, int, int, int], float]] = {
    "bpr-mf": bpr_mf, "fmc": fmc, "fpmc": fpmc, "prme": prme, "transrec": transrec, "cml": cml, "neumf": neumf,
}  # fmt: skip
TOUCHED: dict[str, tuple[tuple[str, ...], ...]] = {
    "bpr-mf": (("users",), (), ("taste", "bias")),
    "fmc": ((), ("last",), ("next",)),
    "fpmc": (("users",), ("last",), ("taste", "next")),
    "prme": (("users",), ("sequence",), ("taste", "sequence")),
    "neumf": (("users",), (), ("taste",)),
    "transrec": (("users",), ("items",), ("items", "bias"), ("everybody",)),
}
"""Tables whose rows an example touches: those of the user, of the item before, of the items compared; and what all touch."""


def norms(name: str, of: Tables, user: int, last: int, items: Sequence[int]) -> float:
    """Σ‖Θ‖² of what an example touches, each vector as often as it is used."""
    rows: list[object] = [[user], [last], items, slice(None)]
    touched = (
        (of[table], which) for names, which in zip(TOUCHED[name], rows, strict=False) for table in names if table in of
    )
    return float(sum((table[which] ** 2).sum() for table, which in touched))


def bpr(differences: Sequence[float]) -> float:
    """Mean of −ln σ(x_ui − x_uj)."""
    return float(np.mean([np.log1p(np.exp(-difference)) for difference in differences]))


def bce(positive: Sequence[float], negative: Sequence[Sequence[float]]) -> float:
    """He et al. 2017, equation 7: −Σ y log ŷ + (1 − y) log(1 − ŷ), the mean over positives."""
    return float(
        np.mean(
            [
                np.log1p(np.exp(-x)) + sum(np.log1p(np.exp(y)) for y in others)
                for x, others in zip(positive, negative, strict=True)
            ]
        )
    )


def warp(positive: float, negatives: Sequence[float], margin: float, items: int, nearest: bool) -> float:
    """Hsieh et al. 2017, 3.2 and 3.3, of distances: log(1 + ⌊J M / U⌋) times the mean (or the largest) of [m + d − d_k]₊."""
    broken = [max(0.0, margin + positive - other) for other in negatives]
    rank = np.floor(items * sum(wrong > 0 for wrong in broken) / len(broken))
    return float(np.log(1 + rank) * (max(broken) if nearest else np.mean(broken)))


def decorrelation(points: Array) -> float:
    """Σ over i ≠ j of C_ij², by N."""
    count, dim = points.shape
    mean = points.mean(0)
    total = 0.0
    for i in range(dim):
        for j in range(dim):
            if i != j:
                total += (sum((point[i] - mean[i]) * (point[j] - mean[j]) for point in points) / count) ** 2
    return float(total / count)


def folded(
    histories: Sequence[Sequence[int]], users: Array, items: Array, history: Sequence[int], ridge: float
) -> Array:
    """A · mean + b of a history, by ridge regression of users on the means of their items; b is not penalised.

    ridge: of the mean variance of the means' sums of squares.
    """
    somebody = [user for user, taken in enumerate(histories) if len(taken)]
    means = np.array([items[sorted(set(histories[user]))].mean(0) for user in somebody])
    wanted = users[somebody]
    centred = means - means.mean(0)
    penalty = ridge * np.mean(np.sum(centred**2, axis=0))
    # the penalty as further rows of an ordinary least squares problem
    rows = np.concatenate([centred, np.sqrt(penalty) * np.eye(items.shape[1])])
    targets = np.concatenate([wanted - wanted.mean(0), np.zeros((items.shape[1], users.shape[1]))])
    slope, *_ = np.linalg.lstsq(rows, targets, rcond=None)
    return (items[sorted(set(history))].mean(0) - means.mean(0)) @ slope + wanted.mean(0)
