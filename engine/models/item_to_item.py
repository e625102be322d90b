"""Models whose score is a sum over the history of what each of its items says of another: item-to-item weights, and no gradient.

    score(h, j) = Σ_p κ(p) · W[h_p, j] + prior[j]

h_p is the item p places before the newest (p = 0), κ(p) what that place counts, W an item × item matrix of which the largest
entries are kept, as half floats. So whatever such a model recommends is explained exactly:
κ(p) · W[h_p, j] is what the p-th event gave to item j, and with the prior of j these add up to the score.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor, nn

from engine.cards import Kind
from engine.models.base import ItemIndex, Recommender

LARGEST = 4 << 30
"""Bytes that fitting may take; more is refused before any work."""
LEVELS = 1 << 8
"""Different weights of which a byte says which."""
NO_PROBABILITY = "Its scores are sums of weights that put items in order; they are no probabilities."

Attributes = Sequence[Sequence[tuple[str, str]]]
"""Of every item key and value of each attribute that it has, as engine.text.attributes has them."""


class TrainingLog:
    """What these models are fitted on. items: int64 [events]; offsets: int64 [users + 1], where each user's events begin."""

    def __init__(self, items: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], num_items: int) -> None:
        self.items, self.offsets, self.num_items = items, offsets, num_items
        self.users: npt.NDArray[np.int64] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))

    @property
    def popularity(self) -> npt.NDArray[np.int64]:
        """Events of every item, int64 [items]."""
        return np.bincount(self.items, minlength=self.num_items)

    @functools.cached_property
    def sets(self) -> sparse.csr_matrix:
        """Who took what, however often: float32 [users, items] of ones."""
        pairs = np.unique(self.users * self.num_items + self.items)
        ones = np.ones(len(pairs), np.float32)
        shape = (len(self.offsets) - 1, self.num_items)
        return sparse.csr_matrix((ones, (pairs // self.num_items, pairs % self.num_items)), shape)


def strongest(relation: sparse.csr_matrix, most: int) -> sparse.csr_matrix:
    """The `most` entries of largest size of every row, of equal ones those of the smaller columns."""
    relation = relation.tocsr()
    relation.sum_duplicates()  # and each row by item
    lengths = np.diff(relation.indptr)
    row = np.repeat(np.arange(len(lengths)), lengths)
    size = np.abs(relation.data).astype(np.float32).view(np.int32)  # bits of what is not negative ascend as it does
    order = np.argsort(row * (1 << 32) - size, kind="stable")
    place = np.empty(len(row), np.int64)
    place[order] = np.arange(len(row)) - relation.indptr[row[order]]
    taken = place < most
    parts = (relation.data[taken], (row[taken], relation.indices[taken]))
    return sparse.csr_matrix(parts, relation.shape)


def coarse(weights: npt.NDArray[np.float16]) -> npt.NDArray[np.float16]:
    """Weights rounded to at most `LEVELS` values: without as many of their last bits as that takes, which is none where they have
    no more values. So errors are in proportion to weights, whose order and signs stay."""
    bits = weights.view(np.uint16)
    size, sign = bits & 0x7FFF, bits & 0x8000
    for dropped in range(11):  # all of the mantissa leaves 32 exponents, of either sign
        half, largest = (1 << dropped) >> 1, 0x7C00 - (1 << dropped)
        rounded = np.minimum((size + np.uint16(half)) >> dropped << dropped, largest).astype(np.uint16) | sign
        if np.count_nonzero(np.bincount(rounded)) <= LEVELS:
            break
    return rounded.view(np.float16)


def search(
    config: Any,
    grid: Mapping[str, Sequence[Any]],
    take: Callable[[Any], None],
    judge: Callable[[], float] | None,
    able: Callable[[Any], bool] = lambda config: True,
) -> tuple[Any, list[dict[str, Any]]]:
    """The configuration that is best on validation, one setting of `grid` after the other with the others at their best, and what
    was tried: settings and "valid_ndcg". The configuration as it is where it asks for no search, or nothing judges.

    take: fits the model with a configuration; judge: NDCG@10 of the model as it stands; able: whether a configuration can be
    fitted, others are not tried."""
    tried: list[dict[str, Any]] = []
    if judge is None or not grid or not config.search:
        return config, tried
    best, reached = config, -1.0
    for setting, values in grid.items():
        start = best
        for value in dict.fromkeys((getattr(start, setting), *values)):
            if tried and value == getattr(start, setting):
                continue  # measured before
            candidate = dataclasses.replace(start, **{setting: value})
            if not able(candidate):
                continue
            take(candidate)
            score = judge()
            tried.append({name: getattr(candidate, name) for name in grid} | {"valid_ndcg": score})
            if score > reached:
                best, reached = candidate, score
    return best, tried


def within_half(largest: float) -> float:
    """A power of two, at most 1, that brings a weight well below the largest number of float16 (65,504). W and the prior times it
    give the same order, and the same shares of a sum."""
    return 2.0 ** min(0, 15 - math.ceil(math.log2(max(largest, 1.0))))


def decaying(max_length: int, decay: float) -> npt.NDArray[np.float32]:
    """κ that falls by `decay` from one item to the next older one and sums to 1: float32 [max_length, max_length]."""
    kappa = np.tril(np.broadcast_to(decay ** np.arange(max_length, dtype=np.float64), (max_length, max_length)))
    return (kappa / kappa.sum(1, keepdims=True)).astype(np.float32)


class ItemToItem(Recommender):
    """A subclass says what W is, and where they differ from one item read and no prior, κ and the prior.

    Attributes:
        grid: settings with the values that a search on validation tries, one setting after the other, the others at their best.
        beside: settings that W does not depend on, so that a search makes it once for all of their values.
    """

    objective = "counts"
    kind: ClassVar[Kind] = "counting"
    exports = ("item-to-item",)
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    beside: ClassVar[frozenset[str]] = frozenset({"max_length", "search"})

    starts: Tensor
    entries: Tensor
    weights: Tensor
    position_weights: Tensor
    prior: Tensor

    def __init__(
        self, config: Any, num_items: int, num_users: int, generator: torch.Generator, attributes: Attributes = ()
    ) -> None:
        """attributes: of those models that need them."""
        super().__init__()
        self.attributes = attributes
        self.config, self.num_items, self.max_length = config, num_items, self.bounds(config)[0]
        self.chosen: dict[str, Any] = {}
        """Settings that the search chose."""
        self.check_bytes(config)
        number = torch.int16 if num_items <= np.iinfo(np.int16).max else torch.int32
        # W by rows: those of item i are starts[i] … starts[i + 1] − 1; the last row is padding, and empty
        self.starts = nn.Buffer(torch.zeros(num_items + 2, dtype=torch.int64))
        self.entries = nn.Buffer(torch.zeros(0, dtype=number))
        self.weights = nn.Buffer(torch.zeros(0, dtype=torch.float16))
        self.position_weights = nn.Buffer(torch.zeros_like(torch.from_numpy(self.positions(config))))
        self.prior = nn.Buffer(torch.zeros(num_items))

    # --- what a subclass says

    @classmethod
    def bounds(cls, config: Any) -> tuple[int, int]:
        """(latest items read, entries of W kept per item on the average)"""
        return config.max_length, config.kept

    @classmethod
    def bytes_needed(cls, config: Any, num_items: int) -> int:
        """That fitting takes at most, whatever the log."""
        return 0

    def bytes_of_log(self, config: Any, log: TrainingLog) -> int:
        """That fitting to this log takes at most besides, counted from the lengths of its histories."""
        return 0

    def instead(self, config: Any, log: TrainingLog | None) -> str:
        """What to do where fitting would take too much, in a sentence. log: None where it would be too much with any."""
        return "Prepare the dataset with a larger --k-core."

    def relation(self, config: Any, log: TrainingLog) -> sparse.csr_matrix:
        """W before anything of it is dropped, float32 [items, items]."""
        raise TypeError(f"{type(self).__name__} defines no relation")

    def positions(self, config: Any) -> npt.NDArray[np.float32]:
        """κ for histories of 1 … max_length items, newest first: float32 [max_length, max_length], row l − 1 with l entries.
        Where no order is read: of one item, which every other counts as, however often it is there."""
        return np.ones((1, 1), np.float32)

    def background(self, config: Any, log: TrainingLog) -> npt.NDArray[np.float32]:
        """prior: float32 [items]."""
        return np.zeros(self.num_items, np.float32)

    # --- fitting

    def check_bytes(self, config: Any, log: TrainingLog | None = None) -> None:
        """Raises ValueError where fitting would take more than `LARGEST` bytes; log: None before there is one."""
        needed = self.bytes_needed(config, self.num_items) + (0 if log is None else self.bytes_of_log(config, log))
        if needed > LARGEST:
            events = "" if log is None else f" and {len(log.items):,} events"
            raise ValueError(
                f"{self.card.title} of {self.num_items:,} items{events} would take {needed / 1e9:,.1f} of "
                f"{LARGEST / 1e9:.1f} GB. {self.instead(config, log)}"
            )

    def rounds(self, config: Any) -> bool:
        """Whether weights are `coarse`."""
        return False

    def _able(self, config: Any, log: TrainingLog) -> bool:
        try:
            self.check_bytes(config, log)
        except ValueError:
            return False
        return True

    def fit(self, items: Tensor, offsets: Tensor, judge: Callable[[], float] | None = None) -> list[dict[str, Any]]:
        """items: int64 [events], the training log; offsets: int64 [users + 1]. judge: NDCG@10 of the model as it stands on
        validation items, by which settings of `grid` are chosen where the configuration has `search`; those that would take too
        much memory are not tried. Returns what was tried: settings and "valid_ndcg". Raises ValueError before any work where
        the configuration itself would take too much."""
        log = TrainingLog(items.numpy(), offsets.numpy(), self.num_items)
        if "attributes" in self.needs and not any(self.attributes):
            raise ValueError(
                "no item has words to compare with those of others; take counting or item-knn, which read none"
            )
        self.check_bytes(self.config, log)
        self._related: dict[str, Any] = {}
        best, tried = search(
            self.config,
            self.grid,
            lambda config: self._take(config, log),
            judge,
            lambda config: self._able(config, log),
        )
        self.chosen = {name: getattr(best, name) for name in self.grid} if tried else {}
        self._take(best, log)
        return tried

    def _take(self, config: Any, log: TrainingLog) -> None:
        self.max_length, most = self.bounds(config)
        settings = {name: value for name, value in vars(config).items() if name not in self.beside}
        if settings != self._related:
            relation = self.relation(config, log)
            self._scale = within_half(float(np.abs(relation.data).max(initial=0.0)))
            self.keep(relation * self._scale if self._scale < 1 else relation, most, self.rounds(config))
            self._related = settings
        self.position_weights = torch.from_numpy(self.positions(config))
        self.prior = torch.from_numpy((self._scale * self.background(config, log)).astype(np.float32))

    def keep(self, relation: sparse.csr_matrix, kept: int, rounded: bool = False) -> None:
        """Takes the kept · items entries of largest size, of equal ones as many of every row, by item; rounded: `coarse`. Not so
        many of every row in all: those of a popular item are many and all of them matter."""
        relation.sum_duplicates()  # and each row by item
        row = np.repeat(np.arange(self.num_items), np.diff(relation.indptr))
        columns, values = relation.indices, relation.data.astype(np.float16)
        size, most = np.abs(values), kept * self.num_items
        taken = size > 0
        if np.count_nonzero(taken) > most:
            least = np.partition(size, len(size) - most)[len(size) - most]
            taken = size > least
            tied = np.flatnonzero(size == least)
            before = np.arange(len(tied)) - np.searchsorted(row[tied], row[tied])  # of the same row
            taken[tied[np.argsort(before, kind="stable")][: most - np.count_nonzero(taken)]] = True
        row, columns, values = row[taken], columns[taken], values[taken]
        self.starts = torch.from_numpy(np.searchsorted(row, np.arange(self.num_items + 2)))
        self.entries = torch.from_numpy(columns).to(self.entries.dtype)
        self.weights = torch.from_numpy(coarse(values) if rounded else values)

    # --- answering

    def counted(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """The items of histories and what each counts, κ: int64 and float32 [batch, length]."""
        items = items[:, -self.max_length :]
        if self.reads_order:
            real = items != self.pad
            age = torch.arange(items.shape[1] - 1, -1, -1, device=items.device)
            return items, self.position_weights[(real.sum(1, keepdim=True) - 1).clamp(min=0), age] * real
        items = items.sort(1).values  # sums do not depend on an order that means nothing
        before = torch.cat([items.new_full((len(items), 1), -1), items[:, :-1]], 1)
        return items, ((items != before) & (items != self.pad)).float()

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        items, counts = self.counted(items)
        place = np.arange(0, items.numel() + 1, items.shape[1])
        histories = sparse.csr_matrix(
            (counts.flatten().numpy(), items.flatten().numpy(), place), (len(items), self.num_items + 1)
        )
        parts = (self.weights.float().numpy(), self.entries.numpy(), self.starts.numpy())
        weights = sparse.csr_matrix(parts, (self.num_items + 1, self.num_items))  # W with a row of padding, float32
        return torch.from_numpy((histories @ weights).toarray()).to(items.device)

    def index(self) -> ItemIndex:
        return ItemIndex(None, self.prior)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """How many entries W has depends on the log: a stored one is taken with those it has."""
        for name in ("entries", "weights"):
            stored = state.get(prefix + name)
            if stored is not None and stored.ndim == 1:
                setattr(self, name, torch.zeros_like(stored))
        super()._load_from_state_dict(state, prefix, *rest)
