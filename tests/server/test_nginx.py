"""docs/deployment/nginx.conf before two replicas: visitors stay on theirs; sockets, files, cookies and addresses pass.

`apt-get install nginx` has it run, or SEQSCOPE_NGINX=/path/to/nginx."""

import asyncio
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import websockets

from app.server import keys
from tests import clients
from tests.server.conftest import start_small
from tests.server.contents import content
from tests.server.test_uploads import held, put

NGINX = os.environ.get("SEQSCOPE_NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    NGINX is None, reason="nginx not found (apt-get install nginx, or name one in SEQSCOPE_NGINX)"
)


@contextmanager
def proxied(conf: str, folder: Path, *replicas: clients.Server) -> Iterator[str]:
    """nginx with that configuration before these servers, at a port of its own."""
    port = clients.free_port()
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
    server = clients.Server(f"http://127.0.0.1:{port}", folder, process, folder / "error.log")
    try:
        assert clients.answers(server), server.log
        yield server.url
    finally:
        clients.stop(server)


@pytest.mark.long
def test_visitors_stay_on_their_replica(root: Path, tmp_path: Path) -> None:
    replicas = [start_small(tmp_path / name) for name in ("one", "two")]
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
                    assert (await again.http.get(again.link("made"))).content == content("")
                (which,) = (
                    number
                    for number, replica in enumerate(replicas)
                    if again.session
                    in urllib.request.urlopen(f"{replica.url}/held", timeout=clients.PATIENCE).read().decode()
                )
                return which

    async def address(url: str) -> str:
        """That the app sees of a visitor from 127.0.0.2 who claims to be another."""
        async with (
            httpx.AsyncClient() as http,
            websockets.connect(
                f"{url.replace('http', 'ws')}/_stcore/stream",
                subprotocols=["streamlit"],  # type: ignore[list-item]
                origin=url,  # type: ignore[arg-type]
                additional_headers={"X-Forwarded-For": "192.0.2.1"},
                local_addr=("127.0.0.2", 0),
            ) as connection,
        ):
            visitor = clients.Visitor(http, connection)
            await visitor.run()
            return str(visitor.shown("text")[0].body)

    async def act(url: str) -> None:
        assert await address(url) == "for 127.0.0.2"
        async with httpx.AsyncClient(base_url=url) as http:
            for _ in range(2):  # its cookies come, and are sent along
                assert (await http.get("/says-much")).status_code == 200
        names = (keys.COOKIE, keys.SECURE_COOKIE) * 6  # so many that hardly ever all belong to one replica
        assert set(await asyncio.gather(*(visit(url, name) for name in names))) == {0, 1}

    try:
        with proxied(conf, tmp_path, *replicas) as url:
            asyncio.run(act(url))
    finally:
        clients.stop(*replicas)
