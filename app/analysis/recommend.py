"""What models recommend after a history: lists, before and after an edit, ranks, leave-one-out effects, how much
the lists agree, and the rank of each of their items in each model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from app import styles
from app.analysis import beam_search
from app.analysis.cache import cached, of_model
from app.text import adding_up, clean, distinct, listed, share_of_all
from engine.bundle.index import best, mean_rank
from engine.errors import SeqscopeError
from engine.runtime import (
    Bundle,
    Contributions,
    LeaveOneOut,
    Trace,
    Zoo,
    jaccard,
    judge,
    movement,
    overlap,
    probabilities,
    rank_and_log_probability,
    rbo,
    rbo_weight,
)
from engine.writing import count

History = tuple[int, ...]
Floats = npt.NDArray[np.float64]
SAME_FOR_EVERYBODY = ("popularity", "recent-popularity")
"""Families that read no history at all."""


class TopK(NamedTuple):
    """What a model recommends, best first."""

    items: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    """In the model's own units: never compare them with another model's."""
    share: Floats | None
    """Probabilities; they sum to 1 over all items that could be recommended. Of a model that writes identifiers: the probability
    that it writes the item's, which items that share an identifier have in common. None where `cannot("probability")`."""


@cached(2_000, by=of_model)
def top_k(models: Zoo, model: str, history: History, k: int) -> TopK:
    """The k best items after the history. Raises SeqscopeError where the model cannot answer."""
    bundle = models.bundles[model]
    if bundle.manifest.generator is not None:
        # scores are log-probabilities already, and those of all items would be a long walk
        written = bundle.recommend_one(history, k)
        return TopK(written.items, written.scores, np.exp(written.scores.astype(np.float64)))
    scores = bundle.scores(history)
    scores[~bundle.candidates(history)] = -np.inf
    items = best(scores, k)  # as `recommend_one`, without asking the model a second time
    if bundle.cannot("probability") is not None:
        return TopK(items, scores[items], None)
    share = probabilities(bundle.manifest.family, scores)[items] if len(items) else np.empty(0)
    return TopK(items, scores[items], share)


def of_trace(bundle: Bundle, trace: Trace, history: Sequence[int], k: int) -> TopK:
    """The k best items that a beam search ended with, of those that may be recommended."""
    rows = np.flatnonzero(trace.places >= 0)
    rows = rows[np.argsort(trace.places[rows])]
    items = np.concatenate([np.empty(0, np.int32), *(trace.items[row] for row in rows)])
    scores = np.repeat(trace.scores[rows], [len(trace.items[row]) for row in rows])
    some = np.flatnonzero(bundle.candidates(history)[items])[:k]
    return TopK(items[some], scores[some], np.exp(scores[some].astype(np.float64)))


@cached(2_000, by=of_model)
def ranks(models: Zoo, model: str, history: History, items: tuple[int, ...]) -> list[float]:
    """The rank of each item after the history, 1 is best; for one outside the first k, too."""
    return models.bundles[model].ranks(history, items).tolist()


class Placement(NamedTuple):
    """Where a model places one item."""

    rank: float | None
    """1 is best; None: behind its first k, of a model that would have to score every item for it."""
    share: float | None
    """The item's probability; None where the model gives none."""


def placement(models: Zoo, model: str, history: History, item: int, k: int) -> Placement:
    """Raises SeqscopeError where the model cannot answer."""
    if not beam_search.slow(models, model, 1):
        return _placement(models, model, history, item)
    listed_items = top_k(models, model, history, k)
    rank = rank_listed(listed_items, item)
    if rank is None or listed_items.share is None:
        return Placement(rank, None)
    return Placement(rank, float(listed_items.share[listed_items.items == item][0]))


@cached(2_000, by=of_model)
def _placement(models: Zoo, model: str, history: History, item: int) -> Placement:
    rank, log_share = rank_and_log_probability(models.bundles[model], history, item)
    if models.bundles[model].cannot("probability") is not None:
        return Placement(rank, None)
    return Placement(rank, float(np.exp(log_share)) if np.isfinite(log_share) else 0.0)


@cached(500, by=of_model)
def leave_one_out(models: Zoo, model: str, history: History, item: int) -> LeaveOneOut:
    """What each event of the history does to the item's score and rank."""
    return models.bundles[model].leave_one_out(history, item)


@cached(500, by=of_model)
def contributions(models: Zoo, model: str, history: History, item: int) -> Contributions | None:
    """What each event of the history, or each part of the model, gave to the item's score; None where scores are no such sums."""
    bundle = models.bundles[model]
    return None if bundle.cannot("contributions") is not None else bundle.contributions(history, item)


# --- all models side by side


RBO_P = 0.9


