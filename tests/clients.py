"""Visitors without a browser, for tests and benchmarks that need a crowd: a connection as a browser opens it, and its requests.

with clients.running(exports, home) as server:                  # the app as `make run` serves it, on a port of its own
    async with clients.visitor(server.url) as anna:             # a browser of her own: cookie, key, session
        await anna.run("v=1&ds=sample", page="report")          # goes to a page; what it drew is in anna.elements
        await anna.click("report_figures")
        answer = await anna.http.get("/_stcore/health")         # with her cookies
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds


# --- the server


@dataclass
class Server:
    """A running app."""

    url: str
    exports: Path
    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self.log_file.read_text("utf-8", errors="replace")

    @property
    def resident(self) -> float:
        """MB of its resident set."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        size = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(size[1]) / 1e3 if size else float("nan")


@contextmanager
def running(
    exports: Path, home: Path | None = None, *options: str, wait: bool = True, root: Path = ROOT, **env: str
) -> Iterator[Server]:
    """The app on a free port, until the block ends; options as for `start`. home: None is a folder that goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        server = start(
            exports, home or Path(folder, "home"), Path(folder, "log.txt"), *options, wait=wait, root=root, **env
        )
        try:
            yield server
        finally:
            stop(server)


def start(
    exports: Path,
    home: Path,
    log_file: Path,
    *options: str,
    script: str = "app/serve.py",
    wait: bool = True,
    root: Path = ROOT,
    **env: str,
) -> Server:
    """home: its SEQSCOPE_HOME; options: of `streamlit run`. wait: until it answers; AssertionError where it does not.
    root: the checkout whose app it is."""
    for _ in range(3):  # between the two somebody else may take the port that was free
        port = free_port()
        command = [sys.executable, "-m", "streamlit", "run", script, "--server.address=127.0.0.1"]
        places = {"SEQSCOPE_EXPORTS": str(exports.resolve()), "SEQSCOPE_HOME": str(home)}
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [*command, f"--server.port={port}", *options],
                cwd=root,
                env={**os.environ, **places, **env},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        server = Server(f"http://127.0.0.1:{port}", exports, process, log_file)
        if not wait or answers(server):
            return server
        stop(server)
        if "not available" not in server.log:
            break
    raise AssertionError(f"the app did not start:\n{server.log}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(server: Server, path: str = "/_stcore/health") -> bool:
    """Waits until it does; False where it ended, or needs longer than two minutes. path: "" is the page, which comes first."""
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            urllib.request.urlopen(f"{server.url}{path}", timeout=2).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def stop(*servers: Server) -> None:
    """Ends all of them, kindly at first."""
    for server in servers:
        server.process.terminate()
    for server in servers:
        try:
            server.process.wait(20)
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()


# --- visitors


@dataclass
class Visitor:
    """One browser tab: its connection, its cookies, what the page shows."""

    http: httpx.AsyncClient
    """With the browser's cookies; relative addresses are the server's."""
    connection: websockets.ClientConnection
    session: str = ""
    """Its id, as the server calls it."""
    elements: dict[tuple[int, ...], Any] = field(default_factory=dict)
    """Where on the page → Element, in order of arrival."""
    arrived: dict[tuple[int, ...], float] = field(default_factory=dict)
    """Where on the page → seconds after the run was asked for."""
    errors: list[str] = field(default_factory=list)
    """Uncaught exceptions and the app's own error boxes, of all runs."""
    query: str = ""
    page: str = ""
    _began: float = 0.0
    _drawn: set[tuple[int, ...]] = field(default_factory=set)
    """By the run that goes on; what it does not draw is gone at its end."""

    async def run(self, query: str = "", page: str = "", *states: WidgetState, fragment: str = "") -> float:
        """Goes to a page of the app (its address without /), and waits until the run has ended. Returns seconds."""
        self.query, self.page = query, page
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_name = page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.widget_states.widgets.extend(states)
        self._began = time.perf_counter()
        await self.connection.send(message.SerializeToString())
        await self.until_finished()
        return time.perf_counter() - self._began

    async def again(self, *states: WidgetState) -> float:
        """Another run of the same page, with these widgets' states."""
        return await self.run(self.query, self.page, *states)

    async def click(self, key: str, *states: WidgetState) -> float:
        """Clicks on the button with that key."""
        return await self.again(WidgetState(id=self.widget(key).id, trigger_value=True), *states)

    async def until_finished(self) -> None:
        """Takes what the server sends until a run has ended; further runs that it began by itself are waited for."""
        while True:
            message = await self.receive()
            if message.WhichOneof("type") == "script_finished" and message.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
                ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
            ):
                return

    async def receive(self) -> ForwardMsg:
        """The next message, noted."""
        data = await asyncio.wait_for(self.connection.recv(), PATIENCE)
        message = ForwardMsg()
        message.ParseFromString(data if isinstance(data, bytes) else data.encode())
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id or self.session
            self._drawn.clear()
        elif kind == "delta":
            path = tuple(message.metadata.delta_path)
            self._drawn.add(path)
            self.arrived[path] = time.perf_counter() - self._began
            if message.delta.WhichOneof("type") == "new_element":
                element = message.delta.new_element
                self.elements[path] = element
                name = element.WhichOneof("type")
                if name == "exception":
                    self.errors.append(element.exception.message)
                elif name == "alert" and element.alert.format == element.alert.ERROR:
                    self.errors.append(element.alert.body)
            elif message.delta.WhichOneof("type") == "add_block":
                self.elements[path] = message.delta.add_block
        elif kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
            self.elements = {path: element for path, element in self.elements.items() if path in self._drawn}
        return message

    def shown(self, kind: str) -> list[Any]:
        """What the page shows of one kind of element, such as "markdown" or "button"."""
        return [
            getattr(element, kind)
            for element in self.elements.values()
            if element.DESCRIPTOR.name == "Element" and element.WhichOneof("type") == kind
        ]

    def widget(self, key: str) -> Any:
        """The widget with that key. Raises LookupError."""
        return self._widget(key)[1]

    def waited(self, key: str) -> float:
        """Seconds until the widget with that key arrived in the latest run. Raises LookupError."""
        return self.arrived[self._widget(key)[0]]

    def _widget(self, key: str) -> tuple[tuple[int, ...], Any]:
        for path, element in self.elements.items():
            widget = getattr(element, element.WhichOneof("type") or "", None)
            if str(getattr(widget, "id", "")).endswith(f"-{key}"):
                return path, widget
        raise LookupError(f"no widget {key!r} on the page; errors: {self.errors}")

    def link(self, key: str) -> str:
        """The address that the link with that key (app/server/downloads.py) leads to."""
        return str(json.loads(self.widget(key).json)["address"])


