"""Back up, restore and check what visitors uploaded and saved (SEQSCOPE_HOME).

seqscope store backup FILE.tar     everything in one file; the server may go on running
seqscope store restore FILE.tar    put it back; the server must be stopped
seqscope store check               say what is there, and what does not belong together
"""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "back up, restore and check what visitors uploaded and saved"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    backup = actions.add_parser("backup", help="write everything into one file")
    backup.add_argument("file", type=Path, help="the file to write, such as seqscope-2026-11-20.tar")
    restore = actions.add_parser("restore", help="put a backup back")
    restore.add_argument("file", type=Path, help="a file that “seqscope store backup” wrote")
    restore.add_argument("--replace", action="store_true", help="put it in the place of the store that is there")
    actions.add_parser("check", help="say what is there, and what does not belong together")


def run(args: argparse.Namespace) -> int:
    if args.action == "backup":
        return _backup(args.file)
    return _restore(args.file, args.replace) if args.action == "restore" else _check()


def _backup(file: Path) -> int:
    from app.store.backup import backup

    made = backup(file)
    print(f"{file}: {_counted(made.rows)}; {made.files:,} files, {made.bytes / 1e6:,.1f} MB")
    return 0


def _restore(file: Path, replace: bool) -> int:
    from app import home
    from app.store.backup import restore

    made, before = restore(file, replace=replace)
    print(f"{home.root()}: {_counted(made.rows)}; {made.files:,} files, {made.bytes / 1e6:,.1f} MB")
    if before is not None:
        print(f"What was there before is in {before}.")
    return 0


def _check() -> int:
    from app import home
    from app.store import snapshot
    from app.store.check import check, form

    folder = home.stage()
    try:
        copy = snapshot.take(folder)
        reached, last = form(copy)
        found = check(copy)
    finally:
        home.delete(folder)
    print(f"{home.root()}: {_counted(found.rows)}; form {reached} of {last}")
    for words in (*found.notes, *found.problems):
        print(f"  {words}")
    print("In order." if not found.problems else f"Problems: {len(found.problems)}")
    return 1 if found.problems else 0


def _counted(rows: dict[str, int]) -> str:
    from app.text import count, listed

    many = {"history": "histories"}
    return listed([count(number, table, many.get(table)) for table, number in rows.items()])
