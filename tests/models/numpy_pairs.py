"""Models that compare pairs of items, in plain numpy, item by item: scores as papers write them, BPR, the fold-in by regression.

Every score takes the tables of a model by name, a user, the item before, and the item that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray
Tables = dict[str, Array]


def bpr_mf(of: Tables, user: int, last: int, item: int) -> float:
    """Rendle et al. 2009, 4.3.1: ⟨w_u, h_i⟩; with a bias of the item where there is one."""
    return float(of["users"][user] @ of["taste"][item] + (of["bias"][item, 0] if "bias" in of else 0.0))


SCORES: dict[str, Callable[[Tables, int, int, int], float]] = {"bpr-mf": bpr_mf}
TOUCHED = {"bpr-mf": (("users",), (), ("taste", "bias"))}
"""Tables whose rows an example touches: those of the user, of the item before, of the items that are compared."""


def norms(name: str, of: Tables, user: int, last: int, items: Sequence[int]) -> float:
    """Σ‖Θ‖² of what an example touches, each vector as often as it is used."""
    rows = zip(TOUCHED[name], ([user], [last], items), strict=True)
    return float(
        sum((of[table][row] ** 2).sum() for names, of_rows in rows for table in names if table in of for row in of_rows)
    )


def bpr(differences: Sequence[float]) -> float:
    """Mean of −ln σ(x_ui − x_uj)."""
    return float(np.mean([np.log1p(np.exp(-difference)) for difference in differences]))


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
