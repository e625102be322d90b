"""Eight threads on one zoo get the answers that one gets."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.bundle.files import Lazy
from engine.runtime import BundleError, Zoo, generator
from tests.runtime.bundles import make_zoo
from tests.runtime.generators import ToyGenerator, ragged, write_generator


def answers(zoo: Zoo, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for _ in range(2):
        for bundle in zoo.bundles.values():
            history = rng.integers(0, 40, rng.integers(1, 12)).tolist()
            top = bundle.recommend_one(history, 10)
            found += [top.items, top.scores, bundle.leave_one_out(history, 3).effect, bundle.ranks(history, [1, 2])]
            if bundle.cannot("attention") is None:
                found.append(bundle.attention(history).weights)
            if bundle.cannot("neighbours") is None:
                found.append(bundle.neighbours(history[0], 5).items)
            if bundle.cannot("identifiers") is None:
                trace = bundle.trace(history)
                found += [trace.scores, trace.tokens]
    return found


def test_eight_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "WALK", 0)  # by a beam: the toy's tree is so small that answers would be exact
    path = make_zoo(tmp_path)
    write_generator(path, ToyGenerator(identifiers=ragged(shared=False)))
    calm = Zoo.open(path)
    expected = [answers(calm, seed) for seed in range(8)]
    zoo = Zoo.open(path)  # fresh: all threads meet sessions that are still to be made
    start = threading.Barrier(8)

    def work(seed: int) -> list[np.ndarray]:
        start.wait()
        return answers(zoo, seed)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_fault_is_kept_and_another_error_is_not() -> None:
    made = []

    def make(error: Exception) -> int:
        made.append(1)
        raise error

    broken = Lazy(lambda: make(BundleError("a", "b", "c")))
    for _ in range(2):
        with pytest.raises(BundleError):
            broken.value()
    assert len(made) == 1
    unlucky = Lazy(lambda: make(MemoryError()))
    for _ in range(2):
        with pytest.raises(MemoryError):
            unlucky.value()
    assert len(made) == 3
