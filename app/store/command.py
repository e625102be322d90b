"""Back up, restore, check and recover what visitors uploaded and saved (SEQSCOPE_HOME).

seqscope store backup FILE.tar     everything in one file; the server may go on running
seqscope store restore FILE.tar    put it back; the server must be stopped
seqscope store check               say what is there, and what does not belong together
seqscope store accept              go on with a store that lacks changes; the server must be stopped
seqscope store lost                list what expired or had no row, and is kept for seven days
seqscope store recover ID…         bring that back; the server must be stopped
"""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from engine.writing import count

if TYPE_CHECKING:
    from app.store.lost import Entry

HELP = "back up, restore, check and recover what visitors uploaded and saved"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    backup = actions.add_parser("backup", help="write everything into one file")
    backup.add_argument("file", type=Path, help="the file to write, such as seqscope-2026-11-20.tar")
    restore = actions.add_parser("restore", help="put a backup back")
    restore.add_argument("file", type=Path, help="a file that “seqscope store backup” wrote")
    restore.add_argument("--replace", action="store_true", help="put it in the place of the store that is there")
    actions.add_parser("check", help="say what is there, and what does not belong together")
    actions.add_parser(
        "accept", help="go on with a store that lacks changes it had, when neither its files nor a backup can be had"
    )
    actions.add_parser("lost", help="list what expired or had no row, and is kept for seven days")
    recover = actions.add_parser("recover", help="bring back what “seqscope store lost” lists")
    recover.add_argument("ids", nargs="*", metavar="ID", help="as “seqscope store lost” lists them")
    recover.add_argument("--all", action="store_true", help="everything that is there")


def run(args: argparse.Namespace) -> int:
    if args.action == "backup":
        return _backup(args.file)
    if args.action == "restore":
        return _restore(args.file, args.replace)
    if args.action == "recover":
        return _recover(args.ids, args.all)
    return {"check": _check, "accept": _accept, "lost": _lost}[args.action]()


def _backup(file: Path) -> int:
    from app.store.backup import backup

    made = backup(file)
    print(f"{file}: {_counted(made.rows)}; {count(made.files, 'file')}, {made.bytes / 1e6:,.1f} MB")
    return 0


def _restore(file: Path, replace: bool) -> int:
    from app import home
    from app.store.backup import restore

    made, before = restore(file, replace=replace)
    print(f"{home.root()}: {_counted(made.rows)}; {count(made.files, 'file')}, {made.bytes / 1e6:,.1f} MB")
    if before is not None:
        print(f"What was there before is in {before}.")
    return 0


def _check() -> int:
    from app import home
    from app.store import backup
    from app.store.sweep import StoreReport, check, form

    def checked() -> tuple[int, int, StoreReport]:
        folder = home.here().stage()
        try:
            copy = backup.take_snapshot(folder)
            return *form(copy), check(copy)
        finally:
            home.delete(folder)

    backup.expect_store()
    reached, last, result = checked()
    if result.problems:  # or a server that runs has deleted something meanwhile
        _, _, again = checked()
        result.problems = [words for words in result.problems if words in again.problems]
    print(f"{home.root()}: {_counted(result.rows)}; form {reached} of {last}")
    for words in (*result.notes, *result.problems):
        print(f"  {words}")
    print("In order." if not result.problems else f"Problems: {len(result.problems)}")
    return 1 if result.problems else 0


def _accept() -> int:
    """All folders without a row go to lost/, however old: the store may have been made anew."""
    from app import home
    from app.store import lost, sweep
    from app.store.backup import expect_store, rows_of
    from app.store.database import Store

    expect_store(or_files=True)
    with closing(Store(accept=True)) as store:
        folders = sweep.left_over(store, older=True)
        lost.put_folders(store.home, folders)
        print(f"{home.root()}: {_counted(rows_of(store))}, taken as they are.")
    if folders:
        print(
            f"{count(len(folders), 'folder')} without a row went to {store.home.lost}: “seqscope store recover --all” brings "
            f"them back, within {lost.DAYS} days."
        )
    return 0


def _lost() -> int:
    from app import home
    from app.store import lost

    entries = _entries()
    for entry in entries:
        rows = [
            f"{row.get('title') or row.get('name') or row['id']} ({table})"
            for table in entry.rows
            for row in entry.rows[table]
        ]
        print(f"{entry.id}  {entry.at or 'unknown'}  {entry.why or 'unknown'}  {home.size(entry.files) / 1e6:,.1f} MB")
        for words in (*rows, *entry.here()):
            print(f"    {words}")
    print(
        f"{home.here().lost}: {count(len(entries), 'entry', 'entries')}, each kept for {lost.DAYS} days on which the server runs."
    )
    return 0


def _recover(ids: list[str], everything: bool) -> int:
    from app import home
    from app.store import lost
    from app.store.database import Store
    from app.store.lost import recover
    from engine.errors import SeqscopeError

    if everything == bool(ids):
        raise SeqscopeError("Name what is to be brought back, as “seqscope store lost” lists it, or give --all.")
    entries = _entries() if everything else lost.find(home.here(), ids)
    if not entries:
        print(f"{home.here().lost}: nothing to bring back.")
        return 0
    left = 0
    with closing(Store()) as store:
        # datasets before the jobs over them
        for entry in sorted(entries, key=lambda entry: not any(name.startswith("owners") for name in entry.here())):
            recovered = recover(store, entry)
            left += len(recovered.left)
            print(f"{entry.id}: {' '.join(recovered.left) or 'brought back'}")
            for words in recovered.without:
                print(f"    {words}")
    return 1 if left else 0


def _entries() -> list[Entry]:
    """Raises SeqscopeError where there are none, and no store either."""
    from app import home
    from app.store import backup, lost

    entries = lost.entries(home.here())
    if not entries:
        backup.expect_store(or_files=True)
    return entries


def _counted(rows: dict[str, int]) -> str:
    from app.text import listed
    from engine.writing import count

    many = {"history": "histories"}
    return listed([count(number, table, many.get(table)) for table, number in rows.items()])
