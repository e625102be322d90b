"""A status is replaced as a whole: whoever reads, it is one that somebody wrote."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.jobs import status
from app.jobs.status import Status


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


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / status.FILE).mkdir()
    with pytest.raises(OSError):
        Status().write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [status.FILE]
