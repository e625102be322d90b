"""docs/deployment/nginx.conf before two replicas: visitors stay on theirs; sockets and files pass. Needs nginx (apt)."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import keys
from tests import clients
from tests.door.test_uploads import held, put

NGINX = os.environ.get("SEQSCOPE_NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx not found (apt-get install nginx)")


@contextmanager
def proxied(conf: str, folder: Path, *replicas: clients.Server) -> Iterator[str]:
    """nginx with that configuration before these servers, at a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for written, server in zip(("127.0.0.1:8501", "127.0.0.1:8502"), replicas, strict=True):
        assert written in conf
        conf = conf.replace(written, server.url.removeprefix("http://"))
    conf = re.sub(r"listen 80;", f"listen 127.0.0.1:{port};", conf)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.getuid() == 0 else ""  # its workers write into the test's folder
    whole = f"daemon off; {user} pid {folder}/pid; events {{}} http {{ access_log off; {temporary} {conf} }}"
    (folder / "nginx.conf").write_text(whole)
    assert NGINX is not None
    process = subprocess.Popen([NGINX, "-c", folder / "nginx.conf", "-p", folder, "-e", folder / "error.log"])
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def test_visitors_stay_on_their_replica(root: Path, tmp_path: Path) -> None:
    replicas = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        replicas.append(
            clients.start(tmp_path, tmp_path / name / "home", tmp_path / name / "log", script="tests/door/small_app.py")
        )
    conf = (root / "docs" / "deployment" / "nginx.conf").read_text("utf-8")

    async def visit(url: str, name: str) -> int:
        """Sends a file and sees it again over other connections: which replica has it, under either name of the cookie."""
        async with clients.visitor(url) as anna:
            await anna.run()
            key = anna.http.cookies[keys.COOKIE]
            anna.http.cookies.clear()
            async with clients.visitor(url, {name: key}) as again:
                await again.run()
                assert (await put(again, "file")).status_code == 204
                for _ in range(5):
                    assert "file" in (await held(again))[again.session]
                    assert len((await again.http.get(again.link("numbers"))).content) == 1_000_000
                found = [
                    n
                    for n, one in enumerate(replicas)
                    if again.session in urllib.request.urlopen(f"{one.url}/held", timeout=5).read().decode()
                ]
                assert len(found) == 1
                return found[0]

    async def act(url: str) -> None:
        for name in (keys.COOKIE, keys.SECURE_COOKIE):
            found = await asyncio.gather(*(visit(url, name) for _ in range(6)))
            assert set(found) == {0, 1}

    try:
        with proxied(conf, tmp_path, *replicas) as url:
            asyncio.run(act(url))
    finally:
        clients.stop(*replicas)
