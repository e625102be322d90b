"""Answers that are kept, and how often the models' folder is looked at."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from app import zoo
from app.kept import Kept
from engine.runtime import LeaveOneOut, Zoo
from tests.runtime.bundles import make_zoo


def test_one_asks_and_the_others_wait() -> None:
    kept: Kept[int] = Kept(5)
    made: list[int] = []

    def make() -> int:
        time.sleep(0.02)
        made.append(1)
        return 7

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: kept.get("a", make), range(16))) == [7] * 16
    assert made == [1]


def test_different_questions_do_not_wait_for_each_other() -> None:
    kept: Kept[str] = Kept(5)
    here = threading.Barrier(2, timeout=60)

    def make() -> str:
        here.wait()  # both are inside at once
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda asked: kept.get(asked, make), ("a", "b"))) == ["made", "made"]


def test_the_oldest_question_goes() -> None:
    kept: Kept[str] = Kept(2)
    for asked in ("a", "b", "a", "c"):
        kept.get(asked, lambda: "before")
    assert [kept.get(asked, lambda: "after") for asked in ("a", "c", "b")] == ["before", "before", "after"]


def test_what_goes_wrong_is_tried_again() -> None:
    kept: Kept[int] = Kept(2)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 3) == 3


def test_nobody_can_change_what_others_get() -> None:
    effect = LeaveOneOut(3, 1.0, np.ones(2), -0.5, np.zeros(2, np.float32), 0.5, np.zeros(2, np.float32), range(2))
    kept: Kept[list[LeaveOneOut]] = Kept(2)
    (found,) = kept.get("a", lambda: [effect])
    with pytest.raises(ValueError, match="read-only"):
        found.effect[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        found.rank_without[0] = 1


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
