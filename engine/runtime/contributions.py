"""A score taken apart, exactly: into what each event of the history gave, or into parts of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.bundle.index import Float32, ItemIndex

AVERAGE = "an average item"


@dataclass(frozen=True)
class Contributions:
    """A score as the sum of what each event of the history gave, or of parts of the model, and of what the item has anyway."""

    events: Float32
    """[history], oldest first, 0 for those that the model does not read; empty of a model that adds up parts."""
    prior: float
    """What the item has whatever the history; beside parts, more than an average item has."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """By what they are called (`Index.parts`), AVERAGE first."""

    @property
    def score(self) -> float:
        return float(self.events.sum(dtype=np.float64)) + sum(self.parts.values()) + self.prior


def by_parts(parts: Float32, index: ItemIndex, names: Iterable[str], item: int) -> Contributions:
    """The score of an item as the mean score of all items and what each part puts on top of that, for zero means nothing to a
    product of vectors. parts: float32 [parts, dim], which add up to the query; names: of each."""
    average = index.table.mean(0, dtype=np.float64)
    above = index.table[item] - average
    given = (parts @ above[:-1]).tolist()
    mean = float((parts @ average[:-1]).sum() + average[-1])
    return Contributions(
        np.zeros(0, np.float32), float(above[-1]), {AVERAGE: mean, **dict(zip(names, given, strict=True))}
    )
