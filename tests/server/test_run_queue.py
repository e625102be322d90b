"""Runs of pages, one after the other."""

import gc
import threading
from collections.abc import Iterator

import pytest

from app.analysis.cache import forget
from app.server.run_queue import RunQueue, settle
from tests.waiting import wait

PATIENCE = 60.0
FOREVER = 1_000.0


class Runs:
    """Threads that each hold a turn until they are let go, then let others first, and end."""

    def __init__(self, longest: float) -> None:
        self.queue = RunQueue(longest)
        self.begun: list[int] = []
        self.ends = [threading.Event() for _ in range(3)]
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(3)]
        for number, thread in enumerate(self.threads):
            thread.start()
            wait(lambda number=number: len(self.begun) + len(self.queue) > number)

    def _run(self, number: int) -> None:
        with self.queue.turn():
            self.begun.append(number)
            self.ends[number].wait(PATIENCE)
            self.queue.others_first()
            self.begun.append(number)

    def until(self, begun: list[int]) -> None:
        wait(lambda: self.begun == begun)


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
    for number in range(3):
        runs.until([*range(number + 1)])
        runs.ends[number].set()
    runs.until([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize("runs", [0.05], indirect=True)
def test_a_long_run_is_not_waited_for(runs: Runs) -> None:
    runs.until([0, 1, 2])


def test_a_run_that_fails_gives_its_turn_back() -> None:
    queue = RunQueue(FOREVER)
    with pytest.raises(KeyError), queue.turn():
        raise KeyError
    with queue.turn():
        pass


def test_sessions_that_are_live_when_a_dataset_is_deleted_can_be_collected_later() -> None:
    settle("a page")
    before = gc.get_freeze_count()
    forget()  # as the deletion does
    settle("a page")
    assert gc.get_freeze_count() <= before
