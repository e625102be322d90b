"""What people of the log had next after the end of a history: counted, whatever the models say."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.text import listed, md, percent
from engine.runtime import Zoo
from engine.writing import count

ENOUGH = 10
"""People who have the last two items of a history one directly after the other; where there are fewer, the last item decides."""
SHOWN = 5


@dataclass(frozen=True)
class NextInLog:
    """What came directly after an item, or after two in a row."""

    after: tuple[int, ...]
    """The last item of the history, or its last two."""
    people: int
    """How many have that in their log, and something after it."""
    items: tuple[int, ...]
    """The most frequent next items, SHOWN at most, of two people at least."""
    shares: tuple[float, ...]
    """Of these people, by item."""


def count_next(models: Zoo, history: tuple[int, ...]) -> NextInLog | None:
    """None where the history is empty, nobody's log is there, or histories are sets."""
    if not history or not models.users.num_rows or models.info.sets:
        return None
    for after in (history[-2:], history[-1:]) if len(history) > 1 else (history,):
        following = _following(models, after)
        people = len(np.unique(following[:, 0]))
        if len(after) == 1 or people >= ENOUGH:
            break
    times = np.bincount(following[:, 1], minlength=len(models))
    order = np.argsort(-times, kind="stable")[:SHOWN]
    order = order[times[order] > 1]
    return NextInLog(after, people, tuple(order.tolist()), tuple((times[order] / max(people, 1)).tolist()))


def _following(models: Zoo, after: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """(row of `models.users`, item that came directly after `after`) of each event that did, int64 [events, 2], none twice."""
    pairs, row = [], 0
    for part in models.users.select(["history", "target"]).to_batches():
        offsets, events = part["history"].offsets.to_numpy(), part["history"].values.to_numpy()
        places = np.flatnonzero(events[: offsets[-1]] == after[-1])
        places = places[places >= offsets[0]]
        person = np.searchsorted(offsets, places, side="right") - 1
        for back, item in enumerate(after[-2::-1], 1):
            there = (places - back >= offsets[person]) & (events[np.maximum(places - back, 0)] == item)
            places, person = places[there], person[there]
        ends = places + 1 == offsets[person + 1]
        following = np.where(ends, part["target"].to_numpy()[person], events[np.minimum(places + 1, len(events) - 1)])
        pairs.append(np.stack([person + row, following], axis=1))
        row += part.num_rows
    return np.unique(np.concatenate(pairs), axis=0)


def sentence(models: Zoo, history: tuple[int, ...]) -> str:
    """What people had next, as Markdown; "" where the history is empty."""
    if not history:
        return ""
    if not models.has_log:
        return "There is no log, so users’ next items are unknown."
    if models.info.sets:
        return "Histories are sets of items here, so the log does not say what users had next."
    following = count_next(models, history)
    if following is None:
        return "The log was not exported with the models, so what users had next is not known here."
    after = listed([f"*{md(models.titles[item], 60)}*" for item in following.after], "and then")
    who = count(following.people, "simulated user" if models.info.simulated else "user")
    if not following.people:
        return f"No user in the log has an item directly after {after}."
    if not following.items:
        return f"{who} had an item after {after}{', each a different one' * (following.people > 1)}."
    shares = [
        f"**{md(models.titles[item], 60)}** {percent(share)}"
        for item, share in zip(following.items, following.shares, strict=True)
    ]
    return f"What came next for {who} who had {after}: {', '.join(shares)}."


def definition(models: Zoo) -> str | None:
    """What exactly is counted; None where nothing is."""
    there, everybody = models.users.num_rows, models.info.counts.get("users", 0)
    if not there or models.info.sets:
        return None
    some = f"{count(there, 'user')} (of {everybody:,}) whose logs are here"
    people = "everybody in the log" if there >= everybody else some
    return (
        f"Of {people}, users with the last item are counted, once per item directly after it, held-out items included. "
        f"If {ENOUGH} or more have the last two items in direct succession, only these count. Shares are of the users "
        "counted; items of a single user are left out."
    )
