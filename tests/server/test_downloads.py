"""Files that visitors take away, over real sockets: whole, their own, nobody else's, and none through the server's memory."""

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from app.server import downloads, keys, links
from app.server.downloads import Downloads, File
from app.server.links import Link, Links
from app.server.owner import Owner
from tests import clients
from tests.clients import Visitor
from tests.server.conftest import LARGE
from tests.server.contents import content


@pytest.mark.long
async def test_beside_others_no_download_fails_is_cut_or_is_another_of_the_same_length(small: clients.Server) -> None:
    others, takers, each = 5, 3, 2
    over = asyncio.Event()
    runs = 0

    async def look(visitor: Visitor, which: int) -> None:
        nonlocal runs
        while not over.is_set():
            runs += 1
            await visitor.run(f"name=other{which}")
            await asyncio.sleep(0.3)

    async def take(visitor: Visitor, which: int) -> list[bool]:
        await visitor.run(f"name=taker{which}")
        whole = []
        for turn in range(each):
            await asyncio.sleep(0.6 * (turn % 2))  # Streamlit forgot a file with anybody's run since the click
            answer = await visitor.http.get(visitor.link("made"))
            whole.append(answer.status_code == 200 and answer.content == content(f"taker{which}"))
        return whole

    looking = asyncio.create_task(clients.crowd(small.url, others, look))
    try:
        complete = await clients.crowd(small.url, takers, take)
    finally:
        over.set()
        await looking
    assert [sum(whole) for whole in complete] == [each] * takers
    assert runs > others


def test_no_page_hands_out_files_in_another_way(root: Path) -> None:
    files = {
        path.relative_to(root).as_posix()
        for path in (root / "app").rglob("*.py")
        if re.search(r"\bst\.(download_button|image|audio|video|pdf)\(", path.read_text("utf-8"))
    }
    assert files == {"app/server/downloads.py"}  # there for `streamlit run app/main.py`, which serves no links


@pytest.mark.linux
async def test_a_large_file_is_sent_from_the_disk(small: clients.Server) -> None:
    async def take(visitor: Visitor, which: int) -> int:
        await visitor.run()
        await visitor.http.get(visitor.link("large"), headers={"range": "bytes=0-99"})
        before.append(small.resident)
        size = 0
        async with visitor.http.stream("GET", visitor.link("large")) as answer:
            async for part in answer.aiter_bytes(1_000_000):
                size += len(part)
                most.append(small.resident)
        return size

    before: list[float] = []
    most: list[float] = []
    assert await clients.crowd(small.url, 2, take) == [LARGE, LARGE]
    assert max(most) - min(before) < 30  # MB, of 160 that went out


async def test_only_its_owner_can_follow_a_link(small: clients.Server) -> None:
    async with clients.visitor(small.url) as anna, clients.visitor(small.url) as ben:
        await anna.run("name=anna")
        address = anna.link("made")
        assert (await anna.http.get(address)).content == content("anna")
        never = address.replace(address.split("/")[2], secrets.token_urlsafe(24))
        expected = await ben.http.get(never)
        assert expected.status_code == 404
        async with httpx.AsyncClient(base_url=small.url) as nobody:
            for answer in [await someone.request(method, address) for someone in (ben.http, nobody)
                           for method in ("GET", "POST")]:  # fmt: skip
                assert (answer.status_code, answer.content) == (404, expected.content)
                assert _headers(answer) == _headers(expected)
        async with clients.visitor(small.url, dict(anna.http.cookies)) as tab:  # hers, too
            assert (await tab.http.get(address)).content == content("anna")


def _headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "date"}


# --- saved, resumed, cancelled


async def test_a_link_can_be_resumed_from_where_it_broke_off(small: clients.Server) -> None:
    async with clients.visitor(small.url) as anna:
        await anna.run("name=anna")
        address, whole = anna.link("made"), content("anna")
        first = await anna.http.get(address, headers={"range": "bytes=0-99999"})
        assert first.status_code == 206 and first.content == whole[:100_000]
        await anna.run("name=anna")  # the page is drawn anew, and the file is made anew
        assert anna.link("made") == address
        ask = {"range": "bytes=100000-", "if-range": first.headers["etag"]}
        rest = await anna.http.get(address, headers=ask)
        assert rest.status_code == 206 and first.content + rest.content == whole
        await anna.run("name=another")  # another file now: not a part of it
        other = await anna.http.get(address, headers=ask)
        assert other.status_code == 200 and other.content == content("another")
        head = await anna.http.head(address, headers={"accept-encoding": "gzip"})
        assert head.headers["content-length"] == str(len(whole)) and head.content == b""
        assert head.headers["content-disposition"] == 'attachment; filename="made.bin"'
        assert "content-encoding" not in head.headers and "no-store" in head.headers["cache-control"]


