"""Turns over owners: whoever asks for much waits for themselves, and not the others for them.

Each owner has one turn at a time. Of those who wait, the next is the owner who has waited longest since their last turn ended,
with their oldest request; their further requests come in later rounds. Used where steps of uploads are read
(app/uploads/runner.py), trainings estimated (app/jobs/estimate.py) and jobs begun (app/jobs/queue.py).
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

_TICK = 0.1


R = TypeVar("R")


def in_turn(waiting: Iterable[tuple[str, float, R]], ended: Mapping[str, float], busy: Collection[str]) -> list[R]:
    """Those who wait, in the order of their turns.

    waiting: (owner, when they asked, what for), the time in seconds of any clock; ended: owner → when their last turn ended, by
    the same clock; busy: owners who have a turn now, last in each round.
    """
    rounds: Counter[str] = Counter()
    since: dict[str, float] = {}
    ordered = []
    for owner, arrived, request in sorted(waiting, key=lambda entry: entry[1]):
        since.setdefault(owner, math.inf if owner in busy else max(arrived, ended.get(owner, 0.0)))
        ordered.append((rounds[owner], since[owner], arrived, request))
        rounds[owner] += 1
    return [request for *_, request in sorted(ordered, key=lambda entry: entry[:3])]


@dataclass(frozen=True)
class Ahead:
    """What a request waits for."""

    own: int
    """Requests of the same owner, running or to run before it."""
    others: int
    """Those of other owners."""

    def words(self, singular: str, plural: str) -> str:
        """As in “Waiting for its turn: 1 file of yours and 2 files of others come first”; singular, plural: file, files."""
        parts = [
            f"{number} {singular if number == 1 else plural} {whose}"
            for number, whose in ((self.own, "of yours"), (self.others, "of others"))
            if number
        ]
        if not parts:
            return "Waiting for its turn: it is next"
        return f"Waiting for its turn: {' and '.join(parts)} {'comes' if self.own + self.others == 1 else 'come'} first"


@dataclass(eq=False)
class _Turn:
    owner: str
    lane: str
    arrived: float = field(default_factory=time.monotonic)


class Turns:
    """Places in lanes, for threads that wait for them. An owner has one place at a time, in whichever lane."""

    def __init__(self, **lanes: Callable[[], int]) -> None:
        """name = how many places the lane has, asked anew each time."""
        self._lanes = lanes
        self._changed = threading.Condition()
        self._waiting: list[_Turn] = []
        self._held: list[_Turn] = []
        self._ended: dict[str, float] = {}

    @contextmanager
    def place(self, owner: str, lane: str, wait: Callable[[Ahead], None]) -> Iterator[None]:
        """A place for the block. wait: called again and again, in this thread, while there is none; what it raises ends the wait.

        owner: "" is nobody in particular, who waits for no other nobody.
        """
        turn = _Turn(owner or f"nobody {threading.get_ident()}", lane)
        with self._changed:
            self._waiting.append(turn)
        try:
            while not self._take(turn):
                wait(self._ahead(turn))
                with self._changed:
                    self._changed.wait(_TICK)
        except BaseException:
            with self._changed:
                self._waiting.remove(turn)
            raise
        try:
            yield
        finally:
            with self._changed:
                self._held.remove(turn)
                self._ended[turn.owner] = time.monotonic()
                if not self._waiting:
                    self._ended.clear()  # whoever asks from now on asks later than all of them ended
                self._changed.notify_all()

    def _take(self, turn: _Turn) -> bool:
        with self._changed:
            free = self._lanes[turn.lane]() - sum(held.lane == turn.lane for held in self._held)
            busy = {held.owner for held in self._held}
            able = [waiting for waiting in self._ordered(turn.lane) if waiting.owner not in busy]
            if turn not in able[: max(0, free)]:
                return False
            self._waiting.remove(turn)
            self._held.append(turn)
            return True

    def _ahead(self, turn: _Turn) -> Ahead:
        with self._changed:
            ordered = self._ordered(turn.lane)
            before = ordered[: ordered.index(turn)]
            before += [held for held in self._held if held.lane == turn.lane or held.owner == turn.owner]
        same_owner = sum(other.owner == turn.owner for other in before)
        return Ahead(same_owner, len(before) - same_owner)

    def _ordered(self, lane: str) -> list[_Turn]:
        waiting = [(turn.owner, turn.arrived, turn) for turn in self._waiting if turn.lane == lane]
        return in_turn(waiting, self._ended, [held.owner for held in self._held])
