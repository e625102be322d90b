"""Which models' scores can be read as probabilities of the next item, and how.

A softmax is one for whatever was trained with cross-entropy over items. Negatives drawn uniformly (BCE, BPR, gBCE, sampled
softmax) have the same optimum up to a constant, so their softmax is an estimate too, though too sure of itself (Petrov &
Macdonald, RecSys 2023). Counts are divided by their sum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_COUNTS = frozenset({"popularity", "markov"})
_DISTANCES = frozenset({"attrec"})


def lacking(family: str) -> str | None:
    """Why a family of models gives no probabilities; None where it does."""
    if family in _DISTANCES:
        return "Its scores are distances, trained with a margin to be in the right order; they are no probabilities."
    return None


def probabilities(family: str, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """float64 [..., items], summing to 1 over items, of one model's scores [..., items]; −inf: no candidate, probability 0.

    Not for generators, whose scores are log-probabilities already, nor for families that are `lacking`.
    """
    values = np.asarray(scores, np.float64)
    if family in _COUNTS:
        weights = np.where(np.isneginf(values), 0, values)
    else:
        weights = np.exp(values - values.max(-1, keepdims=True))
    return np.asarray(weights / np.maximum(weights.sum(-1, keepdims=True), np.finfo(np.float64).tiny))
