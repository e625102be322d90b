"""What was taken away without anybody's click is kept in lost/ for seven days on which the server runs, and can be brought back.

    lost/<id>/lost.json     why and when; the rows that were taken out of the store
    lost/<id>/files/        the folders, each where it was in the home: owners/<owner>/datasets/<id>, jobs/<id>, reports/<id>

Two things come here: what has expired, with its rows; and folders that have no row in the store, which happens when a server
ended between the two, or when the store lost rows. app/store/recover.py brings them back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from app import home
from app.home import Home
from app.store import rows
from app.store.database import Store
from engine.errors import SeqscopeError
from engine.files import write_json

log = logging.getLogger("seqscope.store")
DAYS = 7
ABOUT, FILES = "lost.json", "files"
Why = Literal["expired", "without a row"]
Rows = dict[str, list[dict[str, Any]]]
"""Table → rows, column → value."""


@dataclass(frozen=True)
class Entry:
    """What was put aside at one time."""

    path: Path
    why: str
    """Why; "" where lost.json cannot be read."""
    at: str
    """UTC, to the second."""
    rows: Rows
    folders: tuple[str, ...]
    """Relative to the home: those that belong to it, which are in `files` unless a crash came between."""

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def files(self) -> Path:
        return self.path / FILES

    def here(self) -> list[str]:
        """The folders that are in it, relative to the home; those of datasets first."""
        return [
            path.relative_to(self.files).as_posix()
            for pattern in ("owners/*/datasets/*", "jobs/*", "reports/*")
            for path in sorted(self.files.glob(pattern))
        ]


def entries(at: Home) -> list[Entry]:
    """The oldest first."""
    here = []
    for path in at.lost.glob("*"):
        if path.is_dir() and home.ID.fullmatch(path.name):
            try:
                about = json.loads((path / ABOUT).read_text("utf-8"))
                here.append(Entry(path, about["why"], about["at"], about["rows"], tuple(about["folders"])))
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.warning("%s cannot be read: %s", path / ABOUT, error)
                here.append(Entry(path, "", "", {}, ()))
    return sorted(here, key=lambda entry: (entry.at, entry.id))


# --- putting aside


def put(at: Home, why: Why, rows: Rows, folders: Iterable[Path]) -> Entry:
    """An entry for rows that are about to be deleted, and for folders that `move` then puts into it."""
    staged, moment = at.stage(), datetime.now(UTC).isoformat(timespec="seconds")
    names = tuple(folder.relative_to(at.path).as_posix() for folder in folders)
    write_json(staged / ABOUT, {"why": why, "at": moment, "rows": rows, "folders": names})
    path = at.lost / home.new_id()
    at.place(staged, path)
    return Entry(path, why, moment, rows, names)


def move(at: Home, entry: Entry) -> None:
    """Its folders, those of them that are still where they were."""
    for name in entry.folders:
        if (at.path / name).is_dir():
            at.place(at.path / name, entry.files / name)


def put_folders(at: Home, folders: Sequence[Path]) -> None:
    """Folders without a row: to the entry that waits for them since a crash, or to new ones."""
    waiting = {name: entry for entry in entries(at) for name in entry.folders}
    for folder in folders:
        name = folder.relative_to(at.path).as_posix()
        entry = waiting.get(name) or put(at, "without a row", {}, [folder])
        at.place(folder, entry.files / name)
        log.warning(
            "%s has no row in the store: it is in %s for %d days; “seqscope store recover %s” brings it back",
            folder, entry.path, DAYS, entry.id,
        )  # fmt: skip


def values(answer: Any) -> list[dict[str, Any]]:
    """The rows that DuckDB answers, as they are written into lost.json."""
    names = [column[0] for column in answer.description]
    return [
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in answer.fetchall()
    ]


def expire(store: Store, due: datetime) -> int:
    """Deletes for good what was to be kept until then at most; how many. What was not known yet is kept from now on."""
    here = {entry.id: entry for entry in entries(store.home)}
    with store.file.transaction(freeing=True) as transaction:
        known = {id: expires for id, expires in store.file.ask("select id, expires from lost")}
        for id in here.keys() - known.keys():
            transaction.execute("insert into lost values (?, ?)", [id, rows.now() + timedelta(days=DAYS)])
        over = [id for id, expires in known.items() if id not in here or expires <= due]
        for id in over:
            transaction.execute("delete from lost where id = ?", [id])
    for id in over:
        store.home.discard(store.home.lost / id)
    return sum(id in here for id in over)


def find(at: Home, ids: Sequence[str]) -> list[Entry]:
    """Raises SeqscopeError where one is not there."""
    here = {entry.id: entry for entry in entries(at)}
    missing = [id for id in ids if id not in here]
    if missing:
        raise SeqscopeError(f"There is no {missing[0]} in {at.lost}. “seqscope store lost” lists what there is.")
    return [here[id] for id in ids]
