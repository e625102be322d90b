"""The app as it is served: it stands behind the front door, asks nobody on the internet, and writes for its own account alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import websockets

from tests import clients
from tests.clients import visitor
from tests.runtime.bundles import make_zoo

# Loaded by the server and by every process that it starts. A datagram socket that is connected sends nothing yet: Streamlit reads
# the machine's own address from one.
RECORDER = """
import os, socket

def note(host):
    if host not in (None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"):
        with open(os.environ["OUTWARD"], "a") as file:
            file.write(f"{host}\\n")

def noting(name):
    plain = getattr(socket.socket, name)
    def call(self, *given):
        where = given[-1]
        if isinstance(where, tuple) and not (name == "connect" and self.type == socket.SOCK_DGRAM):
            note(where[0])
        return plain(self, *given)
    setattr(socket.socket, name, call)

for name in ("connect", "connect_ex", "sendto"):
    noting(name)
look_up = socket.getaddrinfo
def getaddrinfo(host, *given, **named):
    note(host)
    return look_up(host, *given, **named)
socket.getaddrinfo = getaddrinfo
"""


def test_the_app_stands_behind_the_door_and_calls_nobody(root: Path, tmp_path: Path) -> None:
    (tmp_path / "recorder").mkdir()
    (tmp_path / "recorder" / "sitecustomize.py").write_text(RECORDER)
    home, outward = tmp_path / "home", tmp_path / "outward.txt"
    pages = [path.parent.name for path in (root / "app" / "screens").glob("*/page.py")]
    env = {"PYTHONPATH": str(tmp_path / "recorder"), "OUTWARD": str(outward)}
    exports = make_zoo(tmp_path / "exports", name="toys").parent

    async def act(url: str) -> None:
        async with visitor(url) as anna:
            for page in pages:
                await anna.run(page="" if page == "compare" else page)
            assert anna.errors == []
            assert (await anna.http.get("/_stcore/metrics")).status_code == 404
            assert "frame-ancestors" in (await anna.http.get("/")).headers["content-security-policy"]
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(f"{url.replace('http', 'ws')}/_stcore/stream", origin="http://other.example.org")  # type: ignore[arg-type]

    with clients.running(exports, home, "--server.address=0.0.0.0", **env) as server:
        asyncio.run(act(server.url))
    assert not outward.exists(), outward.read_text()
    open_to_others = [str(path) for path in home.rglob("*") if path.stat().st_mode & 0o077]
    assert open_to_others == []
