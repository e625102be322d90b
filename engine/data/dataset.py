"""A prepared dataset: catalogue, log and frozen split in one folder.

    dataset.json           what it is: `DatasetInfo`
    items.parquet          item (int32, 0..n-1), item_id, title, attributes
    users.parquet          user (int32, 0..m-1), user_id
    interactions.parquet   user, item, timestamp (int64, null when the source has only an order), role (int8);
                           sorted by user, each user's events oldest first (by item where the log has no order)

The split is data, not code: every event carries the role it plays (`Role`).
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import functools
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from engine.data.ragged import Ragged, offsets_of, spread
from engine.data.repeats import RULES, about_held_out, in_words
from engine.errors import SeqscopeError
from engine.files import load_json
from engine.writing import count, in_percent

SCHEMA_VERSION = 1
SETS = ("given", "users")
"""Splits that hold out a set of items per user, not one (engine/data/split.py)."""
LATER = ("repeats", "measured", "held_out", "references")
"""Entries of dataset.json that came later: left out where there is nothing to say, as readers of before know none of them."""


class Role(enum.IntEnum):
    """What one event is used for."""

    TRAIN = 0
    VALID = 1  # an item that validation asks for
    TEST = 2  # an item that the test asks for
    LATER = 3  # from the test period on, but not asked for (global time split only): never shown to a model
    BETWEEN = (
        4  # in a history that is asked, never trained on: of the validation period, or a held-out user's fold-in share
    )


@dataclass(frozen=True)
class Reference:
    """What somebody else reached on the same events under the same split."""

    model: str
    """The name that a bundle of the same method has here."""
    title: str
    protocol: str
    """As evaluations are named, the users that it is of among it: "full, warm"."""
    metrics: dict[str, float]
    """"NDCG@10" → 0.1410."""
    source: str
    """Who measured it, as part of a sentence."""

    def __post_init__(self) -> None:
        texts = (self.model, self.title, self.protocol, self.source)
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.metrics, dict):
            raise ValueError("a reference names model, title, protocol and source, and has metrics")
        if not all(isinstance(value, float) for value in self.metrics.values()):
            raise ValueError(f"metrics of the reference {self.title!r} are not all numbers")


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
    """1 − pairs of a user and an item in the log, each counted once / (users · items)."""
    time: dict[str, Any]
    """unit ("second", "day", "order": the rows stand in order, or "none": a user's items are a set), first, last (unix seconds,
    null without times), ties (events that share user and time with the event before them)."""
    split: dict[str, Any]
    """kind ("leave-one-out", "time", "given" or "users"); for "time" valid_from and test_from (unix seconds); for the last two
    what was drawn, and valid_items and test_items, how many items are held out."""
    options: dict[str, Any]
    """Every import option, so that the import can be repeated."""
    left_out: dict[str, int]
    """Rows that were not used, by reason."""
    fingerprint: str
    """sha256 over item ids, events, times, roles and whether repeats count: two datasets with one fingerprint give the same
    training and the same test."""
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
    """How many of the test's held-out items tie, repeat, are negative; of sets, and where many are: untrained
    (engine/data/repeats.py). Empty: a dataset of before they were counted, or one without a log."""
    references: list[Reference] = field(default_factory=list)
    """Figures from elsewhere that those of this dataset may be held against."""

    @property
    def sets(self) -> bool:
        """Whether a user may have several held-out items."""
        return self.split.get("kind") in SETS

    @property
    def held_out_items(self) -> int:
        """That the test asks for, of all users together."""
        return int(self.split.get("test_items", self.counts.get("test", 0)))

    @property
    def ordered(self) -> bool:
        """Whether it is known which of a user's events came first."""
        return self.time.get("unit") != "none"

    def to_json(self) -> str:
        fields = {name: value for name, value in dataclasses.asdict(self).items() if name not in LATER or value}
        return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> DatasetInfo:
        try:
            raw = load_json(path)
        except (FileNotFoundError, NotADirectoryError):
            raise SeqscopeError(
                f"{path.parent} is not a prepared dataset: {path.name} is missing. Make one with `seqscope data import`."
            )
        except ValueError as error:
            raise SeqscopeError(f"{path} is not valid JSON ({error}). Import the dataset again.")
        if not isinstance(raw, dict) or raw.get("schema_version") != SCHEMA_VERSION:
            version = raw.get("schema_version") if isinstance(raw, dict) else None
            raise SeqscopeError(
                f"{path}: schema version {version}, this program reads {SCHEMA_VERSION}. Import the dataset again."
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
        try:
            references = [Reference(**entry) for entry in raw.pop("references", [])]
        except (TypeError, ValueError) as error:
            raise SeqscopeError(f"{path}: references: {error}. Import the dataset again.")
        return cls(**raw, references=references)


@dataclass(frozen=True)
class Cases:
    """Evaluation cases: one per user with held-out items.

    users: int32 [cases]; history: what is known of that user, oldest first; held_out: int32, the items to be found. Where each
    user has one of these, which leave-one-out and the time split see to, `targets` are as long as `users`. times: int64, seconds,
    when the items of the history were (those held out never are among them); None where the log does not say.
    """

    users: np.ndarray
    history: Ragged
    held_out: Ragged
    times: Ragged | None = None

    @classmethod
    def of(cls, users: np.ndarray, history: Ragged, targets: np.ndarray, times: Ragged | None = None) -> Cases:
        """With one held-out item each; targets: int32 [cases]."""
        return cls(users, history, Ragged(targets, np.arange(len(users) + 1)), times)

    def __len__(self) -> int:
        return len(self.users)

    @property
    def targets(self) -> np.ndarray:
        """int32 [targets]: the held-out items, case by case."""
        return self.held_out.values

    @functools.cached_property
    def owner(self) -> np.ndarray:
        """int64 [targets]: the case of each target."""
        return self.held_out.owners

    @functools.cached_property
    def repeated(self) -> np.ndarray:
        """bool [targets]: whether the target is in its own history."""
        items = 1 + max(int(values.max(initial=0)) for values in (self.history.values, self.targets))
        known = self.history.owners * items + self.history.values
        return np.isin(self.owner * items + self.targets, known)

    def take(self, rows: np.ndarray) -> Cases:
        times = None if self.times is None else self.times.take(rows)
        return Cases(self.users[rows], self.history.take(rows), self.held_out.take(rows), times)


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
        except FileNotFoundError:
            raise SeqscopeError(
                f"{self.path} has no log (interactions.parquet is missing), as exports have none. Name the imported dataset."
            )
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
        self.events = Ragged(table["item"].to_numpy().astype(np.int32), offsets_of(counts))
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

    @functools.cached_property
    def validating(self) -> npt.NDArray[np.int64]:
        """Places of the events that validation asks for; in what `with_validation` returns, of those that it had asked for."""
        return np.flatnonzero(self.roles == Role.VALID)

    @property
    def validates(self) -> bool:
        """Whether anything is held out for validation."""
        return bool(np.any(self.roles == Role.VALID))

    def with_validation(self) -> Dataset:
        """The same log, in which what validation had held back trains, too; nothing is left to validate with.

        That is: the validation items (leave-one-out, a given split), everything before the test period (a split by time), or all
        events of the users who validate (held-out users). The test's cases, with their histories, stay as they are.
        """
        held_back = self.roles == Role.VALID
        kind = self.info.split["kind"]
        if kind == "time":
            held_back |= self.roles == Role.BETWEEN
        elif kind == "users":
            owners = self.events.owners
            held_back = np.isin(owners, owners[held_back])
        whole = copy.copy(self)
        whole.validating = self.validating
        for computed in ("training", "popularity"):
            whole.__dict__.pop(computed, None)
        whole.roles = np.where(held_back, np.int8(Role.TRAIN), self.roles)
        return whole

    def cases(self, split: str) -> Cases:
        """The held-out items of `split` ("valid" or "test") with all that came before them; where they are sets, with all that
        is not held out in that split.

        The history of a test case contains the validation items.
        """
        role = {"valid": Role.VALID, "test": Role.TEST}[split]
        times = None if self.timestamps is None else Ragged(self.timestamps, self.events.offsets)
        if self.info.sets:
            roles = (Role.TRAIN, Role.BETWEEN) if split == "valid" else (Role.TRAIN, Role.BETWEEN, Role.VALID)
            known, held_out = np.isin(self.roles, roles), self.events.where(self.roles == role)
            users = np.flatnonzero(held_out.lengths).astype(np.int32)
            moments = None if times is None else times.where(known).take(users)
            return Cases(users, self.events.where(known).take(users), held_out.take(users), moments)
        held = np.flatnonzero(self.roles == role)
        users = (np.searchsorted(self.events.offsets, held, side="right") - 1).astype(np.int32)
        starts = self.events.offsets[users]
        offsets, source = offsets_of(held - starts), spread(starts, held - starts)
        moments = None if times is None else Ragged(times.values[source], offsets)
        return Cases.of(users, Ragged(self.events.values[source], offsets), self.events.values[held], moments)


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


# --- in words


def describe(info: DatasetInfo) -> str:
    """What a person wants to know before training on it; several lines."""
    counts, lengths = info.counts, info.lengths
    rows = [
        ("dataset", f"{info.name}: {info.title}" + (" (SIMULATED)" if info.simulated else "")),
        ("source", info.source),
        ("licence", info.licence),
        ("size", ", ".join(count(counts[f"{kind}s"], kind) for kind in ("user", "item", "event"))),
        (
            "history",
            f"min {lengths['min']:g}, median {lengths['median']:g}, mean {lengths['mean']:.2f}, max {lengths['max']:g} events",
        ),
        ("sparsity", in_percent(info.sparsity, 4)),
        ("time", _time(info)),
        ("attributes", ", ".join(info.attributes) or "none"),
        ("split", _split(info)),
        *([("repeats", in_words(info.measured, info.repeats))] if info.repeats and info.measured else []),
        ("held out", _held_out(info)),
        ("left out", "; ".join(f"{events:,} × {reason}" for reason, events in info.left_out.items()) or "nothing"),
        ("fingerprint", info.fingerprint),
    ]
    if not counts["events"]:  # what would be said of events is said of nothing
        rows = [row for row in rows if row[0] not in ("history", "sparsity", "time", "held out")]
    return "\n".join(f"{name:<12} {text}".replace("\n", "\n" + " " * 13) for name, text in rows)


def _held_out(info: DatasetInfo) -> str:
    sentences = about_held_out(info.held_out, info.held_out_items, info.options, flags=True)
    if info.sets:
        several = (
            f"{count(info.split['test_items'], 'item tests', 'items test')}, "
            f"{count(info.split['valid_items'], 'validates', 'validate')}; a user may have several"
        )
        return "\n".join([several, *sentences])
    return " ".join(sentences) or "not counted"


def _time(info: DatasetInfo) -> str:
    if not info.ordered:
        return "none, and no order: a user's items are a set"
    if info.time["unit"] == "order":
        return "none; events are in order"
    first, last = (_moment(info.time[end]) for end in ("first", "last"))
    return f"{first} to {last}, by {info.time['unit']}; {count(info.time['ties'], 'tie')} (order kept from the import)"


def _split(info: DatasetInfo) -> str:
    counts, kind = info.counts, info.split["kind"]
    if not counts["events"]:
        return "none: there is no log"
    if kind == "time":
        kind = (
            f"time, validation from {_moment(info.split['valid_from'])}, test from {_moment(info.split['test_from'])}"
        )
    train = count(counts["train"], "event trains", "events train")
    validate = count(counts["valid"], "user validates", "users validate")
    return f"{kind}: {train}, {validate}, {count(counts['test'], 'tests', 'test')}"


def _moment(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d" if seconds % 86_400 == 0 else "%Y-%m-%d %H:%M:%S")
