"""The users with a held-out item: its rank in every model, who is listed of them, and users with similar histories.

Rows are those of `Zoo.users`. A rank of the held-out item is of the main protocol; where a user has several
held-out items, the best of their ranks.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from app import examples
from app.analysis import evaluation, floor, metrics
from app.analysis.cache import cached, of_content
from app.limits import DEFAULT_K
from engine.runtime import Zoo, judge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pair = tuple[str, str]
"""Two models that are compared, by name."""

HITS = ("both", "first", "second", "neither")
"""Which of two models have the held-out item in their top k: both, the first alone, the second alone, neither."""
SORTS = ("user", "length", "difference")
RANK = "rank."
"""What an order by a model's ranks begins with; the model's name follows."""
NEAREST = 8
"""Users with similar histories that are shown."""
_AT = judge.key(judge.HEADLINE, 10)
_POINTS = 80  # of a curve


@dataclass(frozen=True)
class UserTable:
    """Arrays over the users."""

    models: tuple[str, ...]
    """Those that were evaluated, in the zoo's order."""
    ranks: Floats
    """[models, users], from 1; infinite beyond the beam, NaN where the model was not evaluated on the user."""
    widths: tuple[int | None, ...]
    """Of that beam, per model; None where all candidates were scored."""
    length: Ints
    """[users]: items of the history."""

    def of(self, model: str) -> Floats:
        """[users]: the ranks of one model."""
        ranks: Floats = self.ranks[self.models.index(model)]
        return ranks

    def width(self, model: str) -> int | None:
        return self.widths[self.models.index(model)]


@cached(8, by=of_content)
def table(models: Zoo) -> UserTable:
    protocol = next(iter(evaluation.protocols(models)), "")
    tables = {name: bundle.ranks_table() for name, bundle in models.bundles.items()}
    measured = {name: bundle.manifest.metrics for name, bundle in models.bundles.items()}
    evaluated = metrics.ranked(tables, measured, protocol) if protocol else {}
    names = tuple(name for name in models.bundles if name in evaluated)
    users = models.users["user"].to_numpy()
    ranks = [_by_user(evaluated[name], users) for name in names]
    length = pc.list_value_length(models.users["history"]).to_numpy().astype(np.int64)
    widths = tuple(evaluated[name].width for name in names)
    return UserTable(names, np.array(ranks).reshape(len(names), len(users)), widths, length)


def _by_user(ranks: judge.Ranks, users: npt.NDArray[np.integer]) -> Floats:
    order = np.argsort(users)
    places = np.minimum(np.searchsorted(users, ranks.user, sorter=order), max(len(users) - 1, 0))
    by_user = np.full(len(users), np.nan)
    if len(users):
        known = users[order[places]] == ranks.user
        np.fmin.at(by_user, order[places[known]], ranks.rank[known])
    by_user[by_user > (ranks.width or np.inf)] = np.inf
    return by_user


@cached(8, by=of_content)
def usual_pair(models: Zoo) -> Pair | None:
    """The two models that are compared until somebody chooses: the best that is trained and the best that needs no training, by
    NDCG@10; None where fewer than two were evaluated."""
    users = table(models)
    means = {name: float(np.nanmean(ndcg(users, name))) for name in users.models if not np.isnan(users.of(name)).all()}
    if len(means) < 2:
        return None
    best_first = sorted(means, key=lambda name: -means[name])
    trained = floor.learned(best_first, evaluation.families(models, best_first))
    counting = [name for name in best_first if name not in trained]
    first, second, *_ = [*trained[:1], *counting[:1], *trained[1:], *counting[1:]]
    return first, second


def ndcg(users: UserTable, model: str) -> Floats:
    """[users]: NDCG@10, NaN where the model was not evaluated on the user."""
    ranks = users.of(model)
    return np.where(np.isnan(ranks), np.nan, judge.per_user(_AT, ranks))


# --- who is shown


@dataclass(frozen=True)
class UserFilter:
    """Which users are listed, and in which order."""

    text: str = ""
    """Part of their names, in any case."""
    least: int = 0
    """Items of their histories."""
    most: int | None = None
    pair: Pair | None = None
    hits: str = ""
    """One of `HITS`, of `pair` at k; "": all users."""
    k: int = DEFAULT_K
    sort: str = SORTS[0]
    """One of SORTS, or RANK and a model."""
    falling: bool = False


def hits(users: UserTable, pair: Pair, k: int) -> dict[str, Bools]:
    """Entry of HITS → [users]: whether they are of it. Of none are users on whom one of the models was not evaluated, and, where
    k is beyond its beam, those whose held-out item is, too: its rank is not known."""
    first, second = (users.of(model) <= k for model in pair)
    known = np.ones(len(users.length), bool)
    for model in pair:
        ranks, width = users.of(model), users.width(model)
        known &= ~np.isnan(ranks) if width is None or k <= width else np.isfinite(ranks)
    parts = (first & second, first & ~second, ~first & second, ~first & ~second)
    return {name: part & known for name, part in zip(HITS, parts, strict=True)}


def difference(users: UserTable, pair: Pair) -> Floats:
    """[users]: log2 of the second model's rank over the first's, so that from 1 to 10 weighs as much as from 10 to 100; positive
    where the first ranks the held-out item higher. A rank beyond a beam counts as the next place, and where the other model's is
    further down, as well as it: nobody knows which is better."""
    ranks = np.array([users.of(model) for model in pair])
    widths = [width for width in map(users.width, pair) if width is not None]
    beyond = np.isinf(ranks).any(0)
    ours, theirs = np.where(beyond, np.minimum(ranks, min(widths, default=math.inf) + 1), ranks)
    ratio: Floats = np.log2(theirs / ours)
    return ratio


