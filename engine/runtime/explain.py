"""What each event of a history does for one item: where the item would stand without it.

The level of a score moves with the history, so scores before and after a removal have no common zero: a score may fall although
the item rises. What can be compared is the item's rank among the other items; probabilities and scores stand beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.runtime.index import Float32
from engine.runtime.probability import probabilities

if TYPE_CHECKING:
    from engine.runtime.bundle import Bundle, History


@dataclass(frozen=True)
class LeaveOneOut:
    """The answer to: what if this event had not been there? Arrays run along the whole history, oldest event first.

    Everything is asked among the same candidates, with and without the event: `Bundle.candidates` of the whole history, and
    `item`. Where these leave the history out, the item of the removed event does not come back as a rival: no event would look
    better for that alone.
    """

    item: int
    rank: float
    """Rank of `item` for the whole history, 1 is best."""
    rank_without: npt.NDArray[np.float64]
    """[history]: rank of `item` without the event."""
    log_probability: float
    """Natural logarithm of the probability of `item` among the candidates (`probabilities`), of a generator that of its
    identifier; NaN where the model gives none."""
    log_probability_effect: Float32
    """[history]: log-probability for the whole history minus that without the event; NaN where the model gives none."""
    score: float
    """Score of `item` for the whole history, in the model's units."""
    effect: Float32
    """[history]: score for the whole history minus that without the event. Its sign need not be that of `move`."""
    read: range
    """The places of the history that the model reads; the others change nothing."""

    @property
    def move(self) -> npt.NDArray[np.float64]:
        """[history]: see `rank_move`."""
        return rank_move(self.rank, self.rank_without)


def rank_move(rank: float, rank_without: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """How far an item would fall without an event, in powers of ten of its rank: log10(rank_without / rank), NaN where that is.

    1: from 3rd to 30th; 0: it stays; below 0 it would rise, so the event speaks against it. rank_without: [events]
    """
    found: npt.NDArray[np.float64] = np.log10(np.asarray(rank_without, np.float64) / rank)
    return found


def leave_one_out(bundle: Bundle, history: History, item: int) -> LeaveOneOut:
    """See `Bundle.leave_one_out`."""
    events = bundle.check_history(history)
    bundle.check_items([item])
    read = bundle.used(events)
    asked = np.array([item], np.int64)
    (before,) = bundle.scores_near([events], asked)
    candidates = bundle.candidates(events)
    candidates[item] = True
    rank, score = mean_rank(before, item, candidates), float(before[item])
    whole = log_probability(bundle, before, item, candidates)
    rank_without = np.full(len(events), rank)
    effect = np.zeros(len(events), np.float32)
    log_effect = np.full(len(events), 0.0 if math.isfinite(whole) else math.nan, np.float32)
    places = list(read)
    if len(events) == 1 and bundle.manifest.encoder.min_history > 0:
        # without its only event there is nothing to ask the model about
        effect[:], log_effect[:], rank_without[:] = np.nan, np.nan, np.nan
        places = []
    # An earlier event slides in at the old end where the history is longer than what the model reads.
    variants = [np.delete(events, place) for place in places]
    for place, after in zip(places, bundle.scores_near(variants, asked), strict=True):
        effect[place] = score - after[item]
        log_effect[place] = whole - log_probability(bundle, after, item, candidates)
        rank_without[place] = mean_rank(after, item, candidates)
    return LeaveOneOut(item, rank, rank_without, whole, log_effect, score, effect, read)


def log_probability(bundle: Bundle, scores: Float32, item: int, candidates: npt.NDArray[np.bool_]) -> float:
    """Natural logarithm of the probability of `item` among the candidates; NaN where the model gives none, or gives 0.

    scores: [items], of a generator log-probabilities already; candidates: bool [items].
    """
    if bundle.manifest.generator is not None:
        return float(scores[item])
    if bundle.cannot("probability") is not None:
        return math.nan
    share = probabilities(bundle.manifest.family, np.where(candidates, scores, -np.inf))[item]
    return math.log(share) if share > 0 else math.nan


def mean_rank(scores: Float32, item: int, candidates: npt.NDArray[np.bool_]) -> float:
    """1 + the candidates above + half of the other candidates level with it. scores: [items]; candidates: bool [items]."""
    own = scores[item]
    above = np.count_nonzero((scores > own) & candidates)
    level = np.count_nonzero((scores == own) & candidates) - int(candidates[item])
    return float(1 + above + level / 2)
