"""A status is replaced as a whole: whoever reads, and whenever a writer is killed, it is one that somebody wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.jobs import status
from app.jobs.status import Status
from tests.waiting import wait

WRITER = """
import sys
from pathlib import Path
from app.jobs.status import Status
folder, number = Path(sys.argv[1]), 0
while True:
    number += 1
    Status(state="running", step=number, words=f"{number} " * 2000, notes=("x" * 1000,) * 20).write(folder)
"""


def whole(folder: Path) -> Status:
    """Raises where half of one is there, which `status.read` would hide."""
    found = Status.model_validate_json((folder / status.FILE).read_bytes())
    assert found.words == f"{found.step} " * 2000
    return found


def test_readers_never_see_half_of_one(tmp_path: Path) -> None:
    done = threading.Event()

    def write() -> None:
        for number in range(1, 400):
            Status(step=number, words=f"{number} " * 2000).write(tmp_path)
        done.set()

    Status(step=0, words="0 " * 2000).write(tmp_path)
    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    while not done.is_set():
        seen.append(whole(tmp_path).step)
    thread.join()
    assert seen == sorted(seen) and len(set(seen)) > 10
    assert [path.name for path in tmp_path.iterdir()] == [status.FILE]


def test_a_writer_that_is_killed_leaves_a_whole_one(tmp_path: Path, root: Path) -> None:
    path = tmp_path / status.FILE
    for turn in range(2):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=root)
        try:
            before = path.stat().st_ino if turn else 0
            wait(lambda before=before: path.exists() and path.stat().st_ino != before)  # type: ignore[misc]
            time.sleep(0.02 * turn)
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        assert whole(tmp_path).step >= 1


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / status.FILE).mkdir()
    with pytest.raises(OSError):
        Status().write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [status.FILE]
