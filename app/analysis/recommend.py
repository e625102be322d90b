"""What models recommend after a history: the list, ranks, leave-one-out effects and neighbours of items, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.analysis.cache import cached, of_model
from engine.bundle.index import best
from engine.runtime import Bundle, LeaveOneOut, Neighbours, Zoo, probabilities

History = tuple[int, ...]


class TopK(NamedTuple):
    """What a model recommends, best first."""

    items: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    """In the model's own units: never compare them with another model's."""
    share: npt.NDArray[np.float64] | None
    """Probabilities; they sum to 1 over all items that could be recommended. Of a model that writes identifiers: the probability
    that it writes the item's, which items that share an identifier have in common. None where `cannot("probability")`."""


def recommend(bundle: Bundle, history: Sequence[int], k: int) -> TopK:
    """The k best items after the history. Raises SeqscopeError where the model cannot answer."""
    if bundle.manifest.generator is not None:
        # scores are log-probabilities already, and those of all items would be a long walk
        found = bundle.recommend_one(history, k)
        return TopK(found.items, found.scores, np.exp(found.scores.astype(np.float64)))
    scores = bundle.scores(history)
    scores[~bundle.candidates(history)] = -np.inf
    items = best(scores, k)  # as `recommend_one`, without asking the model a second time
    if bundle.cannot("probability") is not None:
        return TopK(items, scores[items], None)
    share = probabilities(bundle.manifest.family, scores)[items] if len(items) else np.empty(0)
    return TopK(items, scores[items], share)


@cached(2_000, by=of_model)
def top(models: Zoo, model: str, history: History, k: int) -> TopK:
    """`recommend`, kept for all who ask the same."""
    return recommend(models.bundles[model], history, k)


@cached(2_000, by=of_model)
def ranks(models: Zoo, model: str, history: History, items: tuple[int, ...]) -> list[float]:
    """The rank of each item after the history, 1 is best; for one outside the first k, too."""
    return models.bundles[model].ranks(history, items).tolist()


@cached(500, by=of_model)
def leave_one_out(models: Zoo, model: str, history: History, item: int) -> LeaveOneOut:
    """What each event of the history does to the item's score and rank."""
    return models.bundles[model].leave_one_out(history, item)


@cached(1_000, by=of_model)
def neighbours(models: Zoo, model: str, item: int, k: int) -> Neighbours:
    """The nearest items in the model's own space."""
    return models.bundles[model].neighbours(item, k)