@dataclass(frozen=True)
class Answer:
    """What one model says to one history."""

    name: str
    title: str
    """With its name, where another answer's is the same."""
    style: styles.Style
    note: str
    """How much of the history it read, or how good it is."""
    top: TopK | None
    """None where it cannot answer."""
    cannot: str | None
    """Why not, in words."""
    before: TopK | None = None
    """Its list for the pinned history, where there is an edited one."""
    ties: dict[int, list[int]] = field(default_factory=dict)
    """item of the list → the items that share its identifier, where a model cannot tell them apart."""
    target_rank: float | None = None
    """The rank of what truly came next, in the list or not."""

    @property
    def items(self) -> list[int]:
        return [] if self.top is None else self.top.items.tolist()


def ask(
    models: Zoo,
    names: Sequence[str],
    history: tuple[int, ...],
    k: int,
    *,
    pinned: tuple[int, ...] | None = None,
    target: int | None = None,
) -> list[Answer]:
    """Every model's list after the history. pinned: the history before the edit. target: what truly came next."""
    answers = [_ask(models, name, history, k, pinned, target) for name in names]
    titles = distinct({answer.name: answer.title for answer in answers})
    return [replace(answer, title=titles[answer.name]) for answer in answers]


def _ask(
    models: Zoo, name: str, history: tuple[int, ...], k: int, pinned: tuple[int, ...] | None, target: int | None
) -> Answer:
    manifest = models.bundles[name].manifest
    look = styles.style(models, name)
    note = _note(models, name, len(history))
    try:
        best_items = top_k(models, name, history, k)
    except SeqscopeError as reason:
        return Answer(name, manifest.title, look, note, None, str(reason))
    before, rank = None, None
    if pinned is not None:
        try:
            before = top_k(models, name, pinned, k)
        except SeqscopeError:  # then everything is new
            before = None
    if target is not None:
        (rank,) = known_ranks(models, name, history, [target], best_items)
    return Answer(name, manifest.title, look, note, best_items, None, before, _ties(models, name, best_items), rank)


def known_ranks(
    models: Zoo, name: str, history: History, items: Sequence[int], listed: TopK | None
) -> Sequence[float | None]:
    """The rank of each item after the history. Of a model that would have to score every item for it: that within its list, None
    outside, or where it has no list."""
    if not beam_search.slow(models, name, 1):
        return ranks(models, name, history, tuple(items))
    return [None if listed is None else rank_listed(listed, item) for item in items]


def rank_listed(top_k: TopK, item: int) -> float | None:
    """The rank of an item within a list, None outside."""
    score = top_k.scores[top_k.items == item]
    if not len(score):
        return None
    return float(mean_rank(top_k.scores, score[0]))


def approximate_lists(models: Zoo, answers: Sequence[Answer], k: int) -> str:
    """A sentence about models whose lists of k a beam makes, so that places in them need not be ranks; "" where there is none."""
    beams = [
        answer.title
        for answer in answers
        if models.bundles[answer.name].beam(k) is not None and not beam_search.slow(models, answer.name, 1)
    ]
    if not beams:
        return ""
    return f"A beam makes the list of {listed(beams)}, and may miss items that rank higher; ranks are exact."


def _ties(models: Zoo, name: str, top_k: TopK) -> dict[int, list[int]]:
    bundle = models.bundles[name]
    if bundle.cannot("distinct_items") is None:
        return {}
    alike = {int(item): bundle.siblings(int(item))[-1].tolist() for item in top_k.items}
    return {item: others for item, others in alike.items() if others}


def tie_words(models: Zoo, others: Sequence[int]) -> str:
    """Which items a model takes for the same."""
    names = [clean(styles.titled(models, item), 60) for item in others[:3]]
    more = [f"{len(others) - 3:,} more"] if len(others) > 3 else []
    return f"Has the same codes as {listed([*names, *more])}: the model cannot tell them apart and scores them alike"


def read_words(read: int, length: int) -> list[str]:
    """That not all of a history is read, where that is so. read: the latest so many, of `length`."""
    return [] if read >= length else ["reads the last item" if read == 1 else f"reads the latest {read} of {length:,}"]


def _note(models: Zoo, name: str, length: int) -> str:
    bundle = models.bundles[name]
    quality = bundle.manifest.metrics.get(bundle.protocol, {}).get("NDCG@10")
    words = [] if quality is None else [f"NDCG@10 {quality:.3f}".replace(" 0.", " .")]
    if bundle.manifest.refitted:
        words = [f"{quality_words} as a refit" for quality_words in words] or ["a refit"]
    read = len(bundle.used(range(length)))
    if bundle.cannot("identifiers") is None:
        words.append("generative")
    if bundle.manifest.family in SAME_FOR_EVERYBODY:
        words.append("the same for everybody")
    else:
        words += read_words(read, length)
        if bundle.cannot("reads_order") is not None:
            words.append("does not read order")
    if bundle.cannot("probability") is not None:
        words.append(NO_BARS)
    return ", ".join(words)


