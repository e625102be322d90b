"""The cache: computed by one while the others wait, read-only, and how often the models' folder is looked at."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from app import zoo
from app.analysis import cache
from app.analysis.cache import cached, of_opened
from engine.runtime import LeaveOneOut, Zoo
from tests.runtime.bundles import make_zoo


def test_one_computes_for_all_who_ask_the_same_and_nobody_else_waits() -> None:
    made: list[int] = []

    @cached(5)
    def seven(key: str) -> int:
        time.sleep(0.02)
        made.append(1)
        return 7

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(seven, ["a"] * 16)) == [7] * 16
    assert made == [1]
    here = threading.Barrier(2, timeout=60)

    @cached(5)
    def make(key: str) -> str:
        here.wait()  # both are inside at once
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(make, ("a", "b"))) == ["made", "made"]


def test_what_is_known_of_an_opened_dataset_does_not_keep_it_alive(tmp_path: Path) -> None:
    @cached(2, by=of_opened)
    def titles(models: Zoo) -> list[str]:
        return list(models.titles)

    models = Zoo.open(make_zoo(tmp_path))
    assert titles(models) is titles(models)
    gone = weakref.ref(models)
    del models
    gc.collect()
    assert gone() is None and len(titles) == 1


def test_the_oldest_question_goes_after_a_deletion_all_do_and_what_goes_wrong_is_tried_again() -> None:
    asked: list[str] = []

    @cached(2, by=lambda key, text: key)
    def record(key: str, text: str) -> None:
        asked.append(key)

    for key in "abacacb":
        record(key, "anything")
    assert asked == ["a", "b", "c", "b"]
    cache.forget()
    record("b", "anything")
    assert asked[-2:] == ["b", "b"]
    divisors = [0, 1]

    @cached(2)
    def divide() -> float:
        return 3 // divisors.pop(0)

    with pytest.raises(ZeroDivisionError):
        divide()
    assert divide() == 3


def test_nobody_can_change_what_others_get() -> None:
    effect = LeaveOneOut(3, 1.0, np.ones(2), -0.5, np.zeros(2, np.float32), 0.5, np.zeros(2, np.float32), range(2))
    (shared,) = cached(2)(lambda: [effect])()
    for array in (shared.effect, shared.rank_without):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    table = cached(2)(lambda: pd.DataFrame({"a": [1, 2]}))
    frame = table()
    frame.loc[0, "a"] = 7
    frame["b"] = 0
    assert table().to_dict("list") == {"a": [1, 2]}


def test_a_run_of_a_page_looks_at_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    path = make_zoo(tmp_path, name="toys")
    zoo.open_zoo("toys")
    looks = []
    monkeypatch.setattr(zoo._OPEN, "_stamp", lambda path: looks.append(path) or Zoo.stamp(path))
    with zoo.looked_at_once():
        first = zoo.open_zoo("toys")
        (path / "alpha" / "manifest.json").unlink()
        assert zoo.open_zoo("toys") is first and len(looks) == 1
    assert "alpha" in first.bundles and "alpha" not in zoo.open_zoo("toys").bundles
    with zoo.looked_at_once():
        assert "alpha" not in zoo.open_zoo("toys").bundles
