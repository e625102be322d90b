"""The app as it is served, below a path as some proxies have it: it stands behind the front door, asks nobody on the internet,
writes for its own account alone, and takes away uploads that are not finished."""

import asyncio
import json
import resource
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import websockets
from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.home import Home
from app.serve import open_more_files
from tests import clients
from tests.clients import visitor
from tests.runtime.bundles import make_zoo
from tests.uploads.conftest import ITEMS

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


BELOW = "/seqscope"


@dataclass
class Served:
    """The app with a home of its own, in which a server that was killed had left a draft."""

    url: str
    home: Home
    left: Path
    outward: Path
    process: int


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "recorder").mkdir()
    (folder / "recorder" / "sitecustomize.py").write_text(RECORDER)
    home, outward = Home(folder / "home"), folder / "outward.txt"
    left = home.draft("b" + "a" * 32)
    env = {"PYTHONPATH": str(folder / "recorder"), "OUTWARD": str(outward)}
    env["STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL"] = "1"
    exports = make_zoo(folder / "exports", name="toys").parent
    options = ("--server.address=0.0.0.0", f"--server.baseUrlPath={BELOW}")
    few, many = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(few, 1_000), many))  # as most systems have it
    try:
        with clients.running(exports, home.path, *options, wait=False, **env) as server:
            server.url += BELOW
            assert clients.answers(server), server.log
            yield Served(server.url, home, left, outward, server.process.pid)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, many))


def test_its_address_is_all_that_it_says_until_ctrl_c(tmp_path: Path) -> None:
    host = "::1"
    try:
        socket.create_server((host, 0), family=socket.AF_INET6).close()
    except OSError:
        host = "127.0.0.1"
    exports = make_zoo(tmp_path / "exports").parent
    with clients.running(exports, None, f"--server.address={host}", wait=False) as server:
        server.url = server.url.replace("127.0.0.1", "[::1]" if host == "::1" else host)
        assert clients.answers(server), server.log
        server.process.send_signal(signal.SIGINT)
        server.process.wait(clients.PATIENCE)
        assert server.log.removesuffix("\nAborted!\n") == f"Seqscope: {server.url}\n"  # which click adds


