"""What is special about held-out items before any model is judged: ties in time, repeats, cancellations.

Counted where a log is split (the import, and the check of an upload) and kept in dataset.json; everybody else shows that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.data.order import repeated

NOTABLE = 0.1
"""Share of the held-out items from which on a sentence says what to do about them."""
TIES, REPEATS, NEGATIVE = "ties", "repeats", "negative"


def count(
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


def about(counts: Mapping[str, int], cases: int, options: Mapping[str, Any]) -> list[str]:
    """What was counted, in a sentence, then one for each number that bears on a verdict; empty where nothing was counted.

    counts: of `count`; cases: held-out items in all; options: those of the import (`DatasetInfo.options`).
    """
    if not cases or not counts:
        return []
    words = {
        TIES: "share their time with the event before them",
        REPEATS: "repeat an earlier item of their user",
        NEGATIVE: "have a negative quantity (cancellations)",
    }
    parts = [f"{counts[kind]:,} ({counts[kind] / cases:.0%}) {words[kind]}" for kind in words if kind in counts]
    many = [kind for kind in words if counts.get(kind, 0) >= NOTABLE * cases]
    advice = {
        TIES: "Among events that tie, the order is not one in time, and a model can learn it: shuffle ties to see what is left.",
        REPEATS: "Repeats are easier to predict than new items: look at the two apart, or use first occurrences only.",
        NEGATIVE: "To predict a cancellation is no recommendation: drop negative quantities.",
    }
    if options.get("ties") in ("known", "shuffle"):
        del advice[TIES]
    return [f"Of {cases:,} held-out items {', '.join(parts)}.", *(advice[kind] for kind in many if kind in advice)]
