"""Sort a log, find its repeated events, take its k-core: pure functions on flat arrays.

Arrays are user, item: int32 [events] and time: int64 [events] or None, in the order of the files unless said otherwise.
"""

from __future__ import annotations

import numpy as np


def time_order(user: np.ndarray, item: np.ndarray, time: np.ndarray | None, ties: str, seed: int) -> np.ndarray:
    """int64 [events]: the positions that sort events by user, then time, then as `ties` says.

    ties: "file" and "known" keep the order of the rows, "item" takes the item number, "shuffle" a permutation drawn with `seed`.
    Without times the order of the rows is the order of events, and `ties` has nothing to decide.
    """
    if time is None:
        return np.argsort(user, kind="stable")
    if ties == "item":
        return np.lexsort((item, time, user))
    if ties == "shuffle":
        return np.lexsort((np.random.default_rng(seed).permutation(len(user)), time, user))
    return np.lexsort((time, user))  # stable: ties keep the order of the rows


def repeated(user: np.ndarray, item: np.ndarray, time: np.ndarray | None = None) -> np.ndarray:
    """bool [events]: which events repeat an earlier one of the same user and item, and of the same time where `time` is given.

    Arrays are sorted by user and time.
    """
    again = np.zeros(len(user), bool)
    pair = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(pair, kind="stable")  # within a pair still oldest first
    same = pair[order][1:] == pair[order][:-1]
    if time is not None:
        same &= time[order][1:] == time[order][:-1]
    again[order[1:][same]] = True
    return again


def core(user: np.ndarray, item: np.ndarray, min_user: int, min_item: int) -> np.ndarray:
    """bool [events]: the largest set of events in which every user has `min_user` events and every item `min_item`."""
    stays = np.ones(len(user), bool)
    while True:
        per_user = np.bincount(user[stays], minlength=int(user.max(initial=-1)) + 1)
        per_item = np.bincount(item[stays], minlength=int(item.max(initial=-1)) + 1)
        fewer = stays & (per_user >= min_user)[user] & (per_item >= min_item)[item]
        if np.array_equal(fewer, stays):
            return stays
        stays = fewer


def renumber(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(new numbers int32, the old numbers that are in use int64), both ascending: dense numbers without gaps."""
    used = np.flatnonzero(np.bincount(numbers, minlength=size))
    new = np.zeros(size, np.int32)
    new[used] = np.arange(len(used), dtype=np.int32)
    return new[numbers], used
