"""Sequential rules: what came within a few places after what, counted with a weight per distance, asked from the newest items.

    R[i, j] = Σ_d g(d) · #(j stands d places after i), d ≤ window          score(h, j) = Σ_p v(p + 1) · R[h_p, j]

g and v are 1/d, 1/d² or 1/log10(d + 1.7), v(1) = 1. A row may be weighed by the rarity of its item (inverse document frequency,
scaled to 0 … 1 over the catalogue) and keeps its strongest rules.

Kamehkhosh, Jannach & Ludewig, A Comparison of Frequent Pattern Techniques and a Deep Learning Method for Session-Based
Recommendation, RecSys workshop 2017; over a history's latest items as in Petrov et al., RecSys 2026.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from engine.cards import Card, OnPage, Variant
from engine.models.counting import bytes_of_transitions, narrower, transitions
from engine.models.item_to_item import NO_PROBABILITY, ItemToItem, TrainingLog, strongest

Fall = Literal["inverse", "quadratic", "logarithmic"]
"""How a weight falls with the distance d."""


@dataclass(frozen=True)
class SequentialRulesConfig:
    window: int = 10
    """How many places after an item another one still makes a rule."""
    distance: Fall = "inverse"
    """g: what a rule counts by its distance."""
    rarity: bool = False
    """Rules of rare items count more."""
    rules: int = 100
    """Strongest rules kept of an item; 0: all."""
    age: Fall = "quadratic"
    """v: what an item of the history counts by its age."""
    max_length: int = 10
    """Latest items read."""
    kept: int = 250
    """Rules kept per item on the average: the strongest of all items together."""
    search: bool = False
    """Choose all of the above but `kept` by NDCG@10 on the validation items, one after the other."""


class SequentialRules(ItemToItem):
    name = "sequential-rules"
    Config = SequentialRulesConfig
    card = Card(
        title="Sequential rules",
        order=74,
        summary="Counts what came within a few places after what, nearer ones for more, and adds up the rules of the latest "
        "items. It has nothing to learn.",
        paper="Kamehkhosh, Jannach & Ludewig, A Comparison of Frequent Pattern Techniques and a Deep Learning Method for "
        "Session-Based Recommendation, RecTemp at RecSys 2017",
        geometry="none",
        reasons={
            "attention": "It weighs items by their age alone; there is nothing it chooses to look at.",
            "neighbours": "It keeps rules of what follows what, not a place for each item.",
            "map": "It keeps rules of what follows what; there is no space to draw.",
            "probability": NO_PROBABILITY,
        },
        variants=(Variant("sequential-rules", page=OnPage()),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "window": (5, 20, 30),
        "distance": ("inverse", "logarithmic"),
        "age": ("quadratic", "inverse"),
        "rules": (0, 100, 200),
        "rarity": (False, True),
    }
    beside = ItemToItem.beside | {"age"}

    def bytes_of_log(self, config: SequentialRulesConfig, log: TrainingLog) -> int:
        return bytes_of_transitions(log, config.window)

    def instead(self, config: SequentialRulesConfig, log: TrainingLog | None) -> str:
        return narrower(config.window, log)

    def relation(self, config: SequentialRulesConfig, log: TrainingLog) -> sparse.csr_matrix:
        rules = transitions(log, falling(config.distance, config.window))
        if config.rarity:
            with np.errstate(divide="ignore"):
                raw = np.log((len(log.offsets) - 1) / log.popularity)
            taken = np.isfinite(raw)
            low, high = raw[taken].min(initial=np.inf), raw[taken].max(initial=-np.inf)
            rarity = (raw - low) / (high - low) if high > low else np.ones(log.num_items)
            rules = sparse.diags(np.where(taken, rarity, 0).astype(np.float32)) @ rules
        return strongest(rules, config.rules) if config.rules else rules

    def positions(self, config: SequentialRulesConfig) -> npt.NDArray[np.float32]:
        v = falling(config.age, config.max_length)
        v[0] = 1
        return np.tril(np.broadcast_to(v, (len(v), len(v))))


def falling(how: Fall, last: int) -> npt.NDArray[np.float32]:
    """Weights of distances 1 … last, float32."""
    d = np.arange(1, last + 1, dtype=np.float64)
    return {"inverse": 1 / d, "quadratic": 1 / d**2, "logarithmic": 1 / np.log10(d + 1.7)}[how].astype(np.float32)
