"""The app as `make run` and the Procfile serve it: Streamlit's pages, and the cookie that says whose uploads are whose.

streamlit run app/serve.py
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit.starlette import App

from app import cookie, health, owner, work
from app.store.database import open_store
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.app")


def needs_key() -> bool:
    """Where one signs in, data belong to the account, and no browser needs a key."""
    return owner.providers() is None


@asynccontextmanager
async def life(served: App) -> AsyncGenerator[dict[str, Any]]:
    """Opens the store before the first visitor comes, and closes it after the last one has gone."""
    store = None
    try:
        store = open_store()
        work.queue()  # jobs of before go on, though nobody may be looking
    except SeqscopeError as error:  # what needs no store goes on working, and the pages that do say the same
        log.error("%s", error)
    try:
        yield {}
    finally:
        if store is not None:
            work.close()
            store.close()


_base = str(st.get_option("server.baseUrlPath") or "").strip("/")
app = App(
    Path(__file__).parent / "main.py",
    lifespan=life,
    routes=[Route(f"/{_base}/key" if _base else "/key", cookie.page, methods=["GET", "POST"])],
    middleware=[
        Middleware(health.Health, address=f"/{_base}/_stcore/health" if _base else "/_stcore/health"),
        Middleware(cookie.KeyCookie, needed=needs_key),
    ],
)
