"""Negatives: items a user did not take."""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDS = 20
"""Draws before an item outside a user's own is counted off instead of hoped for: only for somebody who took most of them."""


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
        """int64 `shape`: uniform items outside each user's training items (any item for somebody who took them all).

        users: int64, broadcasting against `shape`.
        """
        drawn = torch.randint(self.num_items, shape, generator=generator, device=self.keys.device)
        users = users.expand(shape).reshape(-1)
        flat = drawn.view(-1)
        again = torch.arange(flat.numel(), device=flat.device)
        for _ in range(ROUNDS):
            again = again[self.contains(users[again], flat[again])]
            if not len(again):
                return drawn
            flat[again] = torch.randint(self.num_items, (len(again),), generator=generator, device=flat.device)
        again = again[self.contains(users[again], flat[again])]
        flat[again] = self._counted(users[again], generator)
        return drawn

    def _counted(self, users: Tensor, generator: torch.Generator) -> Tensor:
        """int64 [m]: for each of users (int64 [m]) one uniform item of those left, found by counting."""
        first = torch.searchsorted(self.keys, users * self.num_items)
        own = torch.searchsorted(self.keys, (users + 1) * self.num_items) - first
        left = torch.where(own < self.num_items, self.num_items - own, self.num_items)
        place = torch.rand(len(users), dtype=torch.float64, generator=generator, device=users.device)
        place = torch.minimum((place * left).long(), left - 1)
        # the i-th item of one's own (from 0), less i, is how many items of others stand before it
        opens = torch.searchsorted(self.keys, self.keys // self.num_items * self.num_items)
        before = self.keys - (torch.arange(len(self.keys), device=users.device) - opens)
        passed = torch.searchsorted(before, users * self.num_items + place, right=True) - first
        return torch.where(own < self.num_items, place + passed, place)
