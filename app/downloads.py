"""Files that a visitor takes away: a link for each, which its owner alone can follow, and a file on the disk that is sent.

    downloads.button("JSON", lambda: write(report), "report.json", "application/json", key="report_json")
    downloads.button("Download Parquet", path, "lists.parquet", "application/vnd.apache.parquet", key="lists")

A click is a request for the link's address, which nobody can guess. What is not a file yet is made then, in a thread of its own,
and sent from the disk, so that it can be cancelled and resumed. The link lives as long as the session of its page; it is not
changed by reruns, and gives what the page shows. Whoever else asks for it gets the same 404 as for one that never was.

Nothing of it goes through Streamlit's store of media, which is one for all visitors and forgets a file with anybody's run.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from app import guard, home, owner
from app.owner import Owner
from app.text import md
from engine.errors import SeqscopeError

Content: TypeAlias = "Path | Callable[[], bytes]"
"""A file that is on the disk already, or what makes one; called in a thread, without a session."""

MAKERS = 4
"""Files that are made at the same time; one of each session."""
LINKS = 100
"""Of a session; the one that was drawn longest ago goes first."""
MOST_BYTES = 1_000_000_000
"""Of all made files together; the one that was asked for longest ago goes first. It can be made again."""
MADE_SECONDS = 900.0
"""After it was last asked for, a made file goes; it can be made again."""
LEFT = 50
"""Sessions whose connection ended and whose links are kept, the latest: a link holds what its file is made of, a report say."""
LEFT_SECONDS = 600.0
"""After its connection ended, a session's links go: a phone that slept comes back."""
_HEADERS = {
    "cache-control": "private, no-store",
    # a report is looked at where it was saved, not here
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_NOTHING = "There is no such file, or not for this browser. Reload the page that the link is on, and click it there."
_ADDRESS = re.compile(r"/download/(?P<token>[A-Za-z0-9_-]{32})(/[^/]*)?")


@dataclass(eq=False)
class Made:
    """A file that a maker has made."""

    path: Path
    bytes: int
    etag: str
    """Of its content: what is made again and is the same can be resumed."""
    used: float
    """When it was last asked for; seconds of time.monotonic()."""


@dataclass(eq=False)
class Link:
    """What a token stands for."""

    token: str
    bearer: str
    """Who may follow it."""
    content: Content
    file_name: str
    mime: str
    made: Made | None = None

    @property
    def address(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.file_name)  # for the eye: the answer's header names the file
        return f"{base_path()}/download/{self.token}/{name}"


@dataclass(eq=False)
class Session:
    """The links of one session of the app, by their keys; the last drawn comes last."""

    links: dict[str, Link] = field(default_factory=dict)
    seen: float = field(default_factory=time.monotonic)
    """When it was last there; seconds."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Who has it makes a file; who comes meanwhile finds it made."""


class Downloads:
    """All links of this server: scripts draw them, requests follow them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # for moments: no file is made, read or deleted under it
        self._sessions: dict[str, Session] = {}
        self._links: dict[str, tuple[Session, Link]] = {}
        self._made: list[Made] = []
        self._folder: Path | None = None
        self._makers: ThreadPoolExecutor | None = None

    @property
    def served(self) -> bool:
        """Whether links are followed: `streamlit run app/main.py` serves no routes of ours."""
        return self._makers is not None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """From here to the end of the block links are followed, and what nobody needs any more goes."""

        async def keep_tidy() -> None:
            while True:
                await asyncio.sleep(30)
                await asyncio.to_thread(self.tidy)

        self._makers = ThreadPoolExecutor(MAKERS, thread_name_prefix="download")
        tidying = asyncio.create_task(keep_tidy())
        try:
            yield
        finally:
            tidying.cancel()
            self._makers.shutdown(wait=False, cancel_futures=True)
            self._makers = None
            with self._lock:
                self._sessions, self._links, self._made = {}, {}, []
                folder, self._folder = self._folder, None
            if folder is not None:
                home.delete(folder)

    def link(self, session: str, key: str, bearer: str, content: Content, file_name: str, mime: str) -> Link:
        """The link at this place of the session's page: redrawn, it keeps its address and leads to the new content."""
        with self._lock:
            page = self._sessions.setdefault(session, Session())
            page.seen = time.monotonic()
            before = page.links.pop(key, None)
            token = before.token if before is not None and before.bearer == bearer else secrets.token_urlsafe(24)
            dropped = [] if before is None else [before]
            while len(page.links) >= LINKS:
                dropped.append(page.links.pop(next(iter(page.links))))
            for old in dropped:
                del self._links[old.token]
            link = page.links[key] = Link(token, bearer, content, file_name, mime)
            self._links[token] = page, link
        return link

    async def answer(self, request: Request) -> Response:
        """The file, or the ranges of it that are asked for."""
        match = _ADDRESS.fullmatch(request.scope["path"].removeprefix(base_path()))
        with self._lock:
            session, link = self._links.get(match["token"] if match else "", (None, None))
        if session is None or link is None or link.bearer != bearer(owner.of_request(request.scope), request.cookies):
            return _refused(_NOTHING, 404)
        if request.method not in ("GET", "HEAD"):
            return _refused("A file can only be read.", 405)
        headers = dict(_HEADERS)
        path = link.content
        if not isinstance(path, Path):
            try:
                made = await self._ready(session, link)
            except Exception as error:  # of whatever makes the file; the log has it whole
                return _refused(guard.noted(error, f"the file {link.file_name}")[1], 500)
            path, headers["etag"] = made.path, f'"{made.etag}"'
        try:
            about = await asyncio.to_thread(os.stat, path)
        except OSError:  # a job or an upload that was deleted
            return _refused(_NOTHING, 404)
        return FileResponse(path, 200, headers, link.mime, filename=link.file_name, stat_result=about)

    async def _ready(self, session: Session, link: Link) -> Made:
        """What the link's maker makes, once for all who ask for it."""
        async with session.turn:
            if link.made is None or not link.made.path.exists():
                link.made = await asyncio.get_running_loop().run_in_executor(self._makers, self._make, link)
            link.made.used = time.monotonic()
            return link.made

    def _make(self, link: Link) -> Made:
        assert not isinstance(link.content, Path)
        content = link.content()
        path = self._place() / home.new_id()  # which nobody knows before it is complete
        try:
            path.write_bytes(content)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise SeqscopeError("The server has no room for the file at the moment. Try again later.") from error
        made = Made(path, len(content), hashlib.sha256(content).hexdigest()[:32], time.monotonic())
        with self._lock:
            self._made.append(made)
        self._unmake(self._too_much())
        return made

    def _place(self) -> Path:
        with self._lock:
            if self._folder is None or not self._folder.is_dir():
                try:
                    self._folder = home.here().stage()
                except SeqscopeError:  # what is shown can be taken away, though nothing can be kept here
                    self._folder = Path(tempfile.mkdtemp(prefix="seqscope-"))
            return self._folder

    def _too_much(self) -> list[Made]:
        """The files that were asked for longest ago, as many as are above MOST_BYTES."""
        with self._lock:
            gone, bytes = [], sum(made.bytes for made in self._made)
            for made in sorted(self._made[:-1], key=lambda made: made.used):
                if bytes > MOST_BYTES:
                    gone.append(made)
                    bytes -= made.bytes
        return gone

    def tidy(self) -> None:
        """Drops links whose session has ended, and files that nobody has asked for lately."""
        now = time.monotonic()
        with self._lock:
            left = []
            for id, session in self._sessions.items():
                if exists() and get_instance().is_active_session(id):
                    session.seen = now
                else:
                    left.append(id)
            left.sort(key=lambda id: self._sessions[id].seen, reverse=True)
            for place, id in enumerate(left):
                if place >= LEFT or now - self._sessions[id].seen > LEFT_SECONDS:
                    for link in self._sessions.pop(id).links.values():
                        del self._links[link.token]
            gone = [made for made in self._made if now - made.used > MADE_SECONDS]
        self._unmake(gone)

    def _unmake(self, gone: Iterable[Made]) -> None:
        """Deletes files. Whoever is reading one reads it to its end; whoever asks for it later has it made again."""
        for made in gone:
            made.path.unlink(missing_ok=True)
            with self._lock, contextlib.suppress(ValueError):
                self._made.remove(made)


DOWNLOADS = Downloads()


class Route:
    """Middleware: answers at /download. Before all that compresses, so that a file's length and ranges are its own."""

    def __init__(self, app: ASGIApp, downloads: Downloads = DOWNLOADS) -> None:
        self._app = app
        self._downloads = downloads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(f"{base_path()}/download/"):
            response = await self._downloads.answer(Request(scope))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def button(
    label: str,
    content: Content,
    file_name: str,
    mime: str,
    *,
    key: str,
    type: Literal["secondary", "tertiary"] = "secondary",
    help: str = "",
) -> None:
    """A link that looks like a button and downloads. label: plain text; key: unique on the page."""
    from app.components.widgets import download  # pandas and more, which a server's start need not wait for

    context = get_script_run_ctx()
    if context is None or not DOWNLOADS.served:
        data = content.read_bytes if isinstance(content, Path) else content
        st.download_button(
            md(label), data, file_name, mime, key, help or None, "ignore", type=type, icon=":material/download:"
        )
        return
    who = bearer(owner.get(), st.context.cookies)
    link = DOWNLOADS.link(context.session_id, key, who, content, file_name, mime)
    download(label, link.address, key=key, type=type, help=help)


def bearer(who: Owner | None, cookies: Mapping[str, str]) -> str:
    """Who may follow a link: the owner, or, where there is none that lasts, the browser with Streamlit's token against foreign
    requests. A browser that takes no cookies at all is known by nothing but the address."""
    if who is not None and who.kind != "session":
        return who.id
    sent = cookies.get(XSRF_COOKIE_NAME, "")
    token, _ = decode_xsrf_token_string(sent) if isinstance(sent, str) else (None, None)
    return f"visitor {token.hex()}" if token else "visitor"


def base_path() -> str:
    """Where the app begins on its server (server.baseUrlPath), such as /seqscope; "" for all of it."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def _refused(words: str, status: int) -> Response:
    return PlainTextResponse(words, status, headers={"cache-control": "no-store"})
