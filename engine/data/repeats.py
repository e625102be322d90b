"""Items that a user comes back to: how many a log has, and whether a dataset counts them. Pure numpy.

"count": every event stays, and where items are ranked or recommended nobody's history is left out. "first": later events of a
user with the same item are dropped before the split, and the history is left out. There is nothing between the two: a target that
repeats must not be looked for among candidates that lack its rivals.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.data.order import repeated

RULES = ("count", "first")
COUNT_FROM = 0.05
"""The share of events, or of held-out items, from which on repeats are taken to be meant."""


def measure(user: np.ndarray, item: np.ndarray, held_out: np.ndarray) -> dict[str, float]:
    """repeated_events and repeated_targets: the shares of all events, and of the held-out ones, whose item the user had before.

    user, item: int [events], sorted by user, each user's events oldest first; held_out: bool [events]. 0.0 of nothing.
    """
    again = repeated(user, item)
    return {
        "repeated_events": float(again.mean()) if len(again) else 0.0,
        "repeated_targets": float(again[held_out].mean()) if held_out.any() else 0.0,
    }


def propose(measured: Mapping[str, float]) -> str:
    """The rule for a log that was measured so: "count" where either share is 5 % or more."""
    return "count" if max(measured["repeated_events"], measured["repeated_targets"]) >= COUNT_FROM else "first"


def in_words(measured: Mapping[str, float], rule: str) -> str:
    """What was measured, and what the rule makes of it, in a sentence without a full stop."""
    events, targets = (measured.get(name, 0.0) for name in ("repeated_events", "repeated_targets"))
    if not events:
        return "no user has an item twice"
    treated = "they count" if rule == "count" else "only the first event of a user with an item is used"
    return (
        f"{events:.1%} of events and {targets:.1%} of held-out items repeat an earlier item of the same user; {treated}"
    )


def meaning(rule: str | None, measured: Mapping[str, float]) -> str:
    """What a dataset's rule (`DatasetInfo.repeats`) means for every figure and list made with it, in a sentence."""
    events, targets = (measured.get(name, 0.0) for name in ("repeated_events", "repeated_targets"))
    if rule == "count":
        return (
            "Repeats count: items of the history stay among the candidates and may be recommended again "
            f"({targets:.1%} of held-out items repeat one of the history)."
        )
    if rule == "first":
        dropped = f" (later ones, {events:.1%} of events, were dropped)" if events else ""
        return f"First time only: each user has an item once{dropped}, and items of the history are left out of the candidates."
    return "Items of the history are left out of the candidates."
