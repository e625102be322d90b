"""How runners are started, and whether they live. On this machine: processes of their own, known by the lock that they hold."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from app.jobs.runner import LOCK, LOG, ROOT, environment


class Launcher(Protocol):
    def start(self, folder: Path) -> None:
        """A runner for the job in `folder`; nothing where it has one. Raises OSError or SeqscopeError where none can be had."""

    def alive(self, folder: Path) -> bool:
        """Whether the job has a runner, whoever started it."""

    def stop(self, folder: Path) -> None:
        """Ends what will not end by itself; a runner looks for `cancel` on its own."""


class Local:
    """Processes of this machine, in sessions of their own: they live on when the server ends."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, folder: Path) -> None:
        self._reap()
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            with (folder / LOG).open("ab") as log:
                # the lock goes along: there is no moment at which nobody holds it
                child = subprocess.Popen(
                    [sys.executable, "-m", "app.jobs.runner", str(folder), "--lock", str(handle)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=environment(), start_new_session=True,
                    pass_fds=(handle,),
                )  # fmt: skip
            self._children.append(child)
        finally:
            os.close(handle)

    def alive(self, folder: Path) -> bool:
        self._reap()
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def stop(self, folder: Path) -> None:
        """It looks for itself."""

    def _reap(self) -> None:
        self._children = [child for child in self._children if child.poll() is None]
