"""Catalogues of many items, prepared once on the disk, so that they open within seconds and take little memory.

    if items.are_many(path):            # exports/<dataset>/
        items, catalogue = prepared.open_(path)

    python -m app.store.prepared exports/<dataset> …      # beforehand; the first visitor waits for it otherwise

    <place>/<digest>/   items.arrow, by_id.npy (engine/bundle/items.py), search.duckdb, lists.arrow, facets.json
                        (app/store/catalogue.py), sizes.json: bytes of the others

The digest is that of items.parquet. The place lies in the folder of a visitor's dataset, and goes with it; of the server's own
datasets in SEQSCOPE_HOME, or in a temporary folder where that cannot be written. Nothing is written to exports/.
"""

import argparse
import fcntl
import functools
import hashlib
import json
import logging
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from app import home
from app.jobs.runner import ROOT, environment
from app.store.catalogue import Catalogue
from engine.bundle import items
from engine.errors import SeqscopeError
from engine.machine import yields

log = logging.getLogger("seqscope.store")
VERSION = 6
"""Of what is written; another one is made anew."""
SIZES, OF = "sizes.json", "of.txt"
HOURS = 1.0
"""That a preparation may take; five million items with texts take some minutes."""
AT_ONCE = 2
"""Preparations at the same time; each takes a core, and up to a gigabyte of memory."""
_TIMES = 3
"""What is prepared takes so many times the bytes of the items: as they are, and folded."""
_PREFIX = "seqscope: "
_SPARING = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}
_turn = threading.Semaphore(AT_ONCE)


class Prepared(NamedTuple):
    """An opened one."""

    items: items.Items
    catalogue: Catalogue


def open_(path: Path, making: Callable[[int], AbstractContextManager[None]] = lambda size: nullcontext()) -> Prepared:
    """The catalogue of a dataset; prepared first, in a process of its own, where it is not yet. Raises SeqscopeError.

    making: around the preparation; is told how many bytes of the disk it takes at most, about.
    """
    try:
        where = place(path)
        opened = _read(where / digest(path))
        if opened is None:
            with making(_TIMES * items.size(path)), _turn:
                _run(path, where)
            opened = _read(where / digest(path))
    except OSError as error:
        raise _failed(path, error.strerror or str(error)) from error
    if opened is None:
        raise _failed(path, "its files changed meanwhile, or the disk does not keep them")
    return opened


def place(path: Path) -> Path:
    """Where what is prepared of a dataset lies; made where it is missing."""
    path = path.resolve()
    if path.is_relative_to(home.root().resolve() / "owners"):
        cache = home.Folder(path.parent).cache
        cache.mkdir(mode=0o700, exist_ok=True)  # never its parents: the dataset may have been deleted
        where = cache / "catalogue"
    else:
        where = _servers() / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    where.mkdir(mode=0o700, exist_ok=True)
    if not (where / OF).exists():  # a full disk must not keep what is prepared from being read
        (where / OF).write_bytes(os.fsencode(path))
    return where


def digest(path: Path) -> str:
    """What is prepared depends on it."""
    with (path / items.FILE).open("rb") as file:
        sha = hashlib.file_digest(file, "sha256")
    sha.update(f"{VERSION} {duckdb.__version__} {pa.__version__}".encode())
    return sha.hexdigest()[:32]


def prepare(path: Path, where: Path) -> None:
    """Prepares a dataset into a place, where it is not there yet; two processes may at once. Raises SeqscopeError, OSError."""
    if not items.are_many(path):
        return
    with (where / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = where / digest(path)
        if _sound(target):
            return
        # of other items, damaged, or left by a process that was killed; whoever has it open goes on
        for other in filter(Path.is_dir, where.iterdir()):
            home.delete(other)
        staged = where / f".{secrets.token_hex(8)}"
        staged.mkdir(mode=0o700)
        try:
            items.write(path, staged)
            Catalogue.write(items.read(staged).table, staged)
            sizes = {file.name: file.stat().st_size for file in sorted(staged.iterdir())}
            (staged / SIZES).write_text(json.dumps(sizes), "utf-8")
            for file in staged.iterdir():
                with file.open("rb") as written:
                    os.fsync(written.fileno())
            if digest(path) != target.name:
                raise SeqscopeError(f"The items of {path.name} changed while they were read. Open the dataset again.")
            staged.rename(target)
        finally:
            home.delete(staged)
    for other in where.parent.glob(f"*/{OF}"):  # of datasets that the server has no more
        if not Path(os.fsdecode(other.read_bytes())).exists():
            home.delete(other.parent)


def _read(target: Path) -> Prepared | None:
    """None where it is not there, or damaged."""
    if not _sound(target):
        return None
    try:
        held = items.read(target)
        return Prepared(held, Catalogue.open(held.table, target))
    except (OSError, ValueError, TypeError, KeyError, duckdb.Error) as error:  # Arrow's are among them
        log.warning("the prepared catalogue in %s is damaged, and made anew (%s)", target, str(error).splitlines()[0])
        home.delete(target)
        return None


def _sound(target: Path) -> bool:
    """Whether all files are there, as long as they were."""
    try:
        sizes = json.loads((target / SIZES).read_text("utf-8"))
        return all((target / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _servers() -> Path:
    """Of the server's own datasets."""
    try:
        folder = home.Home(home.root()).ready() / "cache" / "catalogues"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (SeqscopeError, OSError):
        folder = Path(_temporary().name)
    return folder


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """As long as this process lives."""
    return tempfile.TemporaryDirectory(prefix="seqscope-", ignore_cleanup_errors=True)


def _run(path: Path, where: Path) -> None:
    """In a process of its own: what it takes of memory, it gives back."""
    command = [sys.executable, "-m", "app.store.prepared", str(path), "--to", str(where)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT,
            env=environment() | _SPARING, timeout=HOURS * 3600, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _failed(path, f"it took longer than {HOURS:g} h") from None
    if done.returncode:
        text = done.stderr.decode("utf-8", "replace")
        log.warning("preparing %s ended with %d: %s", path, done.returncode, text[-4_000:])
        reasons = [line.removeprefix(_PREFIX) for line in text.splitlines() if line.startswith(_PREFIX)]
        raise _failed(
            path, reasons[-1] if reasons else "the process that prepares it ended; there may be too little memory"
        )


def _failed(path: Path, reason: str) -> SeqscopeError:
    return SeqscopeError(f"The catalogue of {path.name} cannot be prepared for the search: {reason}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.store.prepared")
    parser.add_argument("datasets", nargs="+", type=Path, help="folders below exports/")
    parser.add_argument("--to", type=Path, help="where to, for one dataset")
    args = parser.parse_args()
    yields(10, oom=1000)
    try:
        for path in args.datasets:
            prepare(path, args.to or place(path))
    except (SeqscopeError, OSError, duckdb.Error, pa.ArrowException, MemoryError) as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        print(f"{_PREFIX}{words}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
