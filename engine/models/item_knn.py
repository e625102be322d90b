"""Item-kNN: what people who took an item took besides, as cosines of who took what, shrunk where few did.

    S[i, j] = n_ij / (√(n_i n_j) + shrinkage)          score(h, j) = Σ_i∈h S[i, j], over the `neighbours` nearest j of each i

n_ij people have both. Sarwar et al., Item-Based Collaborative Filtering Recommendation Algorithms, WWW 2001; Deshpande & Karypis,
TOIS 2004; shrinkage as in Ferrari Dacrema et al., RecSys 2019.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from engine.cards import Card, OnPage, Variant
from engine.models.item_to_item import NO_PROBABILITY, ItemToItem, TrainingLog, strongest

_AT_A_TIME = 1 << 22
"""Pairs of items that are compared at a time, some 90 bytes each: however long histories are, fitting takes no more."""


@dataclass(frozen=True)
class ItemKNNConfig:
    neighbours: int = 100
    """Nearest items that count for each item of the history."""
    shrinkage: float = 10.0
    """Added to the denominator: how many people it takes to be believed."""
    max_length: int = 50
    """Latest items read."""
    kept: int = 250
    """Neighbours kept per item on the average: the nearest of all items together."""
    search: bool = False
    """Choose neighbours, shrinkage and max_length by NDCG@10 on the validation items, one after the other."""


class ItemKNN(ItemToItem):
    name = "item-knn"
    Config = ItemKNNConfig
    kind = "counting"
    reads_order = False
    card = Card(
        title="Item-kNN",
        order=76,
        summary="Recommends items that co-occur with those of the history, whatever their order. It needs no training.",
        paper="Sarwar et al., Item-Based Collaborative Filtering Recommendation Algorithms, WWW 2001",
        geometry="none",
        reasons={
            "attention": "Every item of the history counts alike; there is nothing it chooses to look at.",
            "neighbours": "It keeps who is near to whom, not a place for each item.",
            "map": "It keeps who is near to whom; there is no space to draw.",
            "probability": NO_PROBABILITY,
        },
        variants=(Variant("item-knn", page=OnPage(at_once=True)),),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "max_length": (2, 5, 20, 50, 200, 1_000),
        "shrinkage": (0.0, 10.0, 50.0, 200.0),
        "neighbours": (50, 100, 200),
    }

    @classmethod
    def bytes_needed(cls, config: ItemKNNConfig, num_items: int) -> int:
        """12 bytes for the number and the weight of every neighbour, twice while parts become a whole."""
        most = max(cls.grid["neighbours"]) if config.search else config.neighbours
        return 2 * 12 * num_items * min(most, num_items)

    def relation(self, config: ItemKNNConfig, log: TrainingLog) -> sparse.csr_matrix:
        taken = log.sets
        of_items, people = taken.T.tocsr(), np.bincount(taken.indices, minlength=log.num_items)
        size = max(1, _AT_A_TIME // log.num_items)
        nearest = []
        for first in range(0, log.num_items, size):
            both = (of_items[first : first + size] @ taken).tocoo()
            others = both.row + first != both.col
            row, column, count = both.row[others], both.col[others], both.data[others]
            cosine = count / (np.sqrt(people[row + first].astype(np.float64) * people[column]) + config.shrinkage)
            near = sparse.csr_matrix((cosine.astype(np.float32), (row, column)), both.shape)
            nearest.append(strongest(near, config.neighbours))
        return sparse.vstack(nearest, format="csr")
