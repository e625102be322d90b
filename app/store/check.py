"""Looks for what does not belong together in SEQSCOPE_HOME; changes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from app import home
from app.store import lost, migrations, sweep
from app.store.backup import rows_of
from app.store.database import Store
from app.text import count
from engine.errors import SeqscopeError

_JSON = {"dataset": "reading", "history": "items", "job": "spec", "report": "document"}
_NEEDED = {"checked": "clean/items.parquet", "ready": "exports/dataset.json"}


@dataclass
class StoreReport:
    """What was found."""

    rows: dict[str, int] = field(default_factory=dict)
    """Table → rows."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is odd, but in order."""


def check(copy: Path) -> StoreReport:
    """copy: a copy of the store (snapshot.take)."""
    store = Store(copy, home=home.here())
    result = StoreReport()
    try:
        result.rows = rows_of(store)
        _readable(store, result)
        _with_files(store, result)
        _left_over(store, result)
    finally:
        store.close()
    mode = home.root().stat().st_mode
    if mode & 0o077:
        result.problems.append(
            f"Others on this machine may read {home.root()} (mode {mode & 0o777:o}). Mend it with: chmod 700 {home.root()}"
        )
    return result


def form(copy: Path) -> tuple[int, int]:
    """(the last migration that the store has seen, the last one that there is)"""
    try:
        with duckdb.connect(str(copy), read_only=True) as connection:
            return migrations.reached(connection), len(migrations.STEPS)
    except duckdb.Error as error:
        raise SeqscopeError(f"The store cannot be read: {str(error).splitlines()[0]}") from error


def _readable(store: Store, result: StoreReport) -> None:
    for table, column in _JSON.items():
        for id, text in store.file.ask(f"select id, {column} from {table}"):
            try:
                json.loads(text)
            except ValueError:
                result.problems.append(f"The {table} {id} cannot be read: its {column} is not JSON.")
    for table in result.rows:
        for (id,) in store.file.ask(
            f"select id from {table} where not regexp_full_match(owner, ?)", [home.OWNER.pattern]
        ):
            result.problems.append(f"The {table} {id} belongs to nobody: its owner has not the form of one.")


def _with_files(store: Store, result: StoreReport) -> None:
    for owner, id, state in store.file.ask("select owner, id, state from dataset order by created"):
        folder = home.dataset(owner, id).path
        if not folder.is_dir():
            result.problems.append(f"The dataset {id} of {owner} has no files: {folder} is missing.")
        elif state in _NEEDED and not (folder / _NEEDED[state]).is_file():
            result.problems.append(f"The dataset {id} of {owner} is said to be {state}, but has no {_NEEDED[state]}.")
    for id, state in store.file.ask("select id, state from job where state in ('queued', 'running')"):
        if not home.job(id).is_dir():
            result.notes.append(f"The job {id} is {state} and has no folder yet.")


def _left_over(store: Store, result: StoreReport) -> None:
    left = sweep.left_over(store)
    if left:
        result.notes.append(
            f"{count(len(left), 'folder')} without a row; the server puts them into lost/ within ten minutes."
        )
    known = {(owner, id) for owner, id in store.file.ask("select owner, id from dataset")}
    strange = [
        path
        for owner, path in sweep.dataset_folders(store.home)
        if (owner, path.name) not in known and path not in left
    ]
    result.problems += [
        f"{path} belongs to no dataset, and is older than the store: nothing removes it. "
        "“seqscope store accept” puts it into lost/."
        for path in strange
    ]
    aside = lost.entries(home.here())
    if aside:
        result.notes.append(f"{count(len(aside), 'entry', 'entries')} in lost/: “seqscope store lost” lists them.")
    replaced = sorted(path.name for path in home.root().glob("before-*"))
    if replaced:
        result.notes.append(
            f"{', '.join(replaced)}: what a restored backup has replaced. Delete it when you no longer need it."
        )