def shared(answers: Sequence[Answer]) -> dict[int, int]:
    """item → how many of the lists it is in."""
    return Counter(item for answer in answers for item in answer.items)


def _order(lists: Sequence[list[int]], k: int) -> np.ndarray:
    """RBO of each pair of lists, float64 [lists, lists]."""
    below = np.array(
        [[rbo(lists[i], lists[j], RBO_P) if j <= i else 0.0 for j in range(len(lists))] for i in range(len(lists))]
    )
    return np.maximum(below, below.T)


MEASURES: dict[str, Callable[[Sequence[list[int]], int], np.ndarray]] = {
    "shared": overlap,
    "jaccard": jaccard,
    "rbo": _order,
}
"""What agreement is measured by: (lists, k) → [lists, lists]."""


def agreement(answers: Sequence[Answer], k: int) -> pd.DataFrame:
    """One row per pair of models that answered: first, second, and a column per measure."""
    able = [answer for answer in answers if answer.top is not None]
    lists = [answer.items for answer in able]
    titles = [answer.title for answer in able]
    return pd.DataFrame(
        {
            "first": [title for title in titles for _ in titles],
            "second": titles * len(titles),
            **{name: measure(lists, k).ravel() for name, measure in MEASURES.items()},
        }
    )


class Spread(NamedTuple):
    """Over how many of the lists their items are spread."""

    different: int
    """Items in all lists together."""
    by_all: int
    by_one: int

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Spread:
        times = list(Counter(item for items in lists for item in items).values())
        return cls(len(times), times.count(len(lists)), times.count(1))


def agreement_words(answers: Sequence[Answer]) -> str:
    """The agreement in one sentence."""
    lists = [answer.items for answer in answers if answer.top is not None]
    if len(lists) < 2:
        return f"With {'one list' if lists else 'no list'} there is nothing to compare."
    return spread_words(Spread.of(lists), len(lists))


def spread_words(spread: Spread, lists: int) -> str:
    """lists: how many there are."""
    models = "both models" if lists == 2 else f"all {lists} models"
    verb = "is" if spread.by_all < 2 else "are"
    return (
        f"Of {count(spread.different, 'item')} in these lists, {spread.by_all or 'none'} {verb} recommended by {models} and "
        f"{spread.by_one or 'none'} by one alone."
    )


def rbo_words(k: int) -> str:
    """What stands behind the figures of rank-biased overlap."""
    return (
        f"RBO: rank-biased overlap, p = {RBO_P:g}; 1 is the same order, 0 nothing shared. "
        f"The first {k} places carry {share_of_all(rbo_weight(RBO_P, k))} of its weight."
    )


def lists_table(models: Zoo, answers: Sequence[Answer]) -> pd.DataFrame:
    """All lists as one table, to look at and to download."""
    counts = shared(answers)
    rows = []
    for answer in answers:
        if answer.top is None:
            continue
        was = {} if answer.before is None else {int(item): rank for rank, item in enumerate(answer.before.items, 1)}
        for rank, item in enumerate(answer.items, 1):
            row = {
                "model": answer.title,
                "rank": rank,
                "item_id": models.item_ids[item],
                "title": styles.titled(models, item),
                "score": float(answer.top.scores[rank - 1]),
                "share": None if answer.top.share is None else float(answer.top.share[rank - 1]),
                "in lists": counts[item],
            }
            if answer.before is not None:
                row["rank before"] = was.get(item)
            rows.append(row)
    return pd.DataFrame(rows)


# --- their items as one table


@dataclass(frozen=True)
class RankTable:
    """Rows are items, by mean rank; columns are the models that could answer."""

    answers: list[Answer]
    items: list[int]
    ranks: Floats
    """float64 [items, models], 1 is best, ties at their mean; NaN where only the list of a generative model is known, and the
    item is not in it."""
    before: Floats | None
    """The same after the pinned history; None where there is none."""
    mean: Floats
    """float64 [items]: over the models, where a rank beyond k counts as k + 1, so that one model that has an item in the
    thousandth place does not outweigh all others (Fagin, Kumar, Sivakumar 2003, the location parameter of top-k lists)."""


