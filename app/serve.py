"""The app as `make run` and the Procfile serve it: Streamlit's pages, the door before them, and the cookie that says who comes.

streamlit run app/serve.py
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit import net_util
from streamlit.starlette import App

from app import door, downloads, keys, owner, received, work
from app.door import Door
from app.frontend import Frontend, modules_of_widgets
from app.store.server import open_store
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.app")


def needs_key() -> bool:
    """Where one signs in, data belong to the account, and no browser needs a key."""
    return owner.providers() is None


def prepare() -> None:
    """Reads what the first visitor would wait for: the code of the pages, and the models of the first dataset."""
    from app import screens, zoo  # noqa: F401  (here, as the server answers meanwhile)

    modules_of_widgets()
    with suppress(SeqscopeError):  # the page says what is wrong
        for name in zoo.datasets():
            zoo.open_zoo(name)
            break


@asynccontextmanager
async def life(served: App) -> AsyncGenerator[dict[str, Any]]:
    """Opens the store before the first visitor comes, and closes it after the last one has gone."""
    os.umask(0o077)  # what the server writes is its own account's
    store = None
    try:
        store = open_store()
        received.forget_drafts()
        work.queue()  # jobs of before go on, though nobody may be looking
    except SeqscopeError as error:  # what needs no store goes on working, and the pages that do say the same
        log.error("%s", error)
    address, port = st.get_option("server.address"), st.get_option("server.port")
    print(f"Seqscope: http://{address or 'localhost'}:{port}{_root}", flush=True)
    asyncio.get_running_loop().run_in_executor(None, prepare)
    try:
        async with downloads.DOWNLOADS.serving():
            yield {}
    finally:
        if store is not None:
            work.close()
            store.close()


# Streamlit asks an address service on the internet who it is; nothing of ours calls outward.
net_util.get_external_ip = lambda: None

_root = downloads.base_path()
app = App(
    Path(__file__).parent / "main.py",
    lifespan=life,
    routes=[Route(f"{_root}/key", keys.page, methods=["GET", "POST"])],
    middleware=[
        Middleware(Door, root=_root),
        Middleware(door.Health, address=f"{_root}/_stcore/health"),
        Middleware(downloads.Route),
        Middleware(keys.KeyCookie, needed=needs_key),
        Middleware(Frontend, root=_root),
    ],
)
