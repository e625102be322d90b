"""Counting transitions, and words: what followed what, and what shares rare words with it.

    score(h, j) = Σ_p κ(p) · (log(1 + items · C[h_p, j] / τ) + λ · t(h_p) · t(j)) + b · log p(j)

The first part is engine.models.counting's, the second engine.models.tfidf's; both weigh the history by the same κ.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import sparse

from engine.cards import Card, OnPage, Variant
from engine.models.counting import Counting, CountingConfig
from engine.models.item_to_item import TrainingLog
from engine.models.tfidf import bytes_of_cosines, cosines, vectors


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
        summary="Counts what came after what, and adds what shares rare words with it, which carries items that few "
        "have taken. It has nothing to learn.",
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
