"""Turns over owners."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from app.jobs.turns import Ahead, Turns
from tests.waiting import wait


class Crowd:
    """Threads that hold places until they are let go."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.held: list[str] = []
        self.waits: dict[str, Ahead] = {}
        self._go: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def ask(self, owner: str, name: str, lane: str = "slow") -> None:
        self._go[name] = threading.Event()
        self._threads.append(threading.Thread(target=self._hold, args=(owner, name, lane)))
        self._threads[-1].start()
        wait(lambda: name in self.held or name in self.waits)

    def _hold(self, owner: str, name: str, lane: str) -> None:
        with self.turns.place(owner, lane, lambda ahead: self.waits.update({name: ahead})):
            self.held.append(name)
            self._go[name].wait(30)
            self.held.remove(name)

    def leave(self, name: str) -> None:
        self._go[name].set()
        wait(lambda: name not in self.held)

    def end(self) -> None:
        for go in self._go.values():
            go.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    with ExitStack() as stack:
        made = Crowd(Turns(slow=lambda: 2, quick=lambda: 1))
        stack.callback(made.end)
        yield made


def test_one_place_for_each_owner(crowd: Crowd) -> None:
    for name in ("a1", "a2", "a3"):
        crowd.ask("a", name)
    crowd.ask("b", "b1")  # the second place was kept from a, who has the first
    assert crowd.held == ["a1", "b1"] and crowd.waits["a2"] == Ahead(1, 0)
    crowd.ask("c", "c1")
    crowd.leave("a1")
    wait(lambda: crowd.held == ["b1", "c1"])  # it came last, and a had a turn
    crowd.leave("b1")
    wait(lambda: crowd.held == ["c1", "a2"])


def test_a_lane_does_not_wait_for_the_other(crowd: Crowd) -> None:
    for owner in "abc":
        crowd.ask(owner, owner)
    crowd.ask("d", "d", "quick")
    assert crowd.held == ["a", "b", "d"]
    crowd.ask("a", "again", "quick")  # whoever has a turn has none in the other lane
    assert crowd.waits["again"] == Ahead(1, 1)


def test_who_goes_away_keeps_nobody_waiting(crowd: Crowd) -> None:
    for owner in "ab":
        crowd.ask(owner, owner)

    def gone(ahead: Ahead) -> None:
        raise KeyError("the page was drawn anew")

    with pytest.raises(KeyError), crowd.turns.place("c", "slow", gone):
        pass
    crowd.ask("d", "d")
    crowd.leave("a")
    wait(lambda: crowd.held == ["b", "d"])
