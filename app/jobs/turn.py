"""A step of jobs: what was made beside what is shown takes its place, all of it at once; or joins it, where both are of one state
of the dataset.

python -m app.jobs.turn DATASET MADE SHOWN
"""

import ctypes
import os
import secrets
import shutil
import sys
from pathlib import Path

from app.jobs.fresh import fingerprint

NOTHING = "Nothing of the new could be made, so what was there before stays."
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def turn(dataset: Path, made: Path, shown: Path) -> bool:
    """False where there is nothing to be shown. Interrupted, it is done again."""
    current = fingerprint(dataset)
    if any(made.glob("*/manifest.json")) and current is not None and fingerprint(made) == current:
        if fingerprint(shown) == current:
            join(made, shown)
        elif shown.exists():
            exchange(made, shown)
        else:
            os.rename(made, shown)
    elif fingerprint(shown) != current:
        return False
    if made.exists():  # by now what was shown before
        _remove(made, shown)
    return True


def _remove(folder: Path, shown: Path) -> None:
    old = shown.with_name(f".{shown.name}.{secrets.token_hex(4)}.gone")
    os.rename(folder, old)
    shutil.rmtree(old, ignore_errors=True)


def join(made: Path, shown: Path) -> None:
    """Every bundle, and what bundles share, goes over, in place of one of its name; the bundles last, which make up the rest."""
    bundles = [path.parent for path in sorted(made.glob("*/manifest.json"))]
    beside = [
        path for path in sorted(made.glob("*/*/")) if path.parent not in bundles and not path.name.startswith(".")
    ]
    for folder in (*beside, *bundles):
        place = shown / folder.relative_to(made)
        if place.exists():
            exchange(folder, place)
            _remove(folder, shown)  # done again, it would come back
        else:
            place.parent.mkdir(exist_ok=True)
            os.rename(folder, place)
    for file in made.iterdir():
        if file.is_file() and not (shown / file.name).exists():
            os.rename(file, shown / file.name)


def exchange(first: Path, second: Path) -> None:
    """Both are there at every moment, where the system can do that."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # not Linux
        rename = None
    if rename is None or rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE):
        aside = first.with_name(f".{first.name}.{secrets.token_hex(4)}.gone")
        os.rename(second, aside)
        os.rename(first, second)
        os.rename(aside, first)


def main() -> int:
    if not turn(*map(Path, sys.argv[1:])):
        print(f"seqscope: {NOTHING}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
