"""Popularity: what most people took, whoever asks. The floor under every other figure.

Recent popularity counts in a window, a share of the training events, the latest by time: score(j) = how many of these are of j.

Ji, Sun, Zhang & Li, A Re-visit of the Popularity Baseline in Recommender Systems, SIGIR 2020 (there: RecentPop, with a window
before each moment that is asked for). Here the window ends where the training log does, so that there is one list.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, Recommender
from engine.models.item_to_item import search


@dataclass(frozen=True)
class PopularityConfig:
    """Popularity has no settings."""


class Popularity(Recommender):
    name = "popularity"
    Config: ClassVar[type[Any]] = PopularityConfig
    objective = "counts"
    kind = "counting"
    card = Card(
        title="Popularity",
        order=90,
        summary="Recommends the items with the most interactions in training, the same list for everybody. "
        "Every personalised model should beat it.",
        paper="The usual baseline; counts of the training log",
        geometry="none",
        reasons={
            "reads_order": "Popularity does not read the history.",
            "attention": "Popularity does not read the history, so it attends to nothing.",
            "neighbours": "Popularity is one number per item: there are no item vectors to compare.",
            "map": "Popularity is one number per item: there is no space to draw.",
        },
        variants=(Variant("popularity", "grey", OnPage(at_once=True)),),
    )
    exports = ("constant", "vectors")
    min_history = 0
    reads_order = False

    def __init__(self, config: Any, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, 1
        self.counts = nn.Buffer(torch.zeros(num_items))

    def fit(self, items: Tensor, offsets: Tensor) -> Any:
        """items: int64 [events], the training log; offsets: int64 [users + 1]"""
        self.counts.copy_(torch.bincount(items, minlength=self.num_items).float())

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return (items[:, :1] * 0).float()

    def index(self) -> ItemIndex:
        return ItemIndex(self.counts.new_zeros(self.num_items, 1), self.counts)


# --- in a recent window


@dataclass(frozen=True)
class RecentPopularityConfig:
    latest: float = 0.1
    """Share of the training events that count, the latest ones; with those of the same moment as the first of them."""
    search: bool = False
    """Choose latest by NDCG@10 on the validation items."""


class RecentPopularity(Popularity):
    name = "recent-popularity"
    Config: ClassVar[type[Any]] = RecentPopularityConfig
    needs = ("times",)
    where_no_times = "take popularity, which counts all events"
    card = Card(
        title="Recent popularity",
        order=79,
        summary="Recommends the items with the most interactions lately, the same list for everybody. Where it is far above "
        "popularity, trends change quickly.",
        paper="Ji, Sun, Zhang & Li, A Re-visit of the Popularity Baseline in Recommender Systems, SIGIR 2020",
        geometry="none",
        reasons=Popularity.card.reasons,
        variants=(Variant("recent-popularity", page=OnPage()),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {"latest": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)}

    def __init__(
        self,
        config: RecentPopularityConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        times: npt.NDArray[np.int64],
    ) -> None:
        """times: int64 [training events], in the order of the log that `fit` is given."""
        super().__init__(config, num_items, num_users, generator)
        self.times = times
        self.chosen: dict[str, Any] = {}
        """Settings that the search chose."""

    def fit(self, items: Tensor, offsets: Tensor, judge: Callable[[], float] | None = None) -> list[dict[str, Any]]:
        """As `Popularity.fit`; judge and what is returned as of `ItemToItem.fit`."""

        def take(config: RecentPopularityConfig) -> None:
            events = max(1, round(config.latest * len(items)))
            begin = np.partition(self.times, len(items) - events)[len(items) - events] if len(items) else 0
            Popularity.fit(self, items[torch.from_numpy(self.times >= begin)], offsets)

        best, tried = search(self.config, self.grid, take, judge)
        self.chosen = {name: getattr(best, name) for name in self.grid} if tried else {}
        take(best)
        return tried
