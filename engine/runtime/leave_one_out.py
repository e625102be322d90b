"""What each event of a history does for one item: where the item would stand without it.

The level of a score moves with the history, so scores before and after a removal have no common zero: a score may fall although
the item rises. What can be compared is the item's rank among the other items; probabilities and scores stand beside it.

A softmax over scores is a probability of the next item for whatever was trained with cross-entropy over items. Negatives drawn
uniformly (BCE, BPR, gBCE, sampled softmax) have the same optimum up to a constant, so their softmax is an estimate too, though
too sure of itself (Petrov & Macdonald, RecSys 2023). Where negatives are drawn by popularity, the optimum is the logarithm of a
probability over theirs; that of TOP1, BPR-max and the hinge is no logarithm at all. Counts are divided by their sum.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.bundle.index import Float32, Float64, mean_rank

if TYPE_CHECKING:
    from engine.runtime.bundle import Bundle, History

_NUMBERS = 1 << 20  # scores that are ranked at a time: 8 MiB as probabilities


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
    moves: npt.NDArray[np.float64] = np.log10(np.asarray(rank_without, np.float64) / rank)
    return moves


def leave_one_out(bundle: Bundle, history: History, item: int) -> LeaveOneOut:
    """See `Bundle.leave_one_out`."""
    events = bundle.check_history(history)
    bundle.check_items([item])
    read = bundle.used(events)
    target = np.array([item], np.int64)
    (before,) = bundle.scores_near([events], target)
    candidates = bundle.candidates(events)
    candidates[item] = True
    rank, score = float(mean_rank(before, before[item], candidates)), float(before[item])
    whole = float(log_probability(bundle, before, item, candidates))
    rank_without = np.full(len(events), rank)
    effect = np.zeros(len(events), np.float32)
    log_effect = np.full(len(events), 0.0 if math.isfinite(whole) else math.nan, np.float32)
    places = list(read)
    if len(events) == 1 and bundle.manifest.encoder.min_history > 0:
        # without its only event there is nothing to ask the model about
        effect[:], log_effect[:], rank_without[:] = np.nan, np.nan, np.nan
        places = []
    # An earlier event slides in at the old end where the history is longer than what the model reads.
    answers = bundle.scores_near([np.delete(events, place) for place in places], target)
    together = max(1, _NUMBERS // len(candidates))
    for start in range(0, len(places), together):
        some = places[start : start + together]
        after = np.stack(list(itertools.islice(answers, len(some))))
        effect[some] = score - after[:, item]
        log_effect[some] = whole - log_probability(bundle, after, item, candidates)
        rank_without[some] = mean_rank(after, after[:, item], candidates)
    return LeaveOneOut(item, rank, rank_without, whole, log_effect, score, effect, read)


def rank_and_log_probability(bundle: Bundle, history: History, item: int) -> tuple[float, float]:
    """(rank, natural logarithm of the probability) of an item after the whole history, as in `LeaveOneOut`: among the candidates
    and the item itself. Costs one question to the model."""
    events, target = bundle.check_history(history), np.array([item], np.int64)
    bundle.check_items([item])
    (scores,) = bundle.scores_near([events], target)
    candidates = bundle.candidates(events)
    candidates[item] = True
    rank = float(mean_rank(scores, scores[item], candidates))
    return rank, float(log_probability(bundle, scores, item, candidates))


def log_probability(bundle: Bundle, scores: Float32, item: int, candidates: npt.NDArray[np.bool_]) -> Float64:
    """Natural logarithm of the probability of `item` among the candidates; NaN where the model gives none, or gives 0.

    scores: [..., items], of a generator log-probabilities already; candidates: bool [items]. Returns float64 [...].
    """
    if bundle.manifest.generator is not None:
        return scores[..., item].astype(np.float64)
    if bundle.cannot("probability") is not None:
        return np.full(scores.shape[:-1], math.nan)
    share = probabilities(bundle.manifest.family, np.where(candidates, scores, -np.inf))[..., item]
    return np.log(share, where=share > 0, out=np.full(share.shape, math.nan))


_COUNTS = frozenset({"popularity", "recent-popularity", "markov"})
_DISTANCES = frozenset({"attrec", "cml"})
_ORDERS = ("hinge", "top1", "top1-max", "bpr-max")


def no_probability(family: str, objective: object) -> str | None:
    """Why a model gives no probabilities; None where it does. objective: that table of its recipe, as a bundle
    has it: anything."""
    if family in _DISTANCES:
        return "Its scores are distances, trained with a margin to be in the right order; they are no probabilities."
    settings = objective if isinstance(objective, dict) else {}
    loss = settings.get("loss", "hinge" if "margin" in settings else "")  # of windows, whose default is not written
    if loss == "cross-entropy":  # which takes no negatives, nor an activation
        return None
    if loss in _ORDERS or settings.get("activation", "linear") != "linear":
        return "Its scores were trained to be in the right order; they are no probabilities."
    of_batch = settings.get("batch_negatives") or settings.get("stage") == "pre-train"  # the latter is Recformer's
    if of_batch or (settings.get("shared_negatives") and settings.get("popularity_power")):
        return "It learnt from negatives drawn by popularity: its scores say how much likelier an item is than usual."
    return None


def probabilities(family: str, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """float64 [..., items], summing to 1 over items, of one model's scores [..., items]; −inf: no candidate, probability 0.

    Not for generators, whose scores are log-probabilities already, nor for models that have `no_probability`.
    """
    values = np.asarray(scores, np.float64)
    if family in _COUNTS:
        weights = np.where(np.isneginf(values), 0, values)
    else:
        weights = np.exp(values - values.max(-1, keepdims=True))
    return np.asarray(weights / np.maximum(weights.sum(-1, keepdims=True), np.finfo(np.float64).tiny))
