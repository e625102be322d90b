"""A batch as a process of its own, so that a page stays quick and a crash takes nothing along: started, watched, cancelled.

    run = Child.start(folder, zoo, source, "lists.parquet", ["--models", "sasrec"])
    run.state()            # Running(words, done, of, left), Done(path, words) or Failed(words)
    run.cancel()

Only so many run at a time on one server; `start` says so where there is no room.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from engine.errors import SeqscopeError

AT_ONCE = 1
MEMORY = 6_000  # MB that the process may take
_running: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


class Running(NamedTuple):
    words: str
    done: int
    of: int
    left: float | None
    """Seconds."""


class Done(NamedTuple):
    path: Path
    words: str


class Failed(NamedTuple):
    words: str


@dataclass(frozen=True)
class Child:
    """One batch. folder: its own, with log and output."""

    folder: Path
    out: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path, zoo: Path, source: str, name: str, options: Sequence[str]) -> Child:
        """source: a file's path, or `histories.PEOPLE`. Raises SeqscopeError where as many run as may."""
        out = folder / name
        words = ["report", "batch", str(zoo), source, "--to", str(out), "--memory", str(MEMORY), *options]
        environment = {**os.environ, "SEQSCOPE_PROGRESS": str(folder / "progress.json")}
        with _lock:
            _running[:] = [one for one in _running if one.poll() is None]
            if len(_running) >= AT_ONCE:
                raise SeqscopeError("Another batch is running on this server. Try again when it has ended.")
            with (folder / "log.txt").open("wb") as log:
                process = _started([sys.executable, "-m", "engine", *words], environment, log)
            _running.append(process)
        return cls(folder, out, process)

    def state(self) -> Running | Done | Failed:
        code = self.process.poll()
        if code is None:
            return self._progress()
        lines = (self.folder / "log.txt").read_text("utf-8", errors="replace").strip().splitlines()
        if code == 0 and self.out.is_file():
            return Done(self.out, lines[-1].partition(": ")[2] if lines else "")
        if code in (130, -signal.SIGTERM):
            return Failed("Cancelled.")
        said = next((line.removeprefix("seqscope: ") for line in reversed(lines) if line.startswith("seqscope: ")), "")
        return Failed(said or "The batch ended without saying why; it may have taken more memory than there is.")

    def cancel(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def _progress(self) -> Running:
        try:
            found = json.loads((self.folder / "progress.json").read_text("utf-8"))
            return Running(str(found["words"]), int(found["done"]), int(found["of"]), found["left"])
        except (OSError, ValueError, KeyError, TypeError):
            return Running("Reading the histories", 0, 0, None)


def _started(words: Sequence[str], environment: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    here = Path(__file__).resolve().parents[2]  # where the packages engine and app lie
    return subprocess.Popen(
        words, cwd=here, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
