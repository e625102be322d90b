"""What a model recommends, and how likely it holds each item to be the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.runtime import Bundle, probabilities
from engine.runtime.index import best


class Top(NamedTuple):
    """What a model recommends, best first."""

    items: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    """In the model's own units: never compare them with another model's."""
    share: npt.NDArray[np.float64] | None
    """Probabilities; they sum to 1 over all items that could be recommended. Of a model that writes identifiers: the probability
    that it writes the item's, which items that share an identifier have in common. None where `cannot("probability")`."""


def ask(bundle: Bundle, history: Sequence[int], k: int) -> Top:
    """The k best items after the history. Raises SeqscopeError where the model cannot answer."""
    if bundle.manifest.generator is not None:
        # scores are log-probabilities already, and those of all items would be a long walk
        found = bundle.recommend_one(history, k)
        return Top(found.items, found.scores, np.exp(found.scores.astype(np.float64)))
    scores = bundle.scores(history)
    scores[~bundle.candidates(history)] = -np.inf
    items = best(scores, k)  # as `recommend_one`, without asking the model a second time
    if bundle.cannot("probability") is not None:
        return Top(items, scores[items], None)
    share = probabilities(bundle.manifest.family, scores)[items] if len(items) else np.empty(0)
    return Top(items, scores[items], share)