def rank_table(
    models: Zoo,
    answers: Sequence[Answer],
    history: History,
    k: int,
    *,
    pinned: History | None = None,
    target: int | None = None,
) -> RankTable:
    """answers: after `history`, lists of k. pinned: the history before an edit. target: what truly came next."""
    able = [answer for answer in answers if answer.top is not None]
    lists = [answer.items for answer in able] + ([] if target is None else [[target]])
    items = list(dict.fromkeys(item for items in lists for item in items))
    ranks = np.full((len(items), len(able)), np.nan)
    before = None if pinned is None else ranks.copy()
    for column, answer in enumerate(able):
        ranks[:, column] = np.array(known_ranks(models, answer.name, history, items, answer.top), float)
        if before is not None and pinned is not None and answer.before is not None:
            before[:, column] = np.array(known_ranks(models, answer.name, pinned, items, answer.before), float)
    mean = np.where(ranks <= k, ranks, k + 1).mean(axis=1) if able else np.zeros(0)
    order = np.argsort(mean, kind="stable")
    return RankTable(
        able, [items[row] for row in order], ranks[order], None if before is None else before[order], mean[order]
    )


# --- why one item


@dataclass(frozen=True)
class Why:
    """What each event of the history does to one item's rank, per model."""

    answers: list[Answer]
    """Those models that could say."""
    effects: list[LeaveOneOut]
    cannot: list[str]
    """The others, with their reasons."""
    sums: dict[str, Contributions] = field(default_factory=dict)
    """By name: what a score adds up from, of those models whose score is a sum."""


def explain(models: Zoo, model: str, history: tuple[int, ...], item: int) -> LeaveOneOut:
    """Leave-one-out of one model. Raises SeqscopeError where it cannot answer, or there is nothing to leave out."""
    effect = leave_one_out(models, model, history, item)
    if np.isnan(effect.rank_without).all():
        raise SeqscopeError("It needs at least one item, so nothing can be left out of a history of one.")
    return effect


def why(models: Zoo, answers: Sequence[Answer], history: tuple[int, ...], item: int) -> Why:
    """Leave-one-out of every model."""
    able, effects, cannot, sums = [], [], [], {}
    for answer in answers:
        try:
            if (parts := contributions(models, answer.name, history, item)) is not None:
                sums[answer.name] = parts
            effects.append(explain(models, answer.name, history, item))
            able.append(answer)
        except SeqscopeError as reason:
            cannot.append(f"{answer.title}: {reason}")
    return Why(able, effects, cannot, sums)


def strongest(effects: Sequence[LeaveOneOut], most: int) -> list[int]:
    """The places of the events with the strongest effects in any of the models, in the order of the history: by how far ranks
    move, then by how much probability changes."""
    if not effects:
        return []
    moves = np.nan_to_num(np.abs([effect.move for effect in effects])).max(axis=0)
    changes = np.max([_scaled(effect.log_probability_effect) for effect in effects], axis=0)  # where no rank moves
    places: list[int] = np.sort(np.lexsort((-changes, -moves))[:most]).tolist()
    return places


def _scaled(effect: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    sizes = np.nan_to_num(np.abs(effect.astype(float)))
    return sizes / sizes.max() if sizes.max(initial=0) > 0 else sizes


def sum_words(title: str, parts: Contributions, events: Sequence[str], most: int = 4) -> str:
    """A score as the sum that it is, the largest parts by name, so that what is written adds up. title, events: the model's and
    those of the history's items, as they are escaped for where this is shown."""
    given = parts.events.astype(float)
    by_size = [place for place in np.argsort(-np.abs(given), kind="stable").tolist() if given[place]]
    named = [(events[place], float(given[place])) for place in by_size[:most]]
    if len(by_size) > most:
        named.append((count(len(by_size) - most, "other"), float(given[by_size[most:]].sum())))
    named += [*parts.parts.items(), ("the item’s own bias", parts.prior)]
    largest = max(abs(value) for _, value in named)
    if not largest:
        return f"{title} has nothing for it: no item that it reads leads there."
    digits = max(0, 3 - math.floor(math.log10(largest)))
    rounded = adding_up([value for _, value in named], digits)
    added = [
        f"{part} {judge.signed(value, f'+,.{digits}f')}"
        for (part, _), value in zip(named, rounded, strict=True)
        if value
    ]
    return f"{title} adds up to {judge.signed(sum(rounded), f',.{digits}f')}, exactly: {listed(added)}."


def moves(answer: Answer) -> dict[int, tuple[str, str]]:
    """item → (kind of change, its words), the dropped ones included; nothing where there is no list before."""
    if answer.before is None:
        return {}
    return {move.item: (move.change, str(move)) for move in movement(answer.before.items, answer.items)}


# --- what bars of lists show


BARS = (
    "Percentage: the probability that the model gives the item. Bar: the same, with the list’s first item as full length. "
    "Compare within a list: models are calibrated differently."
)
"""Stands once with every drawing of lists."""
NO_BARS = "gives no probabilities"


def bar(share: float, first: float) -> float:
    """How long an item's bar is, 0 to 1. first: the share of the first item of its list."""
    return min(1.0, share / first) if first > 0 else 0.0
