"""The items of several models' lists as one table: the rank of each item in each model, whether its list has it or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.analysis import beam_search, recommend
from engine.runtime import Zoo

Ranks = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankTable:
    """Rows are items, by mean rank; columns are the models that could answer."""

    answers: list[recommend.Answer]
    items: list[int]
    ranks: Ranks
    """float64 [items, models], 1 is best, ties at their mean; NaN where only the list of a generative model is known, and the
    item is not in it."""
    before: Ranks | None
    """The same after the pinned history; None where there is none."""
    mean: Ranks
    """float64 [items]: over the models, where a rank beyond k counts as k + 1, so that one model that has an item in the
    thousandth place does not outweigh all others (Fagin, Kumar, Sivakumar 2003, the location parameter of top-k lists)."""


def of(
    models: Zoo,
    answers: Sequence[recommend.Answer],
    history: tuple[int, ...],
    k: int,
    *,
    pinned: tuple[int, ...] | None = None,
    target: int | None = None,
) -> RankTable:
    """answers: after `history`, lists of k. pinned: the history before an edit. target: what truly came next."""
    able = [answer for answer in answers if answer.top is not None]
    lists = [answer.items for answer in able] + ([] if target is None else [[target]])
    items = list(dict.fromkeys(item for items in lists for item in items))
    ranks = np.full((len(items), len(able)), np.nan)
    before = None if pinned is None else ranks.copy()
    for column, answer in enumerate(able):
        ranks[:, column] = _ranks(models, answer.name, answer.top, history, items)
        if before is not None and pinned is not None and answer.before is not None:
            before[:, column] = _ranks(models, answer.name, answer.before, pinned, items)
    mean = np.minimum(np.nan_to_num(ranks, nan=np.inf), k + 1).mean(axis=1) if able else np.zeros(0)
    order = np.argsort(mean, kind="stable")
    return RankTable(
        able, [items[row] for row in order], ranks[order], None if before is None else before[order], mean[order]
    )


def _ranks(
    models: Zoo, name: str, best: recommend.TopK | None, history: tuple[int, ...], items: Sequence[int]
) -> Ranks:
    """Of each item after the history. best: the model's list, all that is known where others take long."""
    if not beam_search.slow(models, name, 1):
        return np.array(recommend.ranks(models, name, history, tuple(items)))
    listed = [None if best is None else recommend.rank_listed(best, item) for item in items]
    return np.array([np.nan if rank is None else rank for rank in listed])
