"""What the front door refuses, and what it adds: on a small app, and on the app itself."""

import asyncio
import re
import socket
import struct
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.clients import PATIENCE, Server, visitor
from tests.server.conftest import begun_upload


def status(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str]]:
    """What the server answers: status, headers."""
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, {name.lower(): value for name, value in error.headers.items()}


def test_of_streamlits_addresses_only_those_of_its_pages_are_found(small: Server) -> None:
    for path in ("metrics", "metrics/", "script-health-check", "agent/interact", "agent/mcp", "new"):
        for method in ("GET", "POST", "OPTIONS"):
            assert status(f"{small.url}/_stcore/{path}", method)[0] == 404, (path, method)


def test_every_answer_says_how_it_may_be_used(small: Server) -> None:
    for path in ("/", "/nowhere", "/key", "/_stcore/health", "/_stcore/metrics"):
        _, headers = status(small.url + path)
        assert "frame-ancestors" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin", path


def test_over_https_every_cookie_is_secure(small: Server) -> None:
    """Streamlit's, too: it looks at its own certificate, and a proxy may have it."""
    url = f"{small.url}/_stcore/health"
    assert "Secure" not in status(url)[1]["set-cookie"]
    assert status(url, **{"X-Forwarded-Proto": "https"})[1]["set-cookie"].endswith("; Secure")


# --- WebSockets


@pytest.mark.parametrize("origin", ["http://other.example.org", "http://127.0.0.1", "null", "http://["])
async def test_a_socket_of_another_site_is_refused(small: Server, origin: str) -> None:
    address = f"{small.url.replace('http', 'ws')}/_stcore/stream"

    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(address, origin=origin, subprotocols=["streamlit"])  # type: ignore[arg-type,list-item]
    assert refused.value.response.status_code == 403


async def test_a_socket_opens_for_the_cookies_of_a_provider_that_says_much(small: Server) -> None:
    cookies = "; ".join(f"_streamlit_user_tokens_{number}={'x' * 4_000}" for number in range(1, 5))
    async with websockets.connect(
        f"{small.url.replace('http', 'ws')}/_stcore/stream",
        additional_headers={"Cookie": cookies},
        subprotocols=["streamlit"],  # type: ignore[list-item]
    ) as connection:
        assert connection.subprotocol == "streamlit"


async def test_nobody_clears_the_caches_of_all(small: Server) -> None:
    async with visitor(small.url) as anna, visitor(small.url) as ben:
        await anna.run()
        (before,) = anna.shown("markdown")
        for what in ("clear_cache", "set_run_on_save", "debug_shutdown_runtime", "debug_disconnect_websocket"):
            await ben.connection.send(BackMsg(**{what: True}).SerializeToString())
        await ben.run()  # the same connection goes on
        await anna.run()
        (after,) = anna.shown("markdown")
        assert before.body == after.body == ben.shown("markdown")[0].body


async def test_who_has_the_key_forgotten_is_gone_in_all_tabs(small: Server) -> None:
    async with (
        visitor(small.url) as anna,
        visitor(small.url, dict(anna.http.cookies)) as tab,
        visitor(small.url) as ben,
    ):
        for form in ({"key": "mistyped"}, {"do": "new"}):
            for someone in (anna, tab, ben):
                await someone.run()
            await anna.http.post("/key", data=form, headers={"Origin": small.url})
        for someone in (anna, tab):
            await asyncio.wait_for(someone.connection.wait_closed(), PATIENCE)
            assert someone.connection.close_code == 1012  # of which browsers open it again, with the cookies of now
        await ben.run()


# --- clients that leave


def leave(server: Server, sent: bytes, read: int = 0) -> None:
    """Sends that, reads so many bytes, and is gone without a word."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        if read:
            connection.recv(read)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def speak(server: Server, *messages: bytes | str, abort: bool = False) -> None:
    """Says that over a WebSocket, and waits until the server closes, or is gone."""
    async with visitor(server.url) as someone:
        for message in messages:
            await someone.connection.send(message)
        if abort:
            someone.connection.transport.abort()
        else:
            await asyncio.wait_for(someone.connection.wait_closed(), PATIENCE)


async def leave_an_upload(server: Server) -> None:
    async with visitor(server.url) as someone:
        await someone.run()
        leave(server, begun_upload(someone))
        await asyncio.sleep(0.5)


def asset(server: Server) -> str:
    """The largest script of the page."""
    page = urllib.request.urlopen(server.url, timeout=PATIENCE).read().decode()
    script = re.search(r'src="\.?(/static/[^"]+\.js)"', page)
    assert script is not None
    return script[1]


async def test_who_leaves_in_the_middle_is_a_line_in_the_log(small: Server) -> None:
    rerun = BackMsg()
    rerun.rerun_script.query_string = ""
    before = len(small.log.splitlines())
    await leave_an_upload(small)
    leave(small, f"GET {asset(small)} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), read=100)
    leave(small, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", read=10)
    leave(small, b"GET / HT")
    leave(small, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 nothing of ours \r\n\r\n", read=10)
    await speak(small, rerun.SerializeToString(), abort=True)
    await speak(small, b"\xff\xff no message")
    await speak(small, "a text")
    time.sleep(1)
    written = small.log.splitlines()[before:]
    lines = [line for line in written if not re.search(r'"WebSocket .*\[accepted\]|connection (open|closed)', line)]
    assert not [line for line in lines if "Traceback" in line], "\n".join(lines)
    assert len(lines) <= 8, "\n".join(lines)
