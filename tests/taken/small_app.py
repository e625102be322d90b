"""A small app with links to files, served by `streamlit run`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from streamlit.starlette import App

from app import cookie, downloads
from app.door import Door


@asynccontextmanager
async def life(served: App) -> AsyncGenerator[dict[str, Any]]:
    async with downloads.DOWNLOADS.serving():
        yield {}


app = App(
    Path(__file__).parent / "small_page.py",
    lifespan=life,
    middleware=[Middleware(Door), Middleware(downloads.Route), Middleware(cookie.KeyCookie)],
)
