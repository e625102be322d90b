"""A small app behind the front door, served by `streamlit run`: a page with a place for a file, and what it tells the tests."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from streamlit import runtime
from streamlit.starlette import App

from app import cookie, door, received

received.UNTAKEN_SECONDS = float(os.environ["UNTAKEN_SECONDS"])


async def held(request: Request) -> Response:
    """Bytes of all files that lie in Streamlit's memory: session → id → bytes."""
    stored = runtime.get_instance().uploaded_file_mgr.file_storage
    return JSONResponse(
        {session: {id: len(file.data) for id, file in files.items()} for session, files in stored.items()}
    )


app = App(
    Path(__file__).parent / "small_page.py",
    routes=[Route("/held", held)],
    middleware=[Middleware(door.Door), Middleware(cookie.KeyCookie)],
)
