"""What a model recommends, and how far ahead of the others each item is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.runtime import Bundle, softmax_share
from engine.runtime.index import best


class Top(NamedTuple):
    """What a model recommends, best first."""

    items: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    """In the model's own units: never compare them with another model's."""
    share: npt.NDArray[np.float64]
    """Softmax over all items that could be recommended; they sum to 1 over the whole catalogue. Of a model that writes
    identifiers: the probability that it writes the item's, which items that share an identifier have in common."""
    strength: npt.NDArray[np.float64]
    """0 to 1 within this model: 1 is its best item, 0 an item in the middle of the catalogue; of a model that writes
    identifiers, one with probability 0."""


def ask(bundle: Bundle, history: Sequence[int], k: int) -> Top:
    """The k best items after the history. Raises SeqscopeError where the model cannot answer."""
    if bundle.manifest.generator is not None:
        # scores are probabilities already, and those of all items would be a long walk
        found = bundle.recommend_one(history, k)
        written = np.exp(found.scores.astype(np.float64))
        return Top(found.items, found.scores, written, written / max(float(written[:1].sum()), 1e-300))
    scores = bundle.scores(history)
    middle = float(np.median(scores.astype(np.float64)))
    scores[list(history)] = -np.inf
    items = best(scores, k)  # as `recommend_one`, without asking the model a second time
    own = scores[items]
    share = softmax_share(scores)[items] if len(items) else np.empty(0)
    span = float(own[0]) - middle if len(items) else 0.0
    strength = np.clip((own.astype(np.float64) - middle) / span, 0, 1) if span > 0 else np.ones(len(items))
    return Top(items, own, share, strength)
