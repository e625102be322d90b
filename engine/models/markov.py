"""First-order Markov chain: what followed the last item most often, and popularity where nothing is known.

Score of i after j: count(j → i) + α · popularity(i) / events. An α below 1 only orders what the counts leave tied.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.base import ItemIndex, Recommender


@dataclass(frozen=True)
class MarkovConfig:
    alpha: float = 0.5
    """Weight of popularity, as a share of one observed transition for the whole catalogue together."""
    successors: int = 256
    """Transitions kept per item, the most frequent first; the rest falls back on popularity."""


class Markov(Recommender):
    name = "markov"
    Config = MarkovConfig
    objective = "counts"
    card = Card(
        title="Markov chain",
        order=80,
        summary="Counts what came right after the last item and recommends the most frequent; popularity breaks ties. "
        "It sees one item back, so whatever beats it uses more of the history.",
        paper="First-order Markov chain over items; the unfactorised form of FMC (Rendle et al., FPMC, WWW 2010)",
        geometry="none",
        reasons={
            "attention": "A Markov chain looks at the last item alone; there are no weights to show.",
            "neighbours": "A Markov chain keeps counts of what follows what, not a place for each item.",
            "map": "A Markov chain keeps counts of what follows what; there is no space to draw.",
        },
        variants=(Variant("markov", "orange", OnPage(chosen=True, at_once=True)),),
    )

    def __init__(self, config: MarkovConfig, num_items: int, num_users: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, 1
        width = min(config.successors, num_items)
        # one more row, for padding: no successors
        self.next_items = nn.Buffer(torch.zeros(num_items + 1, width, dtype=torch.int32))
        self.next_counts = nn.Buffer(torch.zeros(num_items + 1, width))
        self.backoff = nn.Buffer(torch.zeros(num_items))

    def fit(self, items: Tensor, offsets: Tensor) -> None:
        """items: int64 [events], the training log; offsets: int64 [users + 1]"""
        n = self.num_items
        self.next_items.zero_()
        self.next_counts.zero_()
        follows = torch.ones(len(items), dtype=torch.bool)
        starts = offsets[:-1]
        follows[starts[starts < len(items)]] = False  # an event that opens a sequence follows nothing
        after = follows.nonzero().squeeze(1)
        pairs, counts = torch.unique(items[after - 1] * n + items[after], return_counts=True)
        order = torch.argsort(counts, descending=True, stable=True)
        pairs, counts = pairs[order], counts[order]
        order = torch.argsort(pairs // n, stable=True)  # by item, most frequent successor first
        pairs, counts = pairs[order], counts[order]
        before = pairs // n
        first = torch.searchsorted(before, torch.arange(n))
        place = torch.arange(len(pairs)) - first[before]
        kept = place < self.next_items.shape[1]
        self.next_items[before[kept], place[kept]] = (pairs[kept] % n).int()
        self.next_counts[before[kept], place[kept]] = counts[kept].float()
        popularity = torch.bincount(items, minlength=n).float()
        self.backoff.copy_(self.config.alpha * popularity / popularity.sum().clamp(min=1))

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        last = items[:, -1]
        empty = torch.zeros(items.shape[0], self.num_items, device=items.device)
        # unused places point at item 0 with count 0, so adding them changes nothing
        return empty.scatter_add(1, self.next_items[last].long(), self.next_counts[last])

    def index(self) -> ItemIndex:
        return ItemIndex(None, self.backoff)
