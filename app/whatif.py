"""What if the history had been another? Edits of a history, as pure functions on tuples of item_ids."""

from __future__ import annotations

import random

Ids = tuple[str, ...]


def without(history: Ids, place: int) -> Ids:
    """One event removed."""
    return history[:place] + history[place + 1 :]


def moved(history: Ids, place: int, by: int) -> Ids:
    """One event moved by so many places, at most to either end."""
    if not 0 <= place < len(history):
        return history
    rest = list(without(history, place))
    rest.insert(min(max(0, place + by), len(rest)), history[place])
    return tuple(rest)


def swapped(history: Ids, first: int, second: int) -> Ids:
    """Two events exchanged."""
    edited = list(history)
    edited[first], edited[second] = edited[second], edited[first]
    return tuple(edited)


def latest(history: Ids, count: int) -> Ids:
    """The latest so many events."""
    return history[-count:] if count > 0 else ()


def replaced(history: Ids, place: int, item_id: str) -> Ids:
    """Another item in one place."""
    return (*history[:place], item_id, *history[place + 1 :])


def backwards(history: Ids) -> Ids:
    """The newest first."""
    return history[::-1]


def shuffled(history: Ids, rng: random.Random) -> Ids:
    """The same items in any other order; where there is none (all items equal), the same."""
    edited = list(history)
    for _ in range(20):
        rng.shuffle(edited)
        if tuple(edited) != history:
            break
    return tuple(edited)
