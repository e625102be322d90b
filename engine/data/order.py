"""Sort a log, drop repeated events, take its k-core: pure functions on flat arrays.

Arrays are user, item: int32 [events] and time: int64 [events] or None, in the order of the files unless said otherwise.
"""

from __future__ import annotations

import numpy as np


def time_order(user: np.ndarray, item: np.ndarray, time: np.ndarray | None, ties: str, seed: int) -> np.ndarray:
    """int64 [events]: the positions that sort events by user, then time, then as `ties` says.

    ties: "file" keeps the order of the rows, "item" takes the item number, "shuffle" a permutation drawn with `seed`.
    Without times the order of the rows is the order of events, and `ties` has nothing to decide.
    """
    if time is None:
        return np.argsort(user, kind="stable")
    if ties == "item":
        return np.lexsort((item, time, user))
    if ties == "shuffle":
        return np.lexsort((np.random.default_rng(seed).permutation(len(user)), time, user))
    return np.lexsort((time, user))  # stable: ties keep the order of the rows


def first_mentions(user: np.ndarray, item: np.ndarray, time: np.ndarray | None, rule: str) -> np.ndarray:
    """bool [events]: which events stay, of arrays that are sorted by user and time.

    rule: "keep" all, "first" or "last" of each user and item, or "exact": the first of those that share the time as well.
    """
    stays = np.ones(len(user), bool)
    if rule == "keep" or (rule == "exact" and time is None):
        return stays
    pair = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(pair, kind="stable")  # within a pair still oldest first
    again = pair[order][1:] == pair[order][:-1]
    if rule == "exact" and time is not None:
        again &= time[order][1:] == time[order][:-1]
    stays[order[:-1][again] if rule == "last" else order[1:][again]] = False
    return stays


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
