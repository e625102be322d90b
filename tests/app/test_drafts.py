"""Uploads that are not finished, on a real server: they go when their session ends, and with the server."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.home import Home
from tests import clients
from tests.app.own import ANNA
from tests.uploads.conftest import ITEMS


def test_what_is_not_finished_goes_with_its_session(tmp_path: Path, exports: Path) -> None:
    home = Home(tmp_path / "home")
    left = home.draft(ANNA)  # by a server that was killed

    async def visits(url: str) -> None:
        assert not left.exists()
        async with clients.visitor(url) as anna:
            await anna.run(page="your_data")
            text = anna.widget("upload_paste_catalogue_0_0")
            await anna.click("upload_pasted_catalogue_0", WidgetState(id=text.id, string_value=ITEMS))
            await asyncio.sleep(4)  # longer than a session is kept that has lost its connection
            assert not anna.errors
            (draft,) = home.drafts()
            assert list((draft / "upload").glob("catalogue-*"))
        until = time.monotonic() + 60
        while home.drafts():
            assert time.monotonic() < until, "the draft outlived its session"
            await asyncio.sleep(0.1)

    with clients.running(exports, home.path, STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL="1") as server:
        asyncio.run(visits(server.url))
