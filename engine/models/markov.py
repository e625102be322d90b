"""First-order Markov chain: what followed the last item most often, and popularity where nothing is known.

Score of i after j: count(j → i) + α · popularity(i) / events. An α below 1 only orders what the counts leave tied.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from engine.cards import Card, OnPage, Variant
from engine.models.counting import bytes_of_transitions, narrower, transitions
from engine.models.item_to_item import ItemToItem, TrainingLog, strongest


@dataclass(frozen=True)
class MarkovConfig:
    alpha: float = 0.5
    """Weight of popularity, as a share of one observed transition for the whole catalogue together."""
    successors: int = 256
    """Transitions kept per item, the most frequent first; the rest falls back on popularity."""


class Markov(ItemToItem):
    name = "markov"
    Config = MarkovConfig
    card = Card(
        title="Markov chain",
        order=80,
        summary="Counts what came right after the last item and recommends the most frequent; popularity breaks ties. "
        "It reads only the last item of the history.",
        paper="First-order Markov chain over items; the unfactorised form of FMC (Rendle et al., FPMC, WWW 2010)",
        geometry="none",
        reasons={
            "attention": "A Markov chain looks at the last item alone; there are no weights to show.",
            "neighbours": "A Markov chain keeps counts of what follows what, not a place for each item.",
            "map": "A Markov chain keeps counts of what follows what; there is no space to draw.",
        },
        variants=(Variant("markov", "orange", OnPage(at_once=True)),),
    )

    @classmethod
    def bounds(cls, config: MarkovConfig) -> tuple[int, int]:
        return 1, config.successors

    def bytes_of_log(self, config: MarkovConfig, log: TrainingLog) -> int:
        return bytes_of_transitions(log, 1)

    def instead(self, config: MarkovConfig, log: TrainingLog | None) -> str:
        return narrower(1, log)

    def relation(self, config: MarkovConfig, log: TrainingLog) -> sparse.csr_matrix:
        return strongest(transitions(log, np.ones(1, np.float32)), config.successors)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Runs of before keep the counts of so many successors of each item side by side."""
        if prefix + "next_items" in state:
            items, counts = (state.pop(prefix + name).numpy() for name in ("next_items", "next_counts"))
            row = np.repeat(np.arange(len(items)), items.shape[1])
            shape = (len(items), self.num_items)
            self.keep(sparse.csr_matrix((counts.ravel(), (row, items.ravel())), shape)[:-1], self.config.successors)
            state |= {prefix + name: getattr(self, name) for name in ("starts", "entries", "weights")}
            state |= {prefix + "position_weights": torch.ones(1, 1), prefix + "prior": state.pop(prefix + "backoff")}
        super()._load_from_state_dict(state, prefix, *rest)

    def background(self, config: MarkovConfig, log: TrainingLog) -> npt.NDArray[np.float32]:
        return (config.alpha * log.popularity / max(len(log.items), 1)).astype(np.float32)
