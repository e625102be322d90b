"""Three owners: two browsers and an account; and another server that holds the store."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ANNA = "b" + "0a" * 16
BEN = "b" + "1b" * 16
CLARA = "a" + "2c" * 16


@contextlib.contextmanager
def another_server(root: Path) -> Iterator[int]:
    """The number of its process, which ends with the block. root: the repository's."""
    words = (
        "import sys; from app.store.server import open_store; open_store(); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", words]
    server = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None and server.stdout.readline() == "open\n"
        yield server.pid
    finally:
        server.communicate()