async def test_who_breaks_off_leaves_no_trace(small: clients.Server) -> None:
    async with clients.visitor(small.url) as anna:
        await anna.run("name=anna")
        for _ in range(3):
            async with anna.http.stream("GET", anna.link("large")) as answer:
                await answer.aiter_raw().__anext__()
        await asyncio.sleep(0.5)
        assert (await anna.http.get(anna.link("made"))).content == content("anna")
    assert "Traceback" not in small.log


async def test_why_a_file_cannot_be_had_is_headers(small: clients.Server) -> None:
    async with clients.visitor(small.url) as anna:
        await anna.run()
        answer = await anna.http.get(anna.link("broken"))
    assert answer.status_code == 500 and answer.text.startswith("There is no ink.")


# --- how long


KEY = keys.make()
OWNER = keys.owner(KEY)


def link_to(served: Downloads, key: str, make: Callable[[], bytes]) -> str:
    """The address of a file that is made."""
    return served.links.address(served.links.link("session", key, OWNER, File(make, "a.txt", "text/plain")))


def status(served: Downloads, address: str) -> Any:
    headers = [(b"cookie", f"{keys.COOKIE}={KEY}".encode())]
    scope = {"type": "http", "method": "GET", "path": address, "query_string": b"", "headers": headers}
    return served.answer(Request(scope))


async def test_a_file_is_made_once_until_nobody_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make() -> bytes:
        time.sleep(0.05)
        made.append(1)
        return b"abc"

    served = Downloads()
    async with served.serving():
        link = link_to(served, "key", make)
        answers = await asyncio.gather(*(status(served, link) for _ in range(5)))
        assert [answer.status_code for answer in answers] == [200] * 5 and len(made) == 1
        path = Path(answers[0].path)
        assert path.read_bytes() == b"abc" and hashlib.sha256(b"abc").hexdigest()[:32] in answers[0].headers["etag"]
        monkeypatch.setattr(downloads, "MADE_SECONDS", -1.0)
        served.tidy()
        assert not path.exists()
        assert (await status(served, link)).status_code == 200 and len(made) == 2
    assert not path.parent.exists()


async def test_what_is_made_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MOST_BYTES", 2_500)
    served = Downloads()
    async with served.serving():
        links = [link_to(served, str(number), lambda: bytes(1_000)) for number in range(4)]
        answers = [await status(served, link) for link in links]
        assert [Path(answer.path).exists() for answer in answers] == [False, False, True, True]


# --- addresses that a page hands out: how long they lead anywhere, and who may follow them


def ask(served: Links[str], link: Link[str]) -> str | None:
    """What the link leads its owner to."""
    headers = [(b"cookie", f"{keys.COOKIE}={KEY}".encode())]
    followed = served.followed(Request({"type": "http", "path": f"/there/{link.token}", "headers": headers}))
    return None if followed is None else followed[1].target


def test_a_link_that_is_drawn_again_keeps_its_address_and_leads_to_what_is_there_now() -> None:
    served = Links[str]("/there")
    before = served.link("session", "key", keys.owner(KEY), "old")
    assert served.link("session", "key", keys.owner(KEY), "new").token == before.token and ask(served, before) == "new"
    of_another = served.link("session", "key", "somebody else", "theirs")
    assert of_another.token != before.token and ask(served, before) is None and ask(served, of_another) is None


def test_links_go_with_their_session_and_the_oldest_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LINKS", 3)
    served = Links[str]("/there")
    drawn = [served.link("session", str(n), keys.owner(KEY), str(n)) for n in range(4)]
    assert [ask(served, link) for link in drawn] == [None, "1", "2", "3"]
    served.tidy()
    assert ask(served, drawn[3]) == "3"
    monkeypatch.setattr(links, "LEFT_SECONDS", -1.0)  # since its connection ended
    served.tidy()
    assert ask(served, drawn[3]) is None


def test_links_of_the_latest_alone_are_kept_of_those_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LEFT", 2)
    served = Links[str]("/there")
    for session in ("first", "second", "third"):
        served.link(session, "key", "anna", "")
    served.tidy()
    assert set(served.sessions) == {"second", "third"} and len(served) == 2


def test_who_has_neither_key_nor_account_is_known_by_the_token_of_the_browser() -> None:
    def sent(token: bytes) -> dict[str, str]:
        return {"_streamlit_xsrf": generate_xsrf_token_string(token)}  # masked anew each time

    tab = Owner("of this tab", "session")  # as pages know a browser that keeps no key
    assert links.bearer(tab, sent(b"a" * 16)) == links.bearer(None, sent(b"a" * 16))
    assert len({links.bearer(None, jar) for jar in (sent(b"a" * 16), sent(b"b" * 16), {})}) == 3
