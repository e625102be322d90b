"""Counting transitions: how often what followed what, at distances up to a window, with the whole history looking back.

    C[i, j] = Σ_k γ(k) · #(j stands k places after i), k ≤ W                    W: here `window`
    score(h, j) = Σ_p κ(p) · log(1 + items · C[h_p, j] / τ) + b · log p(j)      p(j) = (count of j + 1) / (events + items)

Petrov et al., Do Sequential Recommendation Benchmarks Really Require Higher-Order Sequence Modelling?, RecSys 2026 (there: PCTM):
log of (C[i, j] + τ / items) / (C[i, ·] + τ), less what is the same for every j.

With words, what shares rare words with i is worth something, too (`CountingText`; t of engine.models.tfidf, the same κ):

    score(h, j) = Σ_p κ(p) · (log(1 + items · C[h_p, j] / τ) + λ · t(h_p) · t(j)) + b · log p(j)
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from engine.cards import Card, OnPage, Variant
from engine.models.item_to_item import LARGEST, ItemToItem, TrainingLog
from engine.models.tfidf import bytes_of_cosines, cosines, vectors

_AT_A_TIME = 1 << 23
"""Pairs of events that are counted at once."""
_DENSE = 1 << 25
"""Item pairs up to which counts are added up in a table; beyond it, in a sparse matrix."""


@dataclass(frozen=True)
class CountingConfig:
    window: int = 10
    """W: how many places after an item another one still counts as following it."""
    distance_power: float = 0.5
    """γ(k) = k^-distance_power · distance_decay^(k − 1) is what a distance of k places counts."""
    distance_decay: float = 1.0
    """The other factor of γ; 1: none."""
    smoothing: float = 10_000.0
    """τ: how much is added to the counts of an item, spread over the catalogue. Small values flatten the differences between
    counts."""
    recent: int = 0
    """The newest items that share `recent_share` of κ, the rest sharing the remainder evenly; 0: all are recent."""
    recent_share: float = 0.8
    """What the recent items share where there are older ones."""
    decay: float = 0.6
    """What a recent item weighs of what the next newer one does."""
    popularity: float = 0.0
    """b: negative values favour what is rare."""
    max_length: int = 50
    """Latest items read."""
    kept: int = 250
    """Followers kept per item on the average: the largest entries of all items together."""
    coarse: bool = False
    """Round them to at most 256 values, which a bundle keeps in a byte each (docs/models.md says what that costs)."""
    search: bool = False
    """Choose window, distance_power, smoothing, decay, recent and popularity by NDCG@10 on the validation items, one after the
    other."""


class Counting(ItemToItem):
    name = "counting"
    Config: ClassVar[type[Any]] = CountingConfig
    card = Card(
        title="Counting transitions",
        order=72,
        summary="Counts which items come after which, next or some places later, and adds this up over the history, the newest "
        "weighted most. It needs no training and is a strong baseline.",
        paper="Petrov et al., Do Sequential Recommendation Benchmarks Really Require Higher-Order Sequence Modelling?, "
        "RecSys 2026",
        geometry="none",
        reasons={
            "attention": "It weighs items by their age alone; there is nothing it chooses to look at.",
            "neighbours": "It keeps counts of what follows what, not a place for each item.",
            "map": "It keeps counts of what follows what; there is no space to draw.",
        },
        variants=(Variant("counting", "indigo", OnPage(at_once=True)),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "smoothing": (30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0),
        "decay": (0.4, 0.6, 0.7, 0.8, 0.9),
        "recent": (0, 5, 10),
        "window": (3, 10, 20, 50),
        "distance_power": (0.0, 0.5, 1.0),
        "popularity": (-0.4, -0.2, -0.05, 0.0),
    }
    beside = ItemToItem.beside | {"decay", "recent", "recent_share", "popularity"}

    def rounds(self, config: CountingConfig) -> bool:
        return config.coarse

    def bytes_of_log(self, config: CountingConfig, log: TrainingLog) -> int:
        return bytes_of_transitions(log, config.window)

    def instead(self, config: CountingConfig, log: TrainingLog | None) -> str:
        return narrower(config.window, log)

    def relation(self, config: CountingConfig, log: TrainingLog) -> sparse.csr_matrix:
        counts = transitions(log, distances(config))
        counts.data = np.log1p(counts.data * np.float32(log.num_items / config.smoothing))
        return counts

    def positions(self, config: CountingConfig) -> npt.NDArray[np.float32]:
        ages = np.arange(config.max_length)
        kappa = np.zeros((config.max_length, config.max_length))
        for length in ages + 1:
            recent = min(config.recent or length, length)
            kappa[length - 1, :recent] = config.decay ** ages[:recent] / (config.decay ** ages[:recent]).sum()
            if length > recent:
                kappa[length - 1, :recent] *= config.recent_share
                kappa[length - 1, recent:length] = (1 - config.recent_share) / (length - recent)
        return kappa.astype(np.float32)

    def background(self, config: CountingConfig, log: TrainingLog) -> npt.NDArray[np.float32]:
        share = (log.popularity + 1) / (len(log.items) + log.num_items)
        return (config.popularity * np.log(share)).astype(np.float32)


def distances(config: CountingConfig) -> npt.NDArray[np.float32]:
    """γ(1) … γ(W), float32 [window]."""
    k = np.arange(1, config.window + 1, dtype=np.float64)
    return (k**-config.distance_power * config.distance_decay ** (k - 1)).astype(np.float32)


def transitions(log: TrainingLog, gamma: npt.NDArray[np.float32]) -> sparse.csr_matrix:
    """Σ_k γ(k) · #(column k places after row), float32 [items, items]. gamma: γ(1) …, float32."""
    n = log.num_items
    if n * n > _DENSE:
        total = sparse.csr_matrix((n, n), dtype=np.float32)
        for pair, value in _pairs(log, gamma):
            total = total + sparse.csr_matrix((value, (pair // n, pair % n)), (n, n))
        return total
    table = np.zeros(n * n)
    for pair, value in _pairs(log, gamma):
        table += np.bincount(pair, value, n * n)
    return sparse.csr_matrix(table.astype(np.float32).reshape(n, n))


def _pairs(
    log: TrainingLog, gamma: npt.NDArray[np.float32]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Which item stands how many places after which, as numbers before · items + after, and γ of that many; so many at a time."""
    pairs: list[npt.NDArray[np.int64]] = []
    for k in range(1, len(gamma) + 1):
        same = log.users[k:] == log.users[:-k]
        pairs.append(log.items[:-k][same] * log.num_items + log.items[k:][same])
        if k == len(gamma) or sum(map(len, pairs)) >= _AT_A_TIME:
            weights = gamma[k - len(pairs) : k]
            yield np.concatenate(pairs), np.repeat(weights, [len(pair) for pair in pairs])
            pairs = []


def bytes_of_transitions(log: TrainingLog, window: int) -> int:
    """That `transitions` takes at most, and what is made of them: from the lengths of histories alone."""
    reach = np.minimum(window, np.maximum(np.diff(log.offsets) - 1, 0))
    pairs = int((reach * np.diff(log.offsets) - reach * (reach + 1) // 2).sum())
    at_a_time, cells = min(pairs, _AT_A_TIME + len(log.items)), log.num_items**2
    return 72 * at_a_time + (20 * cells if cells <= _DENSE else 0) + 32 * min(pairs, cells)


def narrower(window: int, log: TrainingLog | None) -> str:
    """What to do where counting within a window would take too much, in a sentence."""
    fits = [w for w in range(1, window) if log is not None and bytes_of_transitions(log, w) <= LARGEST]
    if not fits:
        return "Prepare the dataset with a larger --k-core, or take popularity."
    return f"Set model.window to {fits[-1]} or less, or take markov, which counts what comes next alone."


# --- and words


@dataclass(frozen=True)
class CountingTextConfig(CountingConfig):
    text: float = 1.5
    """λ: what a cosine of words is worth beside a count."""
    fields: tuple[str, ...] = ()
    """Attributes whose words are read; empty: all of them."""


class CountingText(Counting):
    name = "counting-text"
    Config: ClassVar[type[Any]] = CountingTextConfig
    needs = ("attributes",)
    card = Card(
        title="Counting and words",
        order=73,
        summary="Counts what came after what, and adds what shares rare words with it, which helps items with few "
        "interactions. It needs no training.",
        paper=f"{Counting.card.paper}; with TF-IDF (Salton & Buckley 1988)",
        geometry="none",
        reasons=Counting.card.reasons,
        variants=(Variant("counting-text", page=OnPage()),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {**Counting.grid, "text": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)}

    @classmethod
    def bytes_needed(cls, config: CountingTextConfig, num_items: int) -> int:
        return bytes_of_cosines(config.kept, num_items)

    def instead(self, config: CountingTextConfig, log: TrainingLog | None) -> str:  # type: ignore[override]
        return "Set model.kept or model.window lower, or take counting, which reads no words."

    def relation(self, config: CountingTextConfig, log: TrainingLog) -> sparse.csr_matrix:  # type: ignore[override]
        return super().relation(config, log) + config.text * self._cosines

    @functools.cached_property
    def _cosines(self) -> sparse.csr_matrix:
        """Of words, which no search changes."""
        return cosines(vectors(self.attributes, self.config.fields), self.config.kept)
