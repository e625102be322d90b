"""Runs of pages, one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from app.run_queue import RunQueue

PATIENCE = 60.0
FOREVER = 1_000.0


class Runs:
    """Threads that each hold a turn until they are let go, then let others first, and end."""

    def __init__(self, longest: float) -> None:
        self.queue = RunQueue(longest)
        self.begun: list[int] = []
        self.change = threading.Condition()
        self.ends: list[threading.Event] = []
        self.threads: list[threading.Thread] = []

    def ask(self) -> None:
        """One more run, in the queue or begun when this returns."""
        number = len(self.ends)
        self.ends.append(threading.Event())
        self.threads.append(threading.Thread(target=self._run, args=(number,)))
        self.threads[-1].start()
        while len(self.begun) + len(self.queue) <= number:
            time.sleep(0.001)

    def _run(self, number: int) -> None:
        with self.queue.turn():
            self._note(number)
            self.ends[number].wait(PATIENCE)
            self.queue.others_first()
            self._note(number)

    def _note(self, number: int) -> None:
        with self.change:
            self.begun.append(number)
            self.change.notify_all()

    def until(self, begun: list[int]) -> bool:
        with self.change:
            return self.change.wait_for(lambda: self.begun == begun, PATIENCE)

    def end(self, number: int) -> None:
        self.ends[number].set()


@pytest.fixture
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    started = Runs(request.param)
    yield started
    for end in started.ends:
        end.set()
    for thread in started.threads:
        thread.join(PATIENCE)


@pytest.mark.parametrize("runs", [FOREVER], indirect=True)
def test_one_at_a_time_in_order_and_the_rest_of_each_after_the_others(runs: Runs) -> None:
    for _ in range(3):
        runs.ask()
    assert runs.until([0])
    runs.end(0)
    assert runs.until([0, 1])
    runs.end(1)
    assert runs.until([0, 1, 2])
    runs.end(2)
    assert runs.until([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize("runs", [0.05], indirect=True)
def test_a_long_run_is_not_waited_for(runs: Runs) -> None:
    for _ in range(3):
        runs.ask()
    assert runs.until([0, 1, 2])


def test_a_run_that_fails_gives_its_turn_back() -> None:
    queue = RunQueue(FOREVER)
    with pytest.raises(KeyError), queue.turn():
        raise KeyError
    with queue.turn():
        pass