def filtered(models: Zoo, selection: UserFilter) -> Bools:
    """[users]: whether they are shown, whatever `hits` is."""
    users = table(models)
    shown: Bools = users.length >= selection.least
    if selection.most is not None:
        shown &= users.length <= selection.most
    if selection.text:
        text = selection.text.casefold()
        shown &= np.fromiter((text in name for name in _names(models)), bool, len(shown))
    return shown


def rows(models: Zoo, selection: UserFilter) -> Ints:
    """The rows of those who are shown, in their order; whoever is meant by the very text comes first."""
    users, shown = table(models), filtered(models, selection)
    if selection.hits and selection.pair is not None:
        shown &= hits(users, selection.pair, selection.k)[selection.hits]
    chosen = np.flatnonzero(shown)
    values = _values(users, selection)[chosen]
    chosen = chosen[np.argsort(-values if selection.falling else values, kind="stable")]  # NaN comes last both ways
    meant = examples.user_row(models, examples.find_user(models, selection.text)) if selection.text else None
    if meant is not None and shown[meant]:
        chosen = np.concatenate([[meant], chosen[chosen != meant]])
    return chosen.astype(np.int64)


def _values(users: UserTable, selection: UserFilter) -> Floats:
    if selection.sort == "length":
        return users.length.astype(np.float64)
    if selection.sort == "difference" and selection.pair is not None:
        return np.abs(difference(users, selection.pair))
    model = selection.sort.removeprefix(RANK)
    return users.of(model) if model in users.models else np.arange(len(users.length), dtype=np.float64)


@cached(8, by=of_content)
def _names(models: Zoo) -> list[str]:
    return [user_id.casefold() for user_id in models.users["user_id"].to_pylist()]


# --- ranks as distributions


def curve(ranks: Floats, width: int | None, items: int) -> tuple[Ints, Floats]:
    """(ranks, the share of users whose held-out item is among so many first): the empirical distribution function, at some
    ranks from 1 to the catalogue's size or the beam's width. ranks: of the users; those that are NaN are left out."""
    known = np.sort(ranks[~np.isnan(ranks)])
    at = np.unique(np.geomspace(1, max(width or items, 1), _POINTS).round().astype(np.int64))
    return at, np.searchsorted(known, at, side="right") / max(len(known), 1)


def summary(users: UserTable, shown: Ints, names: tuple[str, ...], cutoffs: tuple[int, ...]) -> pd.DataFrame:
    """model, users, a column per cut-off with the share of users whose held-out item is among so many first, median rank. NaN
    beyond a beam."""
    entries = []
    for name in names:
        ranks, width = users.of(name)[shown], users.width(name)
        ranks = ranks[~np.isnan(ranks)]
        if not len(ranks):
            continue
        shares = [math.nan if width is not None and k > width else float((ranks <= k).mean()) for k in cutoffs]
        median = float(np.median(ranks))
        entries.append((name, len(ranks), *shares, median if math.isfinite(median) else math.nan))
    return pd.DataFrame(entries, columns=["model", "users", *(f"HR@{k}" for k in cutoffs), "median rank"])


# --- users like one


@dataclass(frozen=True)
class Similar:
    """Users by the Jaccard similarity of their histories as sets, the most similar first."""

    rows: Ints
    similarity: Floats
    """Items that both histories have, as a share of those that either has."""
    shared: Ints
    """Items that both have."""
    have_target: int
    """How many of them have the held-out item of this user in their histories."""


@cached(500, by=of_content)
def similar(models: Zoo, row: int) -> Similar:
    """Of one user: NEAREST others at most, none that shares no item. Held-out items do not count."""
    items, starts = _distinct(models)
    sizes = np.diff(starts)
    member = np.zeros(len(models), bool)
    member[items[starts[row] : starts[row + 1]]] = True
    shared = _per_user(member[items], starts)
    similarity = shared / np.maximum(sizes + sizes[row] - shared, 1)
    similarity[row] = 0
    nearest = np.argsort(-similarity, kind="stable")[:NEAREST]
    nearest = nearest[similarity[nearest] > 0]
    target = models.next_item(row)
    having = _per_user(items == target, starts)[nearest] if target is not None else np.zeros(0)
    return Similar(nearest, similarity[nearest], shared[nearest], int(np.count_nonzero(having)))


def _per_user(mask: Bools, starts: Ints) -> Ints:
    """[users]: how many of their distinct items the mask has."""
    sums = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    counts: Ints = sums[starts[1:]] - sums[starts[:-1]]
    return counts


@cached(2, by=of_content)
def _distinct(models: Zoo) -> tuple[Ints, Ints]:
    """(each user's items, none twice, one user after the other; where each user's begin, int64 [users + 1])"""
    history = models.users["history"].combine_chunks()
    users, events = pc.list_parent_indices(history).to_numpy(), history.flatten().to_numpy()
    pairs = np.unique(users.astype(np.int64) << 32 | events)
    return pairs & 0xFFFFFFFF, np.searchsorted(pairs >> 32, np.arange(len(history) + 1))


def as_frame(models: Zoo, rows_: Ints) -> pd.DataFrame:
    """user, items, held-out item (by item_id; none where there are several) and each model's rank of it."""
    users = table(models)
    targets = [models.next_item(row) for row in rows_.tolist()]
    frame = pd.DataFrame(
        {
            "user": models.users["user_id"].take(rows_).to_pylist(),
            "items": users.length[rows_],
            "held-out item": ["" if item is None else models.item_ids[item] for item in targets],
        }
    )
    for name in users.models:
        frame[f"rank.{name}"] = np.where(np.isinf(users.of(name)), np.nan, users.of(name))[rows_]
    return frame
