"""Models whose scores are written down, and cases for them."""

import numpy as np
import torch
from torch import Tensor, nn

from engine.data.dataset import Cases
from engine.data.ragged import Ragged
from engine.models import ItemIndex, Recommender


class Fixed(Recommender):
    """Scores of user u are row u of a table; reads the user from the first item of the history."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.num_items, self.max_length = table.shape[1], 50
        self.table = nn.Buffer(torch.from_numpy(table.astype(np.float32)))
        self.asked: list[list[int]] = []

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        real = [[i for i in row if i != self.pad] for row in items.tolist()]
        self.asked += real
        return torch.stack([self.table[row[0] % len(self.table)] for row in real])

    def index(self) -> ItemIndex:
        return ItemIndex(None, torch.zeros(self.num_items))


def cases(histories: list[list[int]], targets: list[int]) -> Cases:
    return Cases.of(np.arange(len(targets), dtype=np.int32), Ragged.of(histories), np.array(targets, np.int32))


def random_cases(rng: np.random.Generator, count: int, items: int) -> Cases:
    """Case u starts with item u (so that `Fixed` knows it); targets may have been taken before."""
    histories = [[u % items, *rng.integers(0, items, rng.integers(0, 9)).tolist()] for u in range(count)]
    return cases(histories, rng.integers(0, items, count).tolist())
