"""Addresses that a page hands out and that its visitor alone can follow: to files (downloads.py), and to what an edit of the
history brings (early.py).

Nobody can guess one. It lives as long as the session of its page, is not changed by reruns, and leads to what the page shows.
Whoever else asks for it gets the same 404 as for one that never was.
"""

import asyncio
import contextlib
import re
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from app.server import owner
from app.server.owner import Owner

T = TypeVar("T")

LINKS = 100
"""Of a session; the one that was drawn longest ago goes first."""
LEFT = 50
"""Sessions whose connection ended and whose links are kept, the latest: a link holds what it leads to, a report say."""
LEFT_SECONDS = 600.0
"""After its connection ended, a session's links go: a phone that slept comes back."""
TIDY_SECONDS = 30.0
_TOKEN = "[A-Za-z0-9_-]{32}"


@dataclass(eq=False)
class Link(Generic[T]):
    """What a token stands for."""

    token: str
    bearer: str
    """Who may follow it."""
    target: T


@dataclass(eq=False)
class Session(Generic[T]):
    """The links of one session of the app, by their keys; the last drawn comes last."""

    links: dict[str, Link[T]] = field(default_factory=dict)
    seen: float = field(default_factory=time.monotonic)
    """When it was last there; seconds."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """For those who follow links of the session one after the other."""


class Links(Generic[T]):
    """All links of one kind of this server: scripts draw them, requests follow them. path: what their addresses begin with."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._address = re.compile(rf"{re.escape(path)}/(?P<token>{_TOKEN})(/[^/]*)?")
        self._lock = threading.Lock()  # for moments: nothing is made or read under it
        self.sessions: dict[str, Session[T]] = {}
        self._links: dict[str, tuple[Session[T], Link[T]]] = {}
        self._served = False

    def __len__(self) -> int:
        return len(self._links)

    @contextlib.asynccontextmanager
    async def serving(self, tidy: Callable[[], None] | None = None) -> AsyncIterator[None]:
        """From here to the end of the block links are followed, and `tidy`, in place of the links' own, is called in a thread
        every now and then."""

        async def keep_tidy() -> None:
            while True:
                await asyncio.sleep(TIDY_SECONDS)
                await asyncio.to_thread(tidy or self.tidy)

        tidying, self._served = asyncio.create_task(keep_tidy()), True
        try:
            yield
        finally:
            tidying.cancel()
            with self._lock:
                self.sessions, self._links, self._served = {}, {}, False

    def offer(self, key: str, target: T) -> str:
        """The address of `link` on the page that is being drawn; "" where nobody answers at it: `streamlit run app/main.py`
        serves no addresses of ours."""
        context = get_script_run_ctx()
        if context is None or not self._served:
            return ""
        return self.address(self.link(context.session_id, key, visitor(), target))

    def address(self, link: Link[T]) -> str:
        return f"{base_path()}{self.path}/{link.token}"

    def link(self, session: str, key: str, bearer: str, target: T) -> Link[T]:
        """The link at this place of the session's page: redrawn, it keeps its token and leads to the new target."""
        with self._lock:
            page = self.sessions.setdefault(session, Session())
            page.seen = time.monotonic()
            before = page.links.pop(key, None)
            token = before.token if before is not None and before.bearer == bearer else secrets.token_urlsafe(24)
            dropped = [] if before is None else [before]
            while len(page.links) >= LINKS:
                dropped.append(page.links.pop(next(iter(page.links))))
            for old in dropped:
                del self._links[old.token]
            link = page.links[key] = Link(token, bearer, target)
            self._links[token] = page, link
        return link

    def followed(self, request: Request) -> tuple[Session[T], Link[T]] | None:
        """Where the request leads to; None where that is nowhere, or not for whoever asks."""
        match = self._address.fullmatch(request.scope["path"].removeprefix(base_path()))
        with self._lock:
            there = self._links.get(match["token"] if match else "")
        if there is None or there[1].bearer != bearer(owner.of_request(request.scope), request.cookies):
            return None
        return there

    def tidy(self) -> None:
        """Drops links whose session has ended."""
        now = time.monotonic()
        with self._lock:
            left = []
            for id, session in self.sessions.items():
                if exists() and get_instance().is_active_session(id):
                    session.seen = now
                else:
                    left.append(id)
            left.sort(key=lambda id: self.sessions[id].seen, reverse=True)
            for place, id in enumerate(left):
                if place >= LEFT or now - self.sessions[id].seen > LEFT_SECONDS:
                    for link in self.sessions.pop(id).links.values():
                        del self._links[link.token]


class Route:
    """Middleware: answers at the addresses below `path`."""

    def __init__(self, app: ASGIApp, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._app, self._path, self._answer = app, path, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(f"{base_path()}{self._path}/"):
            response = await self._answer(Request(scope))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def bearer(who: Owner | None, cookies: Mapping[str, str]) -> str:
    """Who may follow a link: the owner, or, where there is none that lasts, the browser with Streamlit's token against foreign
    requests. A browser that takes no cookies at all is known by nothing but the address."""
    if who is not None and who.kind != "session":
        return who.id
    sent = cookies.get(XSRF_COOKIE_NAME, "")
    token, _ = decode_xsrf_token_string(sent) if isinstance(sent, str) else (None, None)
    return f"visitor {token.hex()}" if token else "visitor"


def visitor() -> str:
    """The bearer who looks at the page that is being drawn."""
    return bearer(owner.get(), st.context.cookies)


def base_path() -> str:
    """Where the app begins on its server (server.baseUrlPath), such as /seqscope; "" for all of it."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def refused(words: str, status: int) -> Response:
    return PlainTextResponse(words, status, headers={"cache-control": "no-store"})
