"""Items that a user comes back to: how many a log has, and whether a dataset counts them. Pure numpy.

"count": every event stays, and where items are ranked or recommended nobody's history is left out. "first": later events of a
user with the same item are dropped before the split, and the history is left out. There is nothing between the two: a target that
repeats must not be looked for among candidates that lack its rivals.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.writing import count, in_percent

RULES = ("count", "first")
COUNT_FROM = 0.05
"""The share of events, or of held-out items, from which on repeats are taken to be meant."""


def repeated(user: np.ndarray, item: np.ndarray, time: np.ndarray | None = None) -> np.ndarray:
    """bool [events]: which events repeat an earlier one of the same user and item, and of the same time where `time` is given.

    Arrays are sorted by user and time.
    """
    again = np.zeros(len(user), bool)
    pair = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(pair, kind="stable")  # within a pair still oldest first
    same = pair[order][1:] == pair[order][:-1]
    if time is not None:
        same &= time[order][1:] == time[order][:-1]
    again[order[1:][same]] = True
    return again


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
        f"{in_percent(events, 1)} of events and {in_percent(targets, 1)} of held-out items repeat an earlier item of the "
        f"same user; {treated}"
    )


def meaning(rule: str | None, measured: Mapping[str, float]) -> str:
    """What a dataset's rule (`DatasetInfo.repeats`) means for every figure and list made with it, in a sentence."""
    events, targets = (measured.get(name, 0.0) for name in ("repeated_events", "repeated_targets"))
    if rule == "count":
        return (
            "Repeats count: items of the history stay among the candidates and may be recommended again "
            f"({in_percent(targets, 1)} of held-out items repeat one of the history)."
        )
    if rule == "first":
        dropped = f" (later ones, {in_percent(events, 1)} of events, were dropped)" if events else ""
        return f"First time only: each user has an item once{dropped}, and items of the history are left out of the candidates."
    return "Items of the history are left out of the candidates."


# --- held-out items


NOTABLE = 0.1
"""Share of the held-out items from which on a sentence says what to do about them."""
TIES, REPEATS, NEGATIVE, UNTRAINED = "ties", "repeats", "negative", "untrained"
_ABOUT = {
    TIES: ("shares its time with the event before it", "share their time with the event before them"),
    REPEATS: ("repeats an earlier item of its user", "repeat an earlier item of their user"),
    NEGATIVE: ("has a negative quantity (a cancellation)", "have a negative quantity (cancellations)"),
    UNTRAINED: ("is of an item that nobody has in training", "are of items that nobody has in training"),
}
"""What is said of one held-out item, and of several."""
_FLAGS = {TIES: " (--ties shuffle)", REPEATS: " (--repeats first)", NEGATIVE: " (--drop-negative)"}


def count_held_out(
    held_out: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    item: npt.NDArray[np.integer],
    time: npt.NDArray[np.int64] | None,
    negative: npt.NDArray[np.bool_] | None,
) -> dict[str, int]:
    """How many of the held-out events share the time of the event before them ("ties"), have an item that their user had before
    ("repeats"), and have a negative quantity ("negative"). What the log does not say (times, quantities) is not in the answer.

    held_out: int64 [cases], places of events; offsets: int64 [users + 1], user u's events are offsets[u]:offsets[u + 1], oldest
    first; item: integers [events]; time: int64 [events] or None; negative: bool [events] or None.
    """
    user = np.searchsorted(offsets, held_out, side="right") - 1
    earlier = held_out > offsets[user]
    counts: dict[str, int] = {}
    if time is not None:
        counts[TIES] = int(np.count_nonzero(earlier & (time[held_out] == time[held_out - 1])))
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    counts[REPEATS] = int(np.count_nonzero(repeated(owner, item)[held_out]))
    if negative is not None:
        counts[NEGATIVE] = int(np.count_nonzero(negative[held_out]))
    return counts


def count_untrained(
    held_out: npt.NDArray[np.int64], item: npt.NDArray[np.integer], training: npt.NDArray[np.bool_], *, few: bool = True
) -> dict[str, int]:
    """How many of the held-out events have an item that no event of training has ("untrained"). held_out, item: as of
    `count_held_out`; training: bool [events]. few: False leaves them out where they are too few to be told of."""
    untrained = int(np.isin(item[held_out], item[training], invert=True).sum())
    return {UNTRAINED: untrained} if few or untrained > NOTABLE * len(held_out) else {}


def about_held_out(
    counts: Mapping[str, int], cases: int, options: Mapping[str, Any], *, flags: bool = False
) -> list[str]:
    """What was counted, in a sentence, then one for each number that bears on a verdict; empty where nothing was counted.

    counts: of `DatasetInfo.held_out`; cases: held-out items in all; options: those of the import (`DatasetInfo.options`); flags:
    name those of `seqscope data import` that do what is advised.
    """
    if not cases or not counts:
        return []
    parts = [
        f"{counts[kind]:,} ({in_percent(counts[kind] / cases)}) {_ABOUT[kind][counts[kind] != 1]}"
        for kind in _ABOUT
        if kind in counts
    ]
    many = [kind for kind in _ABOUT if counts.get(kind, 0) >= NOTABLE * cases]
    advice = {
        TIES: "Among events that tie, the order is not one in time, and a model can learn it: shuffle ties to see what is left.",
        REPEATS: "Repeats are easier to predict than new items: look at the two apart, or use first occurrences only.",
        NEGATIVE: "To predict a cancellation is no recommendation: drop negative quantities.",
        UNTRAINED: "Only a model that reads their words can recommend items that nobody has in training.",
    }
    if options.get("ties") in ("known", "shuffle"):
        del advice[TIES]
    if flags:
        advice = {kind: f"{words[:-1]}{_FLAGS.get(kind, '')}." for kind, words in advice.items()}
    first = f"Of {count(cases, 'held-out item')} {', '.join(parts)}."
    return [first, *(advice[kind] for kind in many if kind in advice)]


def in_plural(sentence: str) -> str:
    """One of `about_held_out` as earlier versions wrote it, of one item, too."""
    for singular, plural in (("Of 1 held-out item ", "Of 1 held-out items "), *_ABOUT.values()):
        sentence = sentence.replace(singular, plural)
    return sentence
