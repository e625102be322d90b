"""A step of jobs: what was made for another state of the dataset goes, so that the new can come.

python -m app.jobs.fresh DATASET EXPORTS RUNS
"""

import os
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any

from engine.files import read_json, write_text

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
    said = read_json(folder / "dataset.json").get("fingerprint")
    return None if said is None else str(said)


def has_log(folder: Path) -> bool | None:
    """Of a prepared dataset; None where that cannot be said."""
    events = _counts(folder).get("events")
    return None if events is None else bool(events)


def count(folder: Path, kind: str) -> int:
    """How many "items", "users" or "events" a prepared dataset has; 0 where there is none."""
    number = _counts(folder).get(kind)
    return number if isinstance(number, int) else 0


def has_times(folder: Path) -> bool | None:
    """Whether the events of a prepared dataset say when they were; None where that cannot be said."""
    times = read_json(folder / "dataset.json").get("time")
    return times.get("first") is not None if isinstance(times, dict) else None


def _counts(folder: Path) -> dict[str, Any]:
    counts = read_json(folder / "dataset.json").get("counts")
    return counts if isinstance(counts, dict) else {}


def _noted(runs: Path) -> str | None:
    try:
        return (runs / OF).read_text("utf-8")
    except (OSError, ValueError):
        return None


def main() -> int:
    gone = fresh(*map(Path, sys.argv[1:]))
    if gone:
        print(f"made for another state of the dataset, and gone: {', '.join(gone)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
