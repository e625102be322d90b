"""EASEᴿ: every item predicted from the others by linear regression over people, in closed form.

    P = (XᵀX + λI)⁻¹          B = I − P · diag(1 / diag P)          score(h, j) = Σ_i∈h B[i, j]

X says who took what. Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019 (equations 5 to 8).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse

from engine.cards import Card, OnPage, Variant
from engine.models.item_to_item import NO_PROBABILITY, ItemToItem, TrainingLog


@dataclass(frozen=True)
class EASEConfig:
    regularisation: float = 250.0
    """λ, in people."""
    max_length: int = 50
    """Latest items read."""
    kept: int = 250
    """Weights kept per item on the average: the largest of all items together, negative ones among them."""
    search: bool = False
    """Choose regularisation and max_length by NDCG@10 on the validation items, one after the other."""


class EASE(ItemToItem):
    name = "ease"
    Config = EASEConfig
    kind = "collaborative"
    reads_order = False
    card = Card(
        title="EASE",
        order=78,
        summary="Predicts every item from all others by one linear regression, solved at once; no order is read.",
        paper="Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019",
        geometry="none",
        reasons={
            "attention": "Every item of the history counts alike; there is nothing it chooses to look at.",
            "neighbours": "It keeps a weight for each pair of items, not a place for each item.",
            "map": "It keeps a weight for each pair of items; there is no space to draw.",
            "probability": NO_PROBABILITY,
        },
        variants=(Variant("ease", page=OnPage()),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "max_length": (2, 5, 20, 50, 200, 1_000),
        "regularisation": (30.0, 100.0, 250.0, 500.0, 1_000.0),
    }

    @classmethod
    def bytes_needed(cls, config: EASEConfig, num_items: int) -> int:
        return 3 * 4 * num_items**2

    def instead(self, config: EASEConfig, log: TrainingLog | None) -> str:
        return "It inverts a matrix of items × items; item-knn and counting keep a sparse one."

    def relation(self, config: EASEConfig, log: TrainingLog) -> sparse.csr_matrix:
        taken = log.sets
        gram = (taken.T @ taken).toarray()
        least = float(np.finfo(gram.dtype).eps) * float(
            gram.sum(0).max()
        )  # below, rounding alone says what the inverse is
        if config.regularisation < least:
            raise ValueError(f"regularisation is {config.regularisation:g}; the log asks for {least:.1g} at least")
        gram[np.diag_indices_from(gram)] += config.regularisation
        inverse = linalg.inv(gram, overwrite_a=True, check_finite=False)
        inverse /= -np.diag(inverse).copy()
        np.fill_diagonal(inverse, 0)
        size, most = np.abs(inverse).ravel(), config.kept * log.num_items
        if size.size > most:  # all of them as a sparse matrix would take four times as much
            inverse[np.abs(inverse) < np.partition(size, size.size - most)[size.size - most]] = 0
        return sparse.csr_matrix(inverse)
