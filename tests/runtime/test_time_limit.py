"""Graphs that come to no end: ended, refused from then on, and no other model waits for them."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.runtime import BundleError, BusyError, Zoo, time_limit
from tests.runtime.bundles import TOYS, make_endless, make_endless_to_load, make_zoo

TOY = TOYS[0]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A zoo whose "alpha" answers after one event, and comes to no end after more."""
    monkeypatch.setenv(time_limit.LIMIT, "0.5")
    zoo = make_zoo(tmp_path, TOYS[:2])
    make_endless(zoo / "alpha", TOY, 1)
    yield zoo
    time_limit._endless.clear()


def test_one_that_never_ends_is_refused_when_it_is_opened(path: Path) -> None:
    make_endless(path / "alpha", TOY, 0)
    zoo = Zoo.open(path, warm=True)
    assert list(zoo.bundles) == ["beta"]
    (refusal,) = zoo.refused
    assert (refusal.name, refusal.file) == ("alpha", "encoder.onnx") and "did not end within 0.5 s" in refusal.reason


def test_one_whose_constants_never_end_is_waited_for_no_longer(path: Path) -> None:
    make_endless_to_load(path / "alpha", TOY)
    zoo = Zoo.open(path, warm=True)
    assert list(zoo.bundles) == ["beta"] and "did not end within 0.5 s" in zoo.refused[0].reason


def test_one_that_ends_at_times_is_refused_from_then_on(path: Path) -> None:
    zoo = Zoo.open(path, warm=True)
    assert zoo.sound() is zoo and len(zoo.bundles["alpha"].recommend_one([1], 3).items) == 3
    with pytest.raises(BundleError, match="did not end within"):
        zoo.bundles["alpha"].recommend_one([1, 2], 3)
    with pytest.raises(BundleError, match="did not end within"):
        zoo.bundles["alpha"].recommend_one([1], 3)  # it is not asked again, whatever the question
    sound = zoo.sound()
    assert list(sound.bundles) == ["beta"] and [refusal.name for refusal in sound.refused] == ["alpha"]
    assert list(Zoo.open(path).bundles) == ["beta"]
    make_endless(path / "alpha", TOY, 2)  # exported again: another graph
    assert list(Zoo.open(path).bundles) == ["alpha", "beta"]


def test_all_places_are_free_again(path: Path) -> None:
    zoo = Zoo.open(path, warm=True)

    def ask(history: list[int]) -> str:
        try:
            return str(len(zoo.bundles["alpha"].recommend_one(history, 3).items))
        except BusyError:  # "try again in a while"
            return ask(history)
        except BundleError as error:
            return error.reason

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, [[1, n] for n in range(8)]))
    assert all("did not end within" in words for words in answers)
    assert len(zoo.bundles["beta"].recommend_one([1, 2], 3).items) == 3 and time_limit.stalled() == 0


def test_a_graph_that_gets_no_processor_is_not_the_one_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(time_limit.LIMIT, "0.1")
    had = time.process_time()
    monkeypatch.setattr(time, "process_time", lambda: had)
    with time_limit.place("of a machine that does something else"):
        time.sleep(0.1 + 2 * time_limit._TICK)


def test_who_gets_no_place_is_told_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    had = time.process_time()
    monkeypatch.setattr(time, "process_time", lambda: had)  # graphs of other tests go on in threads of this process
    zoo, release = Zoo.open(path, warm=True), threading.Event()

    def hold(place: int) -> None:
        with time_limit.place(f"graph {place}"):
            release.wait(60)

    with ThreadPoolExecutor(time_limit.PLACES) as pool:
        held = [pool.submit(hold, place) for place in range(time_limit.PLACES)]
        while not time_limit.stalled():
            time.sleep(0.01)
        with pytest.raises(BusyError, match="busy"):
            zoo.bundles["beta"].recommend_one([1, 2], 3)
        release.set()
    assert not any(place.exception() for place in held)
    assert list(zoo.sound().bundles) == ["alpha", "beta"]  # no bundle is at fault
