"""What the store keeps: one frozen record per row. Times are UTC."""

import dataclasses
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar

from app import home
from app.text import clean
from engine.errors import SeqscopeError
from engine.machine import number
from engine.writing import count

DatasetState = Literal["uploaded", "checked", "ready", "failed"]
"""uploaded: files are there, perhaps not yet mapped; checked: clean/ is complete; ready: exports/ opens as a zoo."""
JobKind = Literal["baselines", "prepare", "train", "batch"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")
OF_DATASETS = ("history", "comparison", "report", "job")
"""Tables whose rows belong to a dataset."""


@dataclass(frozen=True)
class StoredDataset:
    """What somebody uploaded. Its files: home.dataset(owner, id)."""

    id: str
    owner: str
    title: str
    created: datetime
    expires: datetime | None
    """None: kept until it is deleted."""
    state: DatasetState
    rows_items: int
    rows_events: int
    bytes: int
    """Of all files of the dataset, as last counted."""
    reading: dict[str, Any]
    """How the upload is read; its form is that of app/uploads."""
    fingerprint: str
    """Of the catalogue and log as they are used; "" before."""


@dataclass(frozen=True)
class Named:
    """Something that was saved under a name."""

    id: str
    owner: str
    dataset: str
    """The id of the owner's dataset, or the name of one that comes with the app."""
    name: str
    created: datetime
    changed: datetime
    expires: datetime | None


@dataclass(frozen=True)
class History(Named):
    """A history."""

    items: tuple[str, ...]
    """item_ids, oldest first."""


@dataclass(frozen=True)
class Comparison(Named):
    """An address: a page and what it shows."""

    address: str
    """Path and parameters, such as /?ds=sample&h=…; never a host."""


@dataclass(frozen=True)
class Report(Named):
    """A report that was made."""

    document: dict[str, Any] | None
    """report.json; its form is that of app/reports. None in lists."""


@dataclass(frozen=True)
class Job:
    """Work in the background. Its files: home.job(id)."""

    id: str
    owner: str
    dataset: str
    kind: JobKind
    spec: dict[str, Any]
    """What is to be done; its form is that of app/jobs."""
    state: JobState
    created: datetime
    started: datetime | None
    ended: datetime | None
    message: str
    """Why it failed, in words; "" otherwise."""


# --- what the tables have in common: whose row it is, until when it is kept

MAX_NAME = 100  # characters of a name or title
Record = TypeVar("Record", StoredDataset, History, Comparison, Job, Report)
_JSON: dict[str, Callable[[Any], Any]] = {"reading": dict, "items": tuple, "spec": dict, "document": dict}
"""Columns that hold JSON → what is made of it."""
_OFTEN = timedelta(hours=1)  # renewing more often than this is not worth a write


class NotFound(SeqscopeError):
    """There is no such thing, or it is somebody else's: nobody is told which."""


def known(owner: str) -> str:
    """The owner, if it has the form of one."""
    if not isinstance(owner, str) or not home.OWNER.fullmatch(owner):
        raise ValueError("not an owner")
    return owner


def now() -> datetime:
    """As it is stored: UTC, without saying so."""
    return datetime.now(UTC).replace(tzinfo=None)


def keep_days() -> float:
    """How long a browser's data are kept after they were last used: SEQSCOPE_KEEP_DAYS, 7 days otherwise."""
    return number("SEQSCOPE_KEEP_DAYS", 7.0)


def kept_for() -> str:
    """`keep_days` in words: 30 days."""
    days = keep_days()
    return count(int(days), "day") if days == int(days) else f"{days:g} days"


def until(owner: str) -> datetime | None:
    """When what is used now expires: an account's data never do."""
    return now() + timedelta(days=keep_days()) if owner.startswith("b") else None


def worth_renewing(owner: str, expires: datetime | None) -> bool:
    renewed = until(owner)
    return renewed is not None and (expires is None or renewed - expires.replace(tzinfo=None) > _OFTEN)


def columns(kind: type[Any]) -> str:
    """Of the table of a record: its fields, in their order."""
    return ", ".join(field.name for field in dataclasses.fields(kind))


def of_row(kind: type[Record], row: Sequence[Any]) -> Record:
    """The record of a row with its `columns`: times say that they are UTC, what is not a text or a number is read from JSON."""
    values = []
    for field, value in zip(dataclasses.fields(kind), row, strict=True):
        if isinstance(value, datetime):
            value = value.replace(tzinfo=UTC)
        elif field.name in _JSON and value is not None:
            value = _JSON[field.name](json.loads(value))
        values.append(value)
    return kind(*values)


def named(text: object, kind: str = "name") -> str:
    """A name as it is kept: one line, of which something can be seen. Raises SeqscopeError."""
    name = clean(text, MAX_NAME)
    if not any(unicodedata.category(c)[0] in "LNPS" for c in name):
        raise SeqscopeError(f"Give it a {kind}: at least one letter.")
    return name


def written(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
