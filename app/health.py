"""Whether visitors are answered, where deployments ask: GET /_stcore/health.

Streamlit's own answer says that the server is up. This middleware looks first at what a page needs, and answers 503 with the
reason where that hangs: the models (engine/runtime/time_limit.py), the store, the disk, a thread like those that pages run
in. A store that another process holds is no such fault: the other pages go on.

Streamlit's page asks the same address before it connects, and must not be kept from pages that would still work: whatever a
browser's page asks (it says where it comes from, or has a cookie) gets Streamlit's answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app import zoo
from app.store.server import open_store
from engine.errors import SeqscopeError
from engine.runtime import Zoo, time_limit

HANGS = 1 / 3
"""Models hang once all places have been held for this share of the time that a graph may run."""
PATIENCE = 3.0
"""Seconds for all else; whoever asks here waits five, or so."""


class Health:
    """Middleware. address: the path that is asked; works: what a page does before anything else, in a thread; it may raise."""

    def __init__(self, app: ASGIApp, address: str, works: Callable[[], None] | None = None) -> None:
        self._app = app
        self._address = address
        self._works = works or page_works
        self._began = 0.0
        self._ended: asyncio.Event | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = ""
        if scope["type"] == "http" and scope["path"] == self._address and not _is_page(Headers(scope=scope)):
            fault = models_hang() or await self._pages_hang()
        answer = PlainTextResponse(f"{fault}\n", 503, {"cache-control": "no-store"}) if fault else self._app
        await answer(scope, receive, send)

    async def _pages_hang(self) -> str:
        """Why, in words; "" where they do not. One thread at a time tries; who asks while it hangs waits for the same one."""
        if self._ended is None:
            self._began, self._ended = time.monotonic(), asyncio.Event()
            threading.Thread(target=self._try, args=(asyncio.get_running_loop(), self._ended), daemon=True).start()
        left = self._began + PATIENCE - time.monotonic()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), max(0.01, left))
            return ""
        return f"Pages are not answered: the store or the disk has kept one waiting for {time.monotonic() - self._began:.0f} s."

    def _try(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
        with contextlib.suppress(Exception):  # what is wrong is said on pages; here counts that they are answered
            self._works()

        def tell() -> None:
            self._ended = None
            ended.set()

        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(tell)


def models_hang() -> str:
    """Why, in words; "" where they do not."""
    limit = time_limit.limit()
    if (seconds := time_limit.stalled()) > HANGS * limit:
        held = f"all {time_limit.PLACES} places have been held by the same questions for {seconds:.0f} s."
        return f"Models are not answered: {held}"
    late = [run for run in time_limit.running() if run.options.terminate and run.seconds > run.limit * (1 + HANGS)]
    return f"A model came to no end within {late[0].limit:g} s, and could not be ended." if late else ""


def page_works() -> None:
    """Looks for datasets, and asks the store."""
    Zoo.list(zoo.root())
    with contextlib.suppress(SeqscopeError):
        open_store().file.ask("select 1")


def _is_page(headers: Headers) -> bool:
    return any(name in headers for name in ("cookie", "referer", "sec-fetch-site"))
