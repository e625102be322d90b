"""What an epoch is made of: windows over sequences, batches of like length, and negatives, items that a user did not take."""

from collections.abc import Iterator

import torch
from torch import Tensor

POOL = 32
"""Batches that are sorted by length together: enough to make lengths alike, few enough to keep batches random."""
ROUNDS = 20
"""Draws before an item outside a user's own is counted off instead of hoped for: only for somebody who took most of them."""

TABLE_BYTES = 1 << 26
"""Up to so many pairs of users and items, a byte each, who took what is a table; where there are more, a sorted list."""


def gather_last(values: Tensor, ends: Tensor, lengths: Tensor, width: int, pad: int) -> Tensor:
    """int64 [rows, width]: `values[end − length : end]` of each row, `pad` on the left. ends, lengths: int64 [rows]."""
    column = torch.arange(width, device=values.device) - width
    real = column >= -lengths.clamp(max=width)[:, None]
    return torch.where(real, values[(ends[:, None] + column).clamp(min=0)], pad)


def owners(offsets: Tensor) -> Tensor:
    """int64 [events]: the user of each event. offsets: int64 [users + 1], where each user's begin."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())


def stride(step: float, size: int) -> int:
    """Events from one window to the next: the share `step` of `size`, one at least; 0 where there are no other windows."""
    return max(1, int(step * size)) if step else 0


def windows(offsets: Tensor, size: int, step: int) -> tuple[Tensor, Tensor]:
    """End and length (int64 [windows]) of the windows of at most `size` events, every `step` events from the end.

    offsets: int64 [users + 1], where each sequence starts. Without a step there is the last window alone; a sequence of one event
    has none, because it predicts nothing.
    """
    lengths = offsets.diff()
    earlier = (lengths - size).clamp(min=0).add(step - 1) // step if step else torch.zeros_like(lengths)
    count = torch.where(lengths >= 2, 1 + earlier, 0)
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=offsets.device), count)
    place = torch.arange(len(owner), device=offsets.device) - (count.cumsum(0) - count)[owner]
    ends = (offsets[1:][owner] - place * step).clamp(min=0)
    # the earliest window is full as well, so it may overlap the next one by more than size − step
    ends = torch.maximum(ends, offsets[:-1][owner] + torch.minimum(lengths[owner], torch.tensor(size)))
    return ends, torch.minimum(lengths[owner], torch.tensor(size))


def shuffled(examples: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """int64 [≤ batch_size] at a time: every example once, in random order."""
    yield from torch.randperm(examples, generator=generator).split(batch_size)


def by_length(lengths: Tensor, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """As `shuffled`, each batch of like `lengths` (int64 [examples]); the order of batches is random.

    Examples are shuffled, sorted by length within pools of `POOL` batches, and cut.
    """
    batches: list[Tensor] = []
    for pool in torch.randperm(len(lengths), generator=generator).split(batch_size * POOL):
        ordered = pool[torch.argsort(lengths[pool], stable=True)]
        batches.extend(ordered.split(batch_size))
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def few_of_each(
    users: Tensor, limit: int, lengths: Tensor, batch_size: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """As `by_length`, of at most `limit` examples of each user, drawn at random; 0: of all. users: int64 [examples]."""
    chosen = torch.arange(len(users))
    if limit:
        shuffled = torch.randperm(len(users), generator=generator)
        chosen = shuffled[torch.argsort(users[shuffled], stable=True)]
        users = users[chosen]
        nth = torch.arange(len(users)) - torch.searchsorted(users, users)  # users are sorted: their first place
        chosen = chosen[nth < limit]
    for batch in by_length(lengths[chosen], batch_size, generator):
        yield chosen[batch]


class Taken:
    """Who took what in training, for membership tests on the device.

    items: int64 [events]; offsets: int64 [users + 1].
    """

    def __init__(self, items: Tensor, offsets: Tensor, num_items: int) -> None:
        self.num_items = num_items
        self.keys = torch.unique(owners(offsets) * num_items + items)
        pairs = (len(offsets) - 1) * num_items
        self.table: Tensor | None = None  # looking a pair up takes a tenth of the time of searching for it
        if pairs <= TABLE_BYTES:
            self.table = torch.zeros(pairs, dtype=torch.bool, device=items.device)
            self.table[self.keys] = True

    def contains(self, users: Tensor, items: Tensor) -> Tensor:
        """bool, the shape of `items`; users broadcasts against it."""
        keys = users * self.num_items + items
        if self.table is not None:
            return self.table[keys]
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
        counts = torch.searchsorted(self.keys, (users + 1) * self.num_items) - first
        left = torch.where(counts < self.num_items, self.num_items - counts, self.num_items)
        place = torch.rand(len(users), dtype=torch.float64, generator=generator, device=users.device)
        place = torch.minimum((place * left).long(), left - 1)
        # the i-th item of one's own (from 0), less i, is how many items of others stand before it
        opens = torch.searchsorted(self.keys, self.keys // self.num_items * self.num_items)
        before = self.keys - (torch.arange(len(self.keys), device=users.device) - opens)
        passed = torch.searchsorted(before, users * self.num_items + place, right=True) - first
        return torch.where(counts < self.num_items, place + passed, place)
