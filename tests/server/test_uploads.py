"""What may come in as a file: whose, how much of it at the same time, and for how long it stays."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.server import keys, received
from engine.errors import SeqscopeError
from tests.clients import Server, Visitor, visitor
from tests.server.conftest import begun_upload

MB = 1 << 20
SESSION, OWNER, ALL = 4 * MB, 8 * MB, 32 * MB  # where a file may have 1 MB, and as much of a form around it


async def put(who: Visitor, id: str, chunks: bool = False, session: str = "", size: int = MB - 1_000) -> httpx.Response:
    """Sends a file to the visitor's session; chunks: without saying how long it is."""
    edge = b"----edge"
    before = b'--%s\r\nContent-Disposition: form-data; name="f"; filename="f.csv"\r\n\r\n' % edge
    body = before + b"x" * size + b"\r\n--%s--\r\n" % edge

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]

    return await who.http.put(
        f"/_stcore/upload_file/{session or who.session}/{id}",
        content=parts() if chunks else body,
        headers={
            "X-Xsrftoken": who.http.cookies["_streamlit_xsrf"].strip('"'),
            "Content-Type": f"multipart/form-data; boundary={edge.decode()}",
        },
    )


async def held(who: Visitor) -> dict[str, dict[str, int]]:
    """What lies in the server's memory: session → file → bytes."""
    sessions: dict[str, dict[str, int]] = (await who.http.get("/held")).json()
    return {session: files for session, files in sessions.items() if files}


async def begin(who: Visitor, untaken_seconds: float = 600) -> None:
    """With nothing in memory."""
    (await who.http.get(f"/begin/{untaken_seconds}")).raise_for_status()
    await who.run()


async def until_held(who: Visitor, *ids: str) -> None:
    """Waits until just these files of the visitor's are in memory."""
    for _ in range(200):
        if set((await held(who)).get(who.session, {})) == set(ids):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not {ids} but {await held(who)}")


def chosen(who: Visitor, place: str, id: str) -> WidgetState:
    """The state that a browser sends once a file has arrived."""
    file = UploadedFileInfo(file_id=id, name="f.csv", size=MB)
    return WidgetState(id=who.widget(place).id, file_uploader_state_value=FileUploaderState(uploaded_file_info=[file]))


async def test_bytes_are_bounded_for_a_tab_and_an_owner_and_the_page_says_why(small: Server) -> None:
    async with visitor(small.url) as anna:
        await begin(anna)
        assert {(await put(anna, f"file-{n}", chunks=n % 2 == 1)).status_code for n in range(3)} == {204}
        quarter = await put(anna, "quarter", size=MB // 4)
        assert quarter.status_code == 204  # there is room for the beginning of one more
        for chunks in (False, True):  # refused by what it says of its size, and on its way
            refused = await put(anna, "one more", chunks=chunks)
            assert refused.status_code == 413 and "one tab" in refused.text
            while not any("most that one tab" in words for words in anna.errors):
                await anna.until_finished()
            anna.errors.clear()
        assert sum((await held(anna))[anna.session].values()) <= SESSION

        browser = {keys.COOKIE: anna.http.cookies[keys.COOKIE]}
        async with visitor(small.url, browser) as second, visitor(small.url, browser) as third:
            for tab, files in ((second, 3), (third, 2)):
                await tab.run()
                answers = [await put(tab, f"file-{n}") for n in range(files)]
            assert "browser or account" in answers[-1].text
            assert sum(sum(files.values()) for files in (await held(anna)).values()) <= OWNER


async def test_of_all_together_the_longest_here_make_room(small: Server) -> None:
    async with visitor(small.url) as anna:
        await begin(anna)
        last: list[str] = []

        async def send(_: int) -> list[int]:
            async with visitor(small.url) as who:
                await who.run()
                answers = [(await put(who, f"file-{n}")).status_code for n in range(3)]
                last.append(who.session)
                return answers

        answers = await asyncio.gather(*map(send, range(12)))
        assert {status for of_one in answers for status in of_one} == {204}
        files = await held(anna)
        assert ALL - 2 * MB < sum(sum(sizes.values()) for sizes in files.values()) <= ALL
        assert "file-2" in files[last[-1]]


def test_of_all_together_no_more_come_at_the_same_time() -> None:
    files, limits = received.Files(), received.ReceivedLimits.of_config()
    coming = [files.begin(f"session-{n}", "file", f"owner-{n}") for n in range(limits.all // limits.session)]
    for file in coming[:-1]:
        files.grow(file, limits.session)
    files.grow(coming[-1], limits.session - received.LEAST)
    late = files.begin("late", "file", "late")
    with pytest.raises(SeqscopeError, match="Many people"):
        files.grow(late, 2 * received.LEAST)
    files.refused(coming[0])
    files.grow(late, limits.session)


async def test_who_stops_in_the_middle_of_a_file_keeps_no_room(small: Server) -> None:
    async with visitor(small.url) as anna:
        await begin(anna, 1)
        where = urlsplit(small.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(begun_upload(anna))
        assert b" 408 " in await asyncio.wait_for(reader.readline(), 20)
        writer.close()


async def test_what_no_page_takes_goes_and_what_it_holds_stays(small: Server) -> None:
    async with visitor(small.url) as anna:
        await begin(anna, untaken_seconds=1.5)
        for id in ("first", "read"):
            assert (await put(anna, id)).status_code == 204
        await anna.again(chosen(anna, "held", "first"), chosen(anna, "read", "read"))
        await until_held(anna, "first")  # what was read went at once
        assert (await put(anna, "nobody's")).status_code == 204
        await until_held(anna, "first", "nobody's")
        await until_held(anna, "first")
        # another file in the same place
        assert (await put(anna, "second")).status_code == 204
        await anna.again(chosen(anna, "held", "second"))
        await until_held(anna, "second")
        await asyncio.sleep(2)
        await until_held(anna, "second")


@pytest.mark.parametrize("without", ["key", "session"])
async def test_nobody_sends_files_without_a_key_or_a_session(small: Server, without: str) -> None:
    async with visitor(small.url) as anna:
        await anna.run()
        if without == "key":
            anna.http.cookies.delete(keys.COOKIE)
        answer = await put(anna, "file", session="" if without == "key" else "made-up")
        assert answer.status_code == (403 if without == "key" else 400)
        assert "file" not in (await held(anna)).get(anna.session, {})
