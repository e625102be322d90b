"""What the store keeps: one frozen record per row. Times are UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

DatasetState = Literal["uploaded", "checked", "ready", "failed"]
"""uploaded: files are there, perhaps not yet mapped; checked: clean/ is complete; ready: exports/ opens as a zoo."""
JobState = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Dataset:
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
class History:
    """A history with a name."""

    id: str
    owner: str
    dataset: str
    """The id of the owner's dataset, or the name of one that comes with the app."""
    name: str
    items: tuple[str, ...]
    """item_ids, oldest first."""
    created: datetime
    changed: datetime
    expires: datetime | None


@dataclass(frozen=True)
class Comparison:
    """An address with a name: a page and what it shows."""

    id: str
    owner: str
    dataset: str
    name: str
    address: str
    """Path and parameters, such as /?ds=sample&h=…; never a host."""
    created: datetime
    changed: datetime
    expires: datetime | None


@dataclass(frozen=True)
class Job:
    """Work in the background. Its files: home.job(id)."""

    id: str
    owner: str
    dataset: str
    kind: str
    """prepare, train or batch."""
    spec: dict[str, Any]
    """What is to be done; its form is that of app/jobs."""
    state: JobState
    created: datetime
    started: datetime | None
    ended: datetime | None
    message: str
    """Why it failed, in words; "" otherwise."""


@dataclass(frozen=True)
class Report:
    """A report that was made. Its files, if any: home.report(id)."""

    id: str
    owner: str
    dataset: str
    name: str
    created: datetime
    changed: datetime
    expires: datetime | None
    document: dict[str, Any] | None
    """report.json; its form is that of app/reports. None in lists."""
