"""A prepared dataset: catalogue, log and frozen split in one folder.

    dataset.json           what it is: `DatasetInfo`
    items.parquet          item (int32, 0..n-1), item_id, title, attributes
    users.parquet          user (int32, 0..m-1), user_id
    interactions.parquet   user, item, timestamp (int64, null when the source has only an order), role (int8);
                           sorted by user, each user's events oldest first

The split is data, not code: every event carries the role it plays (`Role`).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

from engine.data.ragged import Ragged
from engine.data.repeats import RULES
from engine.errors import SeqscopeError

SCHEMA_VERSION = 1
LATER = ("repeats", "measured", "held_out")
"""Entries of dataset.json that came later: left out where there is nothing to say, as readers of before know none of them."""


class Role(enum.IntEnum):
    """What one event is used for."""

    TRAIN = 0
    VALID = 1  # the item that validation asks for
    TEST = 2  # the item that the test asks for
    LATER = 3  # from the test period on, but not asked for (global time split only): never shown to a model
    BETWEEN = (
        4  # in the validation period, but not asked for (global time split only): in the test history, never trained on
    )


@dataclass(frozen=True)
class DatasetInfo:
    """dataset.json. Also copied into exports/<dataset>/, so that every figure in the app can name its protocol."""

    name: str
    """Folder-safe name: lowercase letters, digits, dashes."""
    title: str
    """Name for people."""
    source: str
    """Where the log comes from, in a sentence; in lines of their own, what to bear in mind about it."""
    licence: str
    """The terms of the source, in a sentence."""
    simulated: bool
    """True where people and events were generated; shown wherever the data is shown."""
    counts: dict[str, int]
    """users, items, events, train, valid, test (the last two: users with a held-out item)."""
    lengths: dict[str, float]
    """Events per user: min, median, mean, max."""
    sparsity: float
    """1 − events / (users · items)."""
    time: dict[str, Any]
    """unit ("second", "day" or "order"), first, last (unix seconds, null for "order"), ties (events that share user and time)."""
    split: dict[str, Any]
    """kind ("leave-one-out" or "time"), and for "time" valid_from and test_from (unix seconds)."""
    options: dict[str, Any]
    """Every import option, so that the import can be repeated."""
    left_out: dict[str, int]
    """Rows that were not used, by reason."""
    fingerprint: str
    """sha256 over item ids, events, roles and whether repeats count: two datasets with one fingerprint give the same training
    and the same test."""
    created: str
    """UTC time, ISO 8601."""
    created_by: str
    """Program and version."""
    schema_version: int = SCHEMA_VERSION
    attributes: list[str] = field(default_factory=list)
    """Names of the attribute columns in items.parquet."""
    repeats: Literal["count", "first"] | None = None
    """Whether items that a user comes back to count (engine/data/repeats.py). None: a dataset of before this was asked, or one
    without a log; the history is left out, and whatever repeats is in the log."""
    measured: dict[str, float] = field(default_factory=dict)
    """Of the log before repeats were dropped: repeated_events and repeated_targets, the shares of events and of the test's
    held-out items whose item the user had before. Empty where nothing was measured."""
    held_out: dict[str, int] = field(default_factory=dict)
    """How many of the test's held-out items tie, repeat, are negative (engine/data/held_out.py). Empty: a dataset of before they
    were counted, or one without a log."""

    def to_json(self) -> str:
        said = {name: value for name, value in dataclasses.asdict(self).items() if name not in LATER or value}
        return json.dumps(said, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> DatasetInfo:
        try:
            raw = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise SeqscopeError(
                f"{path.parent} is not a prepared dataset: {path.name} is missing. Make one with `seqscope data import`."
            )
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise SeqscopeError(f"{path} is not valid JSON ({error}). Import the dataset again.")
        if not isinstance(raw, dict) or raw.get("schema_version") != SCHEMA_VERSION:
            found = raw.get("schema_version") if isinstance(raw, dict) else None
            raise SeqscopeError(
                f"{path}: schema version {found}, this program reads {SCHEMA_VERSION}. Import the dataset again."
            )
        names = {f.name for f in dataclasses.fields(cls)}
        missing = sorted(names - raw.keys() - {"attributes", *LATER})
        if missing or raw.keys() - names:
            raise SeqscopeError(
                f"{path}: missing {missing}, unknown {sorted(raw.keys() - names)}. Import the dataset again."
            )
        if raw.get("repeats") not in (None, *RULES):
            raise SeqscopeError(
                f"{path}: repeats is {raw['repeats']!r}, one of {', '.join(RULES)}. Import the dataset again."
            )
        return cls(**raw)


@dataclass(frozen=True)
class Cases:
    """Evaluation cases: one per user with a held-out item.

    users: int32 [cases]; history: every earlier event of that user, oldest first; targets: int32 [cases].
    """

    users: np.ndarray
    history: Ragged
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.users)

    @functools.cached_property
    def repeated(self) -> np.ndarray:
        """bool [cases]: whether the target is in its own history."""
        rows = np.repeat(np.arange(len(self)), self.history.lengths)
        return np.bincount(rows[self.history.values == self.targets[rows]], minlength=len(self)) > 0

    def take(self, rows: np.ndarray) -> Cases:
        return Cases(self.users[rows], self.history.take(rows), self.targets[rows])


class Dataset:
    """A prepared dataset, its log in memory as flat arrays.

    Attributes: path; info; events (Ragged int32, item per event, one row per user); roles (int8 [events]);
    timestamps (int64 [events] or None).
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.info = DatasetInfo.read(self.path / "dataset.json")
        try:
            table = pq.read_table(self.path / "interactions.parquet", columns=["user", "item", "timestamp", "role"])
        except (OSError, ValueError, KeyError) as error:
            raise SeqscopeError(
                f"{self.path / 'interactions.parquet'} cannot be read ({error}). Import the dataset again."
            )
        user = table["user"].to_numpy()
        counts = np.bincount(user, minlength=self.info.counts["users"])
        if len(user) != self.info.counts["events"] or np.any(np.diff(user) < 0):
            raise SeqscopeError(
                f"{self.path}: interactions.parquet does not match dataset.json. Import the dataset again."
            )
        self.events = Ragged(
            table["item"].to_numpy().astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        )
        self.roles = table["role"].to_numpy().astype(np.int8)
        self.timestamps = None if table["timestamp"].null_count else table["timestamp"].to_numpy()

    @property
    def num_users(self) -> int:
        return self.info.counts["users"]

    @property
    def num_items(self) -> int:
        return self.info.counts["items"]

    @functools.cached_property
    def training(self) -> Ragged:
        """int32 items, one row per user (possibly empty): all that a model may learn from."""
        return self.events.where(self.roles == Role.TRAIN)

    @functools.cached_property
    def popularity(self) -> np.ndarray:
        """int64 [items]: training events per item."""
        return np.bincount(self.training.values, minlength=self.num_items)

    def cases(self, split: str) -> Cases:
        """The held-out items of `split` ("valid" or "test") with all that came before them.

        The history of a test case contains the validation item.
        """
        role = {"valid": Role.VALID, "test": Role.TEST}[split]
        held = np.flatnonzero(self.roles == role)
        users = (np.searchsorted(self.events.offsets, held, side="right") - 1).astype(np.int32)
        starts = self.events.offsets[users]
        lengths = held - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        source = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Cases(users, Ragged(self.events.values[source], offsets), self.events.values[held])


def fingerprint(
    item_ids: list[str], events: Ragged, timestamps: np.ndarray | None, roles: np.ndarray, repeats: str | None = None
) -> str:
    """sha256 (hex) over everything training and evaluation depend on, independent of file format and platform.

    Where repeats count, candidates are others, so that is part of it. It makes no difference to a log of first events.
    """
    digest = hashlib.sha256()
    for item_id in item_ids:
        digest.update(item_id.encode("utf-8") + b"\0")
    arrays = [events.offsets, events.values, roles, np.empty(0, np.int64) if timestamps is None else timestamps]
    for array, dtype in zip(arrays, ("<i8", "<i4", "<i1", "<i8"), strict=True):
        digest.update(np.ascontiguousarray(array, dtype).tobytes())
        digest.update(b"\1")
    if repeats == "count":
        digest.update(b"repeats count\1")
    return digest.hexdigest()
