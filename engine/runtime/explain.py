"""What each event of a history contributes to the score of one item: the score with it minus the score without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.runtime.index import Float32

if TYPE_CHECKING:
    from engine.runtime.bundle import Bundle, History


@dataclass(frozen=True)
class LeaveOneOut:
    """The answer to: what if this event had not been there? Arrays run along the whole history, oldest event first."""

    item: int
    effect: Float32
    """[history]: score of `item` for the whole history minus its score without the event; above 0 the event speaks for it."""
    score: float
    """Score of `item` for the whole history."""
    rank: float
    """Rank of `item` for the whole history, 1 is best."""
    rank_without: npt.NDArray[np.float64]
    """[history]: rank of `item` without the event, among the same candidates."""
    read: range
    """The places of the history that the model reads; the others have effect 0."""


def leave_one_out(bundle: Bundle, history: History, item: int) -> LeaveOneOut:
    """See `Bundle.leave_one_out`."""
    events = bundle.check_history(history)
    bundle.check_items([item])
    read = bundle.used(events)
    effect = np.zeros(len(events), np.float32)
    asked = np.array([item], np.int64)
    (before,) = bundle.scores_near([events], asked)
    candidates = bundle.candidates(events)
    candidates[item] = True
    rank = mean_rank(before, item, candidates)
    rank_without = np.full(len(events), rank)
    places = list(read)
    if len(events) == 1 and bundle.manifest.encoder.min_history > 0:
        effect[:], rank_without[:] = np.nan, np.nan  # without its only event there is nothing to ask the model about
        places = []
    # An earlier event slides in at the old end where the history is longer than what the model reads.
    variants = [np.delete(events, place) for place in places]
    for place, after in zip(places, bundle.scores_near(variants, asked), strict=True):
        effect[place] = before[item] - after[item]
        rank_without[place] = mean_rank(after, item, candidates)
    return LeaveOneOut(item, effect, float(before[item]), rank, rank_without, read)


def mean_rank(scores: Float32, item: int, candidates: npt.NDArray[np.bool_]) -> float:
    """1 + the candidates above + half of the other candidates level with it. scores: [items]; candidates: bool [items]."""
    own = scores[item]
    above = np.count_nonzero((scores > own) & candidates)
    level = np.count_nonzero((scores == own) & candidates) - int(candidates[item])
    return float(1 + above + level / 2)
