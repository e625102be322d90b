"""Files that a visitor takes away: a link for each, which its owner alone can follow, and a file on the disk that is sent.

    downloads.button("JSON", lambda: write(report), "report.json", "application/json", key="report_json")
    downloads.button("Download Parquet", path, "lists.parquet", "application/vnd.apache.parquet", key="lists")

A click is a request for the link's address (links.py). What is not a file yet is made then, in a thread of its own, and sent from
the disk, so that it can be cancelled and resumed.

Nothing of it goes through Streamlit's store of media, which is one for all visitors and forgets a file with anybody's run.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from app import guard, home
from app.server.links import Links, Route, Session, refused
from app.text import md
from engine.errors import SeqscopeError

Content: TypeAlias = "Path | Callable[[], bytes]"
"""A file that is on the disk already, or what makes one; called in a thread, without a session."""

MAKERS = 4
"""Files that are made at the same time; one of each session."""
MOST_BYTES = 1_000_000_000
"""Of all made files together; the one that was asked for longest ago goes first. It can be made again."""
MADE_SECONDS = 900.0
"""After it was last asked for, a made file goes; it can be made again."""
_HEADERS = {
    "cache-control": "private, no-store",
    # a report is looked at where it was saved, not here
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_NOTHING = "There is no such file, or not for this browser. Reload the page that the link is on, and click it there."


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
class File:
    """What a link leads to."""

    content: Content
    name: str
    mime: str
    made: Made | None = None


class Downloads:
    """All links of this server: scripts draw them, requests follow them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # for moments: no file is made, read or deleted under it
        self.links: Links[File] = Links("/download")
        self._made: list[Made] = []
        self._folder: Path | None = None
        self._makers: ThreadPoolExecutor | None = None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """From here to the end of the block links are followed, and what nobody needs any more goes."""
        self._makers = ThreadPoolExecutor(MAKERS, thread_name_prefix="download")
        try:
            async with self.links.serving(self.tidy):
                yield
        finally:
            self._makers.shutdown(wait=False, cancel_futures=True)
            with self._lock:
                self._made = []
                folder, self._folder = self._folder, None
            if folder is not None:
                home.delete(folder)

    async def answer(self, request: Request) -> Response:
        """The file, or the ranges of it that are asked for."""
        there = self.links.followed(request)
        if there is None:
            return refused(_NOTHING, 404)
        session, file = there[0], there[1].target
        if request.method not in ("GET", "HEAD"):
            return refused("A file can only be read.", 405)
        headers = dict(_HEADERS)
        path = file.content
        if not isinstance(path, Path):
            try:
                made = await self._ready(session, file)
            except Exception as error:  # of whatever makes the file; the log has it whole
                return refused(guard.noted(error, f"the file {file.name}")[1], 500)
            path, headers["etag"] = made.path, f'"{made.etag}"'
        try:
            about = await asyncio.to_thread(os.stat, path)
        except OSError:  # a job or an upload that was deleted
            return refused(_NOTHING, 404)
        return FileResponse(path, 200, headers, file.mime, filename=file.name, stat_result=about)

    async def _ready(self, session: Session[File], file: File) -> Made:
        """What the file's maker makes, once for all who ask for it."""
        async with session.turn:
            if file.made is None or not file.made.path.exists():
                file.made = await asyncio.get_running_loop().run_in_executor(self._makers, self._make, file)
            file.made.used = time.monotonic()
            return file.made

    def _make(self, file: File) -> Made:
        assert not isinstance(file.content, Path)
        content = file.content()
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
                    self._folder = home.here().stage(home.MADE)
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
        self.links.tidy()
        now = time.monotonic()
        with self._lock:
            gone = [made for made in self._made if now - made.used > MADE_SECONDS]
        self._unmake(gone)

    def _unmake(self, gone: Iterable[Made]) -> None:
        """Deletes files. Whoever is reading one reads it to its end; whoever asks for it later has it made again."""
        for made in gone:
            made.path.unlink(missing_ok=True)
            with self._lock, contextlib.suppress(ValueError):
                self._made.remove(made)


DOWNLOADS = Downloads()
ROUTE = Middleware(Route, path=DOWNLOADS.links.path, answer=DOWNLOADS.answer)
"""Before all that compresses, so that a file's length and ranges are its own."""


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

    address = DOWNLOADS.links.offer(key, File(content, file_name, mime))
    if not address:
        data = content.read_bytes if isinstance(content, Path) else content
        st.download_button(
            md(label), data, file_name, mime, key, help or None, "ignore", type=type, icon=":material/download:"
        )
        return
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", file_name)  # for the eye: the answer's header names the file
    download(label, f"{address}/{name}", key=key, type=type, help=help)