@pytest.mark.linux
def test_it_may_open_as_many_files_as_its_account(served: Served) -> None:
    limits = Path(f"/proc/{served.process}/limits").read_text("utf-8")
    (words,) = [line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files")]
    assert words[0] == words[1]


def test_where_the_account_has_no_limit_it_may_open_as_many_files_as_the_system_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As macOS: 256 at first, no limit, and none taken above 10,240."""
    limits = [(256, resource.RLIM_INFINITY)]

    def change(kind: int, both: tuple[int, int]) -> None:
        if not 0 <= both[0] <= 10_240:
            raise ValueError("current limit exceeds maximum limit")
        limits.append(both)

    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", change)
    open_more_files()
    assert limits[-1] == (10_240, resource.RLIM_INFINITY)


async def test_what_is_not_finished_goes_with_its_session_and_with_the_server(served: Served) -> None:
    async with visitor(served.url) as anna:
        await anna.run(page="your_data")
        assert not served.left.exists()  # nobody is answered before the server has begun
        text = anna.widget("upload_paste_catalogue_0_0")
        await anna.click("upload_pasted_catalogue_0", WidgetState(id=text.id, string_value=ITEMS))
        await asyncio.sleep(2.5)  # longer than a session is kept that has lost its connection
        assert not anna.errors
        (draft,) = served.home.drafts()
        assert list((draft / "upload").glob("catalogue-*"))
    until = time.monotonic() + 60
    while served.home.drafts():
        assert time.monotonic() < until, "the draft outlived its session"
        await asyncio.sleep(0.1)


async def test_the_app_stands_behind_the_door_and_calls_nobody(root: Path, served: Served) -> None:
    pages = [path.parent.name for path in (root / "app" / "screens").glob("*/page.py")]

    async with visitor(served.url) as anna:
        for page in pages:
            await anna.run(page="" if page == "compare" else page)
        assert anna.errors == []
        assert (await anna.http.get("/_stcore/metrics")).status_code == 404
        assert "frame-ancestors" in (await anna.http.get("/")).headers["content-security-policy"]
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(  # type: ignore[arg-type]
            f"{served.url.replace('http', 'ws')}/_stcore/stream", origin="http://other.example.org"
        )
    assert not served.outward.exists(), served.outward.read_text()
    open_to_others = [str(path) for path in served.home.path.rglob("*") if path.stat().st_mode & 0o077]
    assert open_to_others == []


@pytest.mark.parametrize(
    ("address", "act", "edited"),
    [
        ("h=toy-1~toy-2", {"do": "add", "id": "toy-3", "known": 0}, "h=toy-1~toy-2~toy-3"),
        ("h=toy-1~toy-2&view=ranks", {"do": "remove", "place": 0, "id": "toy-1"}, "h=toy-2&view=ranks"),
        ("h=toy-1~toy-2&b=toy-5", {"do": "add", "id": "toy-5", "known": 1}, "h=toy-1~toy-2&b=toy-5~toy-5"),
        ("h=toy-1~toy-2&b=toy-5&s=a&view=ranks", {"do": "move", "place": 0, "to": 1, "id": "toy-1"},
         "h=toy-2~toy-1&b=toy-5&s=a&view=ranks"),
        ("u=u3", {"do": "add", "id": "toy-3", "known": 0}, None),
    ],
)  # fmt: skip
async def test_an_edit_is_answered_as_the_run_after_it_draws_it(
    served: Served, address: str, act: dict[str, Any], edited: str | None
) -> None:
    key = "compare_ranks" if "view=ranks" in address else "compare_lists"

    def shown(who: clients.Visitor) -> dict[str, Any]:
        """As an answer has it; and the address of answers."""
        lists, chips = json.loads(who.widget(key).json), json.loads(who.widget("history_chips").json)
        del lists["run"], chips["run"]
        return {"early": lists.pop("early"), "lists": lists, "chips": chips}

    async with visitor(served.url) as anna:
        await anna.run(f"ds=toys&k=3&{address}")
        before = shown(anna)
        answer = await anna.http.get(before["early"].removeprefix(BELOW), params={"act": json.dumps(act)})
        assert answer.status_code == 200
        history = edited or "h=" + "~".join(chip["id"] for chip in answer.json()["chips"]["items"])
        await anna.run(f"ds=toys&k=3&{history}")
        after = shown(anna)
        assert after.pop("early") == before.pop("early") and after == answer.json() != before


async def test_an_edit_that_is_none_or_not_ones_own_is_not_answered(served: Served) -> None:
    async with visitor(served.url) as anna, visitor(served.url) as ben:
        await anna.run("ds=toys&h=toy-1~toy-2")
        early = json.loads(anna.widget("compare_lists").json)["early"].removeprefix(BELOW)
        add = {"do": "add", "id": "toy-3", "known": 0}
        stale: list[dict[str, Any]] = [
            {**add, "known": 1}, {**add, "id": "no such toy"}, {**add, "id": 3}, {"do": "select", "place": 0, "id": "toy-1"},
            {"do": "remove", "place": 1, "id": "toy-1"}, {"do": "remove", "place": 9, "id": "toy-1"},
            {"do": "move", "place": 0, "to": "1", "id": "toy-1"}, {},
        ]  # fmt: skip
        for who, act, status in [
            (ben, json.dumps(add), 404), (anna, json.dumps(add), 200),
            (anna, "no JSON", 400), (anna, "[]", 400),
            (anna, "", 400), (anna, "[" * 1_500, 400), (anna, json.dumps({**add, "more": "x" * 2_000}), 400),
            *((anna, json.dumps(act), 409) for act in stale),
        ]:  # fmt: skip
            assert (await who.http.get(early, params={"act": act})).status_code == status, act
        assert (await anna.http.post(early, params={"act": json.dumps(add)})).status_code == 405
