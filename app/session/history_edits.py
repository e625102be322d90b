"""What if the history had been another? Edits of a history, as pure functions on tuples of item_ids."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.limits import MAX_HISTORY
from engine.errors import SeqscopeError

if TYPE_CHECKING:
    from engine.runtime import Zoo

KINDS = ("Remove one", "Swap two", "Keep the latest", "Replace one by its nearest neighbour", "Reverse")

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


def longer(history: Ids, item_id: str) -> Ids:
    """One more at the end; the oldest goes where there would be too many."""
    return (*history, item_id)[-MAX_HISTORY:]


def clicked(history: Ids, act: Mapping[str, Any]) -> Ids | None:
    """The history after a click, on a chip of it or on a +, that was made while this very history was shown; else, or where it
    edits nothing, None.

    act: {"do": "add", "id", "known" (how often the history had it)}, {"do": "remove", "place", "id"} or {"do": "move", "place",
    "to", "id"}. Comes from outside: checked here, but for whether there is such an item.
    """
    item_id, place, to = (act.get(name) for name in ("id", "place", "to"))
    if act.get("do") == "add":  # a second click adds nothing
        return (
            longer(history, item_id)
            if isinstance(item_id, str) and act.get("known") == history.count(item_id)
            else None
        )
    if not isinstance(place, int) or not 0 <= place < len(history) or history[place] != item_id:
        return None
    if act.get("do") == "remove":
        return without(history, place)
    return moved(history, place, to - place) if act.get("do") == "move" and isinstance(to, int) else None


def swapped(history: Ids, first: int, second: int) -> Ids:
    """Two events exchanged."""
    edited = list(history)
    edited[first], edited[second] = edited[second], edited[first]
    return tuple(edited)


def shuffled(history: Ids, rng: random.Random) -> Ids:
    """The same items in any other order; where there is none (all items equal), the same."""
    edited = list(history)
    for _ in range(20):
        rng.shuffle(edited)
        if tuple(edited) != history:
            break
    return tuple(edited)


def edited(history: Ids, models: Zoo, settings: Mapping[str, Any]) -> Ids:
    """The edit that somebody described; the same history where it describes none.

    settings: kind (one of `KINDS`), first and second (places), count, space (a model's name). Comes from outside: checked here.
    """
    kind, first, second, count = (settings.get(name) for name in ("kind", "first", "second", "count"))
    if kind == "Reverse":
        return history[::-1]
    if kind == "Keep the latest" and isinstance(count, int):
        return history[-count:] if count > 0 else ()
    if not isinstance(first, int) or not 0 <= first < len(history):
        return history
    if kind == "Remove one":
        return without(history, first)
    if kind == "Swap two" and isinstance(second, int) and 0 <= second < len(history):
        return swapped(history, first, second)
    if kind == "Replace one by its nearest neighbour":
        return neighboured(history, first, models, str(settings.get("space")))
    return history


def neighboured(history: Ids, place: int, models: Zoo, name: str) -> Ids:
    """The nearest item, in one model's space, that is not in the history already, in the place of another."""
    item = models.position(history[place])
    if item is None or name not in models.bundles or models.bundles[name].cannot("neighbours") is not None:
        return history
    try:
        near = models.bundles[name].neighbours(item, len(history) + 1).items
    except SeqscopeError:  # the item has no vector there
        return history
    fresh = [models.item_ids[other] for other in near if models.item_ids[other] not in history]
    return (*history[:place], fresh[0], *history[place + 1 :]) if fresh else history