@asynccontextmanager
async def visitor(url: str, cookies: dict[str, str] | None = None) -> AsyncIterator[Visitor]:
    """A new browser at the app: takes the cookies that it is given, and opens its connection.

    cookies: what this browser has already; those of another visitor (`dict(anna.http.cookies)`) are another tab of theirs.
    """
    # the server closes what was idle for five seconds, as httpx does, so that a request may meet the end of its connection; a
    # browser would ask again
    limits = httpx.Limits(keepalive_expiry=2)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, follow_redirects=True, limits=limits) as http:
        for name, value in (cookies or {}).items():
            http.cookies.set(name, value, domain=http.base_url.host)  # or what the server sets stands beside it
        (await http.get("/")).raise_for_status()  # the key
        (await http.get("/_stcore/health")).raise_for_status()  # the token against requests of other sites
        token = http.cookies.get("_streamlit_xsrf", "").strip('"')
        protocols: Sequence[Any] = ["streamlit", *([token] if token else [])]
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in http.cookies.items())}
        async with websockets.connect(
            f"{url.replace('http', 'ws', 1)}/_stcore/stream",
            subprotocols=protocols,
            origin=url,  # type: ignore[arg-type]
            additional_headers=headers,
            max_size=None,
            max_queue=None,
        ) as connection:
            yield Visitor(http, connection)


async def crowd(url: str, size: int, act: Callable[[Visitor, int], Any]) -> list[Any]:
    """`size` visitors at once, each a browser of its own; act(visitor, which) is what each does. Returns what they return."""

    async def one(which: int) -> Any:
        async with visitor(url) as someone:
            return await act(someone, which)

    return await asyncio.gather(*(one(which) for which in range(size)))
