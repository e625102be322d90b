"""Sorting, repeated events, k-core: against definitions that fit on one line."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from engine.data.order import core, renumber, repeated, time_order

Log = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture
def log() -> Log:
    """user, item, time of 400 events in file order, with many ties and repetitions"""
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 25, 400).astype(np.int32), rng.integers(0, 12, 400).astype(np.int32)
    return user, item, rng.integers(0, 9, 400)


def test_ties_by_place_in_the_file_or_by_item(log: Log) -> None:
    user, item, time = log
    by_file = sorted(range(len(user)), key=lambda row: (user[row], time[row], row))
    by_item = sorted(range(len(user)), key=lambda row: (user[row], time[row], item[row], row))
    assert time_order(user, item, time, "file", 0).tolist() == by_file
    assert time_order(user, item, time, "item", 0).tolist() == by_item


def test_ties_shuffled_by_seed(log: Log) -> None:
    user, item, time = log
    drawn = time_order(user, item, time, "shuffle", 7)
    assert np.array_equal(drawn, time_order(user, item, time, "shuffle", 7))
    assert not np.array_equal(drawn, time_order(user, item, time, "shuffle", 8))
    assert sorted(drawn) == list(range(len(user)))
    assert [(user[r], time[r]) for r in drawn] == sorted(zip(user, time, strict=True))


def test_without_times_rows_stand_in_order(log: Log) -> None:
    user, item, _ = log
    expected = sorted(range(len(user)), key=lambda row: (user[row], row))
    for ties in ("file", "item", "shuffle"):
        assert time_order(user, item, None, ties, 1).tolist() == expected


@pytest.mark.parametrize("timed", [False, True])
def test_repeated_events(log: Log, timed: bool) -> None:
    order = time_order(*log, "file", 0)
    user, item, time = (column[order] for column in log)
    expected, seen = [], set()
    for row in zip(user.tolist(), item.tolist(), time.tolist() if timed else [0] * len(user), strict=True):
        expected.append(row in seen)
        seen.add(row)
    assert repeated(user, item, time if timed else None).tolist() == expected


@pytest.mark.parametrize(("min_user", "min_item"), [(0, 0), (16, 20), (18, 1), (1, 40), (500, 500)])
def test_core_is_the_fixed_point(log: Log, min_user: int, min_item: int) -> None:
    user, item, _ = log
    kept = set(range(len(user)))
    while True:
        users, items = Counter(user[row] for row in kept), Counter(item[row] for row in kept)
        fewer = {row for row in kept if users[user[row]] >= min_user and items[item[row]] >= min_item}
        if fewer == kept:
            break
        kept = fewer
    assert set(np.flatnonzero(core(user, item, min_user, min_item))) == kept


def test_renumber_leaves_no_gap() -> None:
    new, used = renumber(np.array([7, 3, 7, 5], np.int32), 9)
    assert new.tolist() == [2, 0, 2, 1] and used.tolist() == [3, 5, 7]
