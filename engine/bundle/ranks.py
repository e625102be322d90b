"""Ranks in numpy, 1 is best, ties at their mean; engine/evaluation/ranks.py has them in torch."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


def mean_rank(
    scores: npt.NDArray[np.floating], score: npt.ArrayLike, candidates: npt.NDArray[np.bool_] | Literal[True] = True
) -> Float64:
    """1 + the candidates above + half of the other candidates level with it: float64 [...].

    scores: [..., items]; score: [...], that of a candidate; candidates: bool [items], True: all.
    """
    target = np.asarray(score)[..., None]
    above = np.count_nonzero((scores > target) & candidates, axis=-1)
    level = np.count_nonzero((scores == target) & candidates, axis=-1) - 1
    return np.asarray(1 + above + level / 2, np.float64)


def ranks_among(others: npt.NDArray[np.floating], scores: npt.ArrayLike) -> Float64:
    """The rank that each of `scores` would have among `others`, which it is none of: float64, as long as `scores`."""
    ordered = np.sort(others)
    not_above = np.searchsorted(ordered, scores, side="right")
    level = not_above - np.searchsorted(ordered, scores, side="left")
    return np.asarray(1 + (len(ordered) - not_above) + level / 2, np.float64)
