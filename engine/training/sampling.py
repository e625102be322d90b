"""Negatives: items a user did not take."""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDS = 20
"""Draws before an item of the user's own is let through: only for somebody who took nearly everything."""


class Taken:
    """Who took what in training, for membership tests on the device.

    items: int64 [events]; offsets: int64 [users + 1].
    """

    def __init__(self, items: Tensor, offsets: Tensor, num_items: int) -> None:
        self.num_items = num_items
        users = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=items.device), offsets.diff())
        self.keys = torch.unique(users * num_items + items)

    def contains(self, users: Tensor, items: Tensor) -> Tensor:
        """bool, the shape of `items`; users broadcasts against it."""
        keys = users * self.num_items + items
        place = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        return self.keys[place] == keys

    def negatives(self, users: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """int64 `shape`: uniform items outside each user's training items. users: int64, broadcasting against `shape`."""
        drawn = torch.randint(self.num_items, shape, generator=generator, device=self.keys.device)
        users = users.expand(shape).reshape(-1)
        flat = drawn.view(-1)
        again = torch.arange(flat.numel(), device=flat.device)
        for _ in range(ROUNDS):
            again = again[self.contains(users[again], flat[again])]
            if not len(again):
                break
            flat[again] = torch.randint(self.num_items, (len(again),), generator=generator, device=flat.device)
        return drawn
