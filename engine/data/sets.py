"""Splits into sets: a user's training and held-out items, of which nobody knows which came first. Pure numpy.

    given     somebody has split each user's items already (NGCF, LightGCN); of the training items a share validates
    by_user   some users are held out whole; a share of their items is known (fold-in), the rest is asked for (Mult-VAE)

What is drawn follows from a seed and from the order of users and events in the dataset.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.data.dataset import Role
from engine.errors import SeqscopeError

IN_TRAINING = "held-out item that its user has in training"
NO_TRAINING = "held-out item of a user without training items"

Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Roles = npt.NDArray[np.int8]


def in_training(user: npt.NDArray[np.integer], item: npt.NDArray[np.integer], tested: Mask) -> Mask:
    """bool [events]: tested events whose item their user has among the others. Arrays are in any order, [events]."""
    pair = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    return tested & np.isin(pair, pair[~tested])


def without_training(user: npt.NDArray[np.integer], tested: Mask) -> Mask:
    """bool [events]: tested events of users who have no others; nothing is known of them to ask a model with."""
    return tested & ~np.isin(user, user[~tested])


def given(offsets: Offsets, tested: Mask, valid_share: float, seed: int) -> Roles:
    """int8 [events]: what is `tested` (bool [events]) tests; of each user's other items a share, rounded, validates, but never
    the last one (NGCF, section 4.1: 10 % of the training interactions).

    offsets: int64 [users + 1].
    """
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    trains = np.bincount(owner[~tested], minlength=len(offsets) - 1)
    validate = np.clip(np.floor(trains * valid_share + 0.5).astype(np.int64), 0, np.maximum(trains - 1, 0))
    roles = np.full(len(owner), Role.TRAIN, np.int8)
    roles[tested] = Role.TEST
    roles[_sample(owner, offsets, ~tested, validate, seed)] = Role.VALID
    if not tested.any():
        raise SeqscopeError(
            "the split leaves nobody to test on: no held-out item is left. Check the file that --test names."
        )
    if valid_share and not validate.any():
        raise SeqscopeError(
            f"the split leaves nobody to validate on: {valid_share:g} of each user's training items is less than one. Give a "
            "larger --valid-share, or 0 to train without validation."
        )
    return roles


def by_user(offsets: Offsets, held_out_users: tuple[float, float], fold_in: float, seed: int) -> Roles:
    """int8 [events]: users who validate and users who test are drawn, and of each a share `fold_in` of the items that is known
    (BETWEEN); the rest, rounded down, is asked for. All other users train (Liang et al. 2018, section 4.1).

    offsets: int64 [users + 1]; held_out_users: how many validate and test, below 1 as shares of all users. Only users with an
    item to ask for are drawn. Raises SeqscopeError where there are too few of them.
    """
    lengths = np.diff(offsets)
    to_find = np.floor(lengths * (1 - fold_in) + 1e-9).astype(np.int64)  # .2 · 5 is 1, whatever floats make of it
    possible = np.flatnonzero(to_find)
    validate, test = (int(number if number >= 1 else round(number * len(lengths))) for number in held_out_users)
    least = int(np.ceil(1 / (1 - fold_in) - 1e-9))
    if not test or validate + test > len(possible) or validate + test >= len(lengths):
        raise SeqscopeError(
            f"--held-out-users: {validate:,} users to validate and {test:,} to test are to be held out, and some must be left to "
            f"train; of {len(lengths):,} users {len(possible):,} have the {least:,} items that it takes. Give other numbers."
        )
    drawn = np.random.default_rng([seed, 1]).permutation(possible)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    held = np.zeros(len(lengths), np.int8)
    held[drawn[:validate]], held[drawn[validate : validate + test]] = Role.VALID, Role.TEST
    roles = np.where(held[owner] != Role.TRAIN, Role.BETWEEN, Role.TRAIN).astype(np.int8)
    some = _sample(owner, offsets, np.ones(len(owner), bool), np.where(held != Role.TRAIN, to_find, 0), seed)
    roles[some] = held[owner[some]]
    return roles


def _sample(
    owner: npt.NDArray[np.int64], offsets: Offsets, among: Mask, many: npt.NDArray[np.int64], seed: int
) -> Mask:
    """bool [events]: of each user's events in `among` as many as `many` (int64 [users]) says."""
    lot = np.random.default_rng([seed, 0]).random(len(owner))
    order = np.lexsort((lot, ~among, owner))
    drawn = np.zeros(len(owner), bool)
    drawn[order[np.arange(len(owner)) - offsets[owner] < many[owner]]] = True
    return drawn
