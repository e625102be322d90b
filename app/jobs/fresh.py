"""A step of jobs: what was made for another state of the dataset goes, so that the new can come.

python -m app.jobs.fresh DATASET EXPORTS RUNS
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from pathlib import Path

from engine.files import write_text

OF = ".fingerprint"
"""In RUNS: of which state of the dataset they are."""


def fresh(dataset: Path, exports: Path, runs: Path) -> list[str]:
    """The names of what was taken away: of `exports` and `runs`, those of another fingerprint than the prepared dataset's."""
    current = fingerprint(dataset)
    gone = []
    for folder, made_of in ((exports, fingerprint(exports)), (runs, _noted(runs))):
        if folder.is_dir() and made_of != current:
            old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.gone")
            os.rename(folder, old)  # at once: a page sees all of it or nothing
            shutil.rmtree(old, ignore_errors=True)
            gone.append(folder.name)
    runs.mkdir(exist_ok=True)
    write_text(runs / OF, current or "", durable=False)
    return gone


def fingerprint(folder: Path) -> str | None:
    """That of a prepared dataset, or of a zoo."""
    try:
        info = json.loads((folder / "dataset.json").read_text("utf-8"))
        return str(info["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def has_log(folder: Path) -> bool | None:
    """Of a prepared dataset; None where that cannot be said."""
    try:
        return bool(json.loads((folder / "dataset.json").read_text("utf-8"))["counts"]["events"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def count(folder: Path, kind: str) -> int:
    """How many "items", "users" or "events" a prepared dataset has; 0 where there is none."""
    try:
        return int(json.loads((folder / "dataset.json").read_text("utf-8"))["counts"][kind])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _noted(runs: Path) -> str | None:
    try:
        return (runs / OF).read_text("utf-8")
    except (OSError, ValueError):
        return None


def main() -> int:
    if len(sys.argv) != 4:
        print("seqscope: usage: python -m app.jobs.fresh DATASET EXPORTS RUNS", file=sys.stderr)
        return 2
    gone = fresh(*map(Path, sys.argv[1:]))
    if gone:
        print(f"made for another state of the dataset, and gone: {', '.join(gone)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
