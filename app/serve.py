"""The app as `make run` and the Procfile serve it: Streamlit's pages, the door before them, and the cookie that says who comes.

streamlit run app/serve.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Event
from typing import TYPE_CHECKING, Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import net_util
from streamlit.starlette import App

from app.server import door, downloads, early, keys, links, owner
from app.server.door import Door
from app.server.frontend import Frontend, pack
from engine.errors import SeqscopeError
from engine.machine import SettingError, freeze, without_collector

if TYPE_CHECKING:
    from app.store.database import Store
    from engine.runtime import Zoo

log = logging.getLogger("seqscope.app")
_SCRIPTS = (".main", ".page", ".serve")
"""Modules that Streamlit runs, and that nobody imports."""
OPEN_MAX = 10_240
"""Files that macOS lets a process open, where it names no limit."""
_FIRST = 3.0
"""Seconds for the first page of whoever waited for the server: other work would make them wait longer."""


def needs_key() -> bool:
    """Where one signs in, data belong to the account, and no browser needs a key."""
    return owner.providers() is None


def prepare() -> Zoo | None:
    """Reads what the first visitor would wait for: Streamlit's scripts, and the models of the first dataset, which it returns;
    None where none can be opened."""
    from app import screens, zoo  # noqa: F401  (here, as the server answers meanwhile)

    pack()
    with suppress(SeqscopeError):  # the page says what is wrong
        for name in zoo.visible_datasets(None):  # whoever comes meanwhile is nobody to this thread
            return zoo.open_zoo(name)
    return None


def read_pages() -> None:
    """The code of all pages."""
    for module in walk_packages([str(Path(__file__).parent)], "app."):
        if not module.name.endswith(_SCRIPTS):
            import_module(module.name)


def warm_up(ended: Event) -> None:
    """`prepare`, after which the collector passes over what is there, since it stays; then what the first visitor of another page
    would wait for. ended: set where the server ends."""
    with without_collector():
        models = prepare()
        freeze()
    if ended.wait(_FIRST):
        return
    read_pages()
    if models is not None:
        from app.analysis import evaluation

        with suppress(SeqscopeError):
            evaluation.compute_ahead(models)


def check_settings() -> None:
    """Says in the log which environment variables cannot be read: else a visitor is the first to hear of it, and maybe late."""
    from app import zoo
    from app.jobs import runner
    from app.store.quota import OwnerLimits
    from app.store.records import keep_days
    from app.uploads import limits
    from engine.runtime import time_limit

    quotas, uploads = OwnerLimits.of_environment, limits.UploadLimits.of_environment
    faults = dict[str, None]()
    for read in (quotas, uploads, limits.children, keep_days, zoo.most_memory, time_limit.limit, runner.hours):
        try:
            read()
        except SettingError as error:
            faults |= dict.fromkeys(error.faults)
    for fault in faults:
        log.error("%s", fault)


def open_more_files() -> None:
    """As many as this account may: every visitor takes a few, and most systems begin programs with 1,024."""
    few, many = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in (many, max(few, OPEN_MAX)):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, many))
            return


def begin() -> Store | None:
    """Opens the store, and goes on with jobs of before, though nobody may be looking."""
    from app import work
    from app.store.server import open_store

    check_settings()
    try:
        store = open_store()
        work.queue()
        return store
    except SeqscopeError as error:  # what needs no store goes on working, and the pages that do say the same
        log.error("%s", error)
        return None


@asynccontextmanager
async def life(served: App) -> AsyncGenerator[dict[str, Any]]:
    """Opens the store before the first visitor comes, and closes it after the last one has gone."""
    os.umask(0o077)  # what the server writes is its own account's
    open_more_files()
    address, port = st.get_option("server.address") or "localhost", st.get_option("server.port")
    print(f"Seqscope: http://{f'[{address}]' if ':' in address else address}:{port}{_root}", flush=True)
    loop = asyncio.get_running_loop()
    begun = loop.run_in_executor(None, begin)
    ended = Event()
    begun.add_done_callback(lambda _: loop.run_in_executor(None, warm_up, ended))
    try:
        async with downloads.DOWNLOADS.serving(), early.LINKS.serving():
            yield {"begun": begun}
    finally:
        ended.set()
        if store := await begun:
            from app import work

            work.close()
            store.close()


class Begun:
    """Middleware. The page and its scripts are answered at once; what happens on it waits until the store is open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and (begun := scope.get("state", {}).get("begun")):
            await asyncio.shield(begun)
        await self._app(scope, receive, send)


# Streamlit asks an address service on the internet who it is; nothing of ours calls outward.
net_util.get_external_ip = lambda: None

_root = links.base_path()
app = App(
    Path(__file__).parent / "main.py",
    lifespan=life,
    routes=[Route(f"{_root}/key", keys.page, methods=["GET", "POST"])],
    middleware=[
        Middleware(Door, root=_root),
        Middleware(door.Health, address=f"{_root}/_stcore/health"),
        downloads.ROUTE,
        early.ROUTE,
        Middleware(keys.KeyCookie, needed=needs_key),
        Middleware(Frontend, root=_root),
        Middleware(Begun),
    ],
)
