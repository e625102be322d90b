"""Which event trains, validates and tests: pure functions from event times to roles; and splits into sets of held-out items.

Leave-one-out and a split by time draw nothing. A given split (somebody has split each user's items already, as NGCF and LightGCN;
of the training items a share validates) and one of held-out users (a share of whose items is known, the rest asked for, as
Mult-VAE) do; what is drawn follows from a seed and from the order of users and events in the dataset.

Events are flat: user u's events are ``offsets[u]:offsets[u + 1]``, oldest first. Where several events of one user share a
time, their order is the order of the rows that came in, and the split keeps it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.data.dataset import SETS, Role
from engine.data.ragged import offsets_of
from engine.errors import SeqscopeError, UsageError
from engine.writing import count

KINDS = ("leave-one-out", "time", *SETS)


@dataclass(frozen=True)
class SplitOptions:
    """How a log is split."""

    kind: str = "leave-one-out"
    """"leave-one-out" (each user's last event tests, the one before validates), "time" (two moments, equal for all users),
    "given" (a file names the held-out items) or "users" (held-out users, a share of whose items is known)."""
    valid_from: int | None = None
    """kind "time": unix seconds from which events no longer train; None takes `valid_quantile`."""
    test_from: int | None = None
    """kind "time": unix seconds from which events test; None takes `test_quantile`."""
    valid_quantile: float = 0.8
    """kind "time": the share of events before `valid_from`, where no moment is given."""
    test_quantile: float = 0.9
    """kind "time": the share of events before `test_from`, where no moment is given."""
    valid_share: float = 0.1
    """kind "given": the share of each user's training items that validate; 0 for none."""
    held_out_users: tuple[float, float] = (0.1, 0.1)
    """kind "users": how many users validate and how many test; numbers below 1 are shares of all users."""
    fold_in: float = 0.8
    """kind "users": the share of a held-out user's items that is known."""
    seed: int = 0
    """kinds "given" and "users": of what is drawn."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"unknown split {self.kind!r}; there are {', '.join(KINDS)}")
        if not 0 <= self.valid_share < 1:
            raise UsageError(f"--valid-share {self.valid_share:g}: give a share from 0 to below 1")
        if not 0 < self.fold_in < 1:
            raise UsageError(f"--fold-in {self.fold_in:g}: give a share between 0 and 1")
        validate, test = self.held_out_users
        if not (
            0 <= validate < math.inf and 0 < test < math.inf and all(n < 1 or n % 1 == 0 for n in (validate, test))
        ):
            raise UsageError(
                f"--held-out-users {' '.join(f'{number:g}' for number in self.held_out_users)}: give the users that validate "
                "(0 for none) and those that test, as whole numbers or as shares below 1"
            )
        if not 0 < self.valid_quantile < self.test_quantile < 1:
            raise UsageError(
                f"split quantiles {self.valid_quantile:g} and {self.test_quantile:g} must ascend between 0 and 1"
            )

    @property
    def sets(self) -> bool:
        """Whether a user may have several held-out items."""
        return self.kind in SETS


def leave_one_out(offsets: np.ndarray) -> np.ndarray:
    """int8 [events]: the last event of a user tests, the one before validates; users with fewer than three only train.

    offsets: int64 [users + 1].
    """
    roles = np.full(int(offsets[-1]), Role.TRAIN, np.int8)
    ends = offsets[1:][np.diff(offsets) >= 3]
    roles[ends - 1] = Role.TEST
    roles[ends - 2] = Role.VALID
    return roles


def by_time(offsets: np.ndarray, timestamps: np.ndarray, valid_from: int, test_from: int) -> np.ndarray:
    """int8 [events]: what happened before `valid_from` trains; nothing that happened later does.

    A user who has history when a period begins is asked for the first event of that period: validation asks in
    [valid_from, test_from), the test from test_from on. The other events of the validation period are BETWEEN: the test
    history holds them (they had happened by then), training never sees them. All else from test_from on is LATER.

    offsets: int64 [users + 1]; timestamps: int64 [events], ascending within a user.
    """
    roles = np.full(len(timestamps), Role.LATER, np.int8)
    roles[timestamps < test_from] = Role.BETWEEN
    roles[timestamps < valid_from] = Role.TRAIN
    starts, ends = offsets[:-1], offsets[1:]
    first_valid = starts + _count_per_user(timestamps < valid_from, offsets)
    first_test = starts + _count_per_user(timestamps < test_from, offsets)
    roles[first_valid[(first_valid > starts) & (first_valid < first_test)]] = Role.VALID
    roles[first_test[(first_test > starts) & (first_test < ends)]] = Role.TEST
    return roles


def split_moments(timestamps: np.ndarray, options: SplitOptions) -> tuple[int, int]:
    """(valid_from, test_from) in unix seconds: those given, else the quantiles of `timestamps` (int64 [events])."""
    # The order statistic, never an interpolation: a moment at which something happened, the same on every machine.
    ranks = [int(q * len(timestamps)) for q in (options.valid_quantile, options.test_quantile)]
    at = np.partition(timestamps, ranks)[ranks]
    valid_from = int(at[0]) if options.valid_from is None else options.valid_from
    test_from = int(at[1]) if options.test_from is None else options.test_from
    first, last = int(timestamps.min()), int(timestamps.max())
    if not first < valid_from < test_from <= last:
        raise SeqscopeError(
            f"the time split needs first event ({first}) < valid_from ({valid_from}) < test_from ({test_from}) <= last event "
            f"({last}), all unix seconds. Give other moments or quantiles, or use --split leave-one-out."
        )
    return valid_from, test_from


def split_roles(
    options: SplitOptions, offsets: np.ndarray, timestamps: np.ndarray | None, tested: np.ndarray | None = None
) -> tuple[np.ndarray, dict[str, Any]]:
    """Roles (int8 [events]) and what dataset.json says about the split. tested: bool [events], those that a file names as held
    out (kind "given").

    Fails where no user would be left to validate or to test: such a dataset cannot choose or judge a model.
    """
    described: dict[str, Any] = {"kind": options.kind}
    if options.sets:
        if options.kind == "given":
            if tested is None:
                raise ValueError("a given split needs the events that test")
            roles = given(offsets, tested, options.valid_share, options.seed)
            described |= {"valid_share": options.valid_share, "seed": options.seed}
        else:
            roles = by_user(offsets, options.held_out_users, options.fold_in, options.seed)
            described |= {"fold_in": options.fold_in, "seed": options.seed}
        for name, role in (("valid_items", Role.VALID), ("test_items", Role.TEST)):
            described[name] = int(np.count_nonzero(roles == role))
        return roles, described
    if options.kind == "leave-one-out":
        roles = leave_one_out(offsets)
        why = "no user has three events, so none can be held out"
        advice = "Check the user column, or lower --k-core and --min-rating."
    else:
        if timestamps is None:
            raise SeqscopeError(
                "the log has no times, only an order: --split time is impossible. Use --split leave-one-out."
            )
        valid_from, test_from = split_moments(timestamps, options)
        described |= {"valid_from": valid_from, "test_from": test_from}
        roles = by_time(offsets, timestamps, valid_from, test_from)
        why = f"no user has history before {valid_from} and an event in each period (test from {test_from})"
        advice = "Choose other moments with --valid-from and --test-from."
    if not (np.any(roles == Role.VALID) and np.any(roles == Role.TEST)):
        raise SeqscopeError(f"the split leaves nobody to validate or test on: {why}. {advice}")
    return roles, described


def _count_per_user(mask: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """int64 [users]: how many events of each user `mask` (bool [events]) marks."""
    return np.diff(offsets_of(mask)[offsets])


IN_TRAINING = "held out, and in the training events of the same user"
NO_TRAINING = "held out, of users without training events"

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
            f"train; of {len(lengths):,} users {count(len(possible), 'has', 'have')} the {least:,} items that it takes. "
            "Give other numbers."
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
