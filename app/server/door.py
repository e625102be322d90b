"""The front door: what comes from outside passes here before Streamlit sees it, and what goes out passes here last.

paths     of Streamlit's own addresses, those that its pages ask for; not its metrics, nor its door for agents
origin    a WebSocket that another site's page opens is refused: Origin against Host, and no question to anybody
messages  what our pages send over the WebSocket; one that clears everybody's caches goes no further
uploads   of an owner, to a live session, counted while they come (received.py)
headers   on every answer
sign-in   who could not be signed in hears of it
ends      who signs out, or has the key forgotten, does so in all tabs
leaving   a client that has gone in the middle of something is a line in the log

health    GET /_stcore/health, asked by a deployment, tells whether visitors are answered

Streamlit 1.67 guards the same places (streamlit/web/server/starlette); what it leaves open is closed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME
from websockets import http11

from app.server import owner, received
from app.server.keys import is_foreign, is_secure
from app.server.received import FILES, ReceivedFile, ReceivedLimits
from engine.errors import SeqscopeError

log = logging.getLogger("seqscope.door")
# With sign-in, cookies hold what the provider said: no page would connect whose provider says more than the usual 8 KiB.
http11.MAX_LINE_LENGTH = max(http11.MAX_LINE_LENGTH, 1 << 15)

_STREAMLITS = "/_stcore/"
_PATHS = re.compile(rf"{_STREAMLITS}(health|host-config|stream|upload_file/.*|bidi-components/.*)")
_UPLOAD = re.compile(rf"{_STREAMLITS}upload_file/(?P<session>[^/]+)/(?P<id>[^/]+)")
_MESSAGES = {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "dataframe_chunk"}
_TOO_LONG = "too long"
_HEADERS = {
    "content-security-policy": "frame-ancestors 'self'",  # no other site may lay its page over ours
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # addresses tell histories
}
# Why a WebSocket is closed (RFC 6455, 7.4.1); after the last it is to be opened anew.
_POLICY, _PROTOCOL, _AGAIN = 1008, 1002, 1012
_ENDS = {("POST", "/key"), ("GET", "/auth/logout")}
"""Where a browser ends being somebody: keys.py, and Streamlit's own."""
_SIGN_INS = {("GET", "/auth/login"), ("GET", "/oauth2callback")}
"""Where Streamlit leads to the provider, and the provider back."""


class Door:
    """Middleware. root: where the app begins, "" or as "/seqscope" (server.baseUrlPath)."""

    def __init__(self, app: ASGIApp, root: str = "") -> None:
        self._app = app
        self._root = root
        self._open: dict[Callable[[], Awaitable[None]], str] = {}
        """What closes a WebSocket → whose it is."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "http":
                await self._request(scope, receive, _with_headers(scope, send))
            elif scope["type"] == "websocket":
                await self._socket(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except (ClientDisconnect, ConnectionError):
            log.info("a client left before %s was over", scope["path"][:100])

    # --- requests

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(self._root)
        upload = _UPLOAD.fullmatch(path) if scope["method"] == "PUT" else None
        if path.startswith(_STREAMLITS) and not _PATHS.fullmatch(path):
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
        elif upload is not None:
            await self._take_in(upload["session"], upload["id"], scope, receive, send)
        elif (scope["method"], path) in _ENDS:
            await self._end(scope, receive, Sent(send))
        elif (scope["method"], path) in _SIGN_INS:
            await self._app(scope, receive, self._with_outcome(scope, send))
        else:
            await self._app(scope, receive, send)

    def _with_outcome(self, scope: Scope, send: Send) -> Send:
        """Streamlit leads back without a word, or to two words alone, where nobody was signed in: the front page says it."""
        cancelled = b"error=access_denied" in scope["query_string"].split(b"&")

        async def with_outcome(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                back = message["status"] >= 400 or headers.get("location") == f"{self._root}/"
                given = [
                    cookie for cookie in headers.getlist("set-cookie") if cookie.startswith(f"{USER_COOKIE_NAME}=")
                ]
                if back and all("Max-Age=0" in cookie for cookie in given):
                    message["status"] = 302
                    headers["location"] = f"{self._root}/?{owner.OUTCOME}={'cancelled' if cancelled else 'failed'}"
            await send(message)

        return with_outcome

    async def _end(self, scope: Scope, receive: Receive, send: Sent) -> None:
        """A tab is who it was when its WebSocket was opened: all of them open theirs anew, with the browser's new cookies."""
        await self._app(scope, receive, send)
        if send.status in (302, 303) and (who := owner.of_request(scope)):
            for close in [close for close, id in self._open.items() if id == who.id]:
                await close()

    async def _take_in(self, session: str, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers, answer = Headers(scope=scope), Sent(send)
        try:
            if is_foreign(headers):
                raise HTTPException(403, "Another site's page sent this file.")
            who = owner.of_request(scope)
            if who is None:
                raise HTTPException(
                    403, "This file came without a key: let this site set cookies, or sign in, and try again."
                )
            length = headers.get("content-length", "")
            file = FILES.begin(session, id, who.id, int(length) if length.isdecimal() and len(length) < 16 else 0)
        except (HTTPException, SeqscopeError) as refusal:
            await _read_out(receive)
            status, words = (
                (refusal.status_code, refusal.detail) if isinstance(refusal, HTTPException) else (413, str(refusal))
            )
            await PlainTextResponse(words, status)(scope, receive, send)
            if not is_foreign(headers):
                received.say_refused(session, words)
            return
        try:
            await self._app(scope, _counted(receive, file), answer)
        finally:
            (FILES.arrived if answer.status == 204 else FILES.refused)(file)
            if file.refusal:
                received.say_refused(session, file.refusal)

    # --- WebSockets

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if is_foreign(headers):
            log.warning(
                "a WebSocket of another site was refused: Origin %.100r, Host %.100r",
                headers["origin"],
                headers.get("host"),
            )
            await send({"type": "websocket.close", "code": _POLICY})
            return
        closed = False

        async def receive_ours() -> Message:
            nonlocal closed
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                kind = _kind(message.get("bytes"))
                if kind is None:
                    closed = True
                    await send({"type": "websocket.close", "code": _PROTOCOL})
                    return {"type": "websocket.disconnect", "code": _PROTOCOL}
                if kind in _MESSAGES or kind == _TOO_LONG:
                    return message
                log.info("a message %s was dropped", kind)

        async def send_while_open(message: Message) -> None:
            if not closed:
                await send(message)

        async def close() -> None:
            nonlocal closed
            closed = True
            with contextlib.suppress(OSError, RuntimeError):  # it was just closed
                await send({"type": "websocket.close", "code": _AGAIN})

        if who := owner.of_request(scope):
            self._open[close] = who.id
        try:
            await self._app(scope, receive_ours, send_while_open)
        finally:
            self._open.pop(close, None)


class Sent:
    """`send`, and the status that was sent."""

    status: int | None = None

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _kind(data: bytes | None) -> str | None:
    """What a message asks for; None where it is none of Streamlit's."""
    if data is None:
        return None
    if len(data) > get_max_widget_state_size_bytes():
        return _TOO_LONG  # Streamlit closes the connection
    try:
        message = BackMsg.FromString(data)
    except DecodeError:
        return None
    if message.WhichOneof("type") == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") or ""
    return message.WhichOneof("type") or ""


def _counted(receive: Receive, file: ReceivedFile) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        try:
            message = await asyncio.wait_for(receive(), received.SILENT_SECONDS)
        except TimeoutError as silent:
            file.refusal = "Nothing more of this file came. Send it again."
            raise HTTPException(408, file.refusal) from silent
        size += len(message.get("body", b""))
        try:
            FILES.grow(file, size)
        except SeqscopeError as full:
            if message.get("more_body"):
                await _read_out(receive)
            file.refusal = str(full)
            raise HTTPException(413, file.refusal) from full  # which Streamlit's application answers with
        return message

    return counted


async def _read_out(receive: Receive) -> None:
    """Throws away what still comes, within bounds: who is cut off while sending does not see the answer."""
    left = ReceivedLimits.of_config().session
    with contextlib.suppress(TimeoutError):
        while left > 0:
            message = await asyncio.wait_for(receive(), received.SILENT_SECONDS)
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return


def _with_headers(scope: Scope, send: Send) -> Send:
    secure = is_secure(scope, Headers(scope=scope))

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if secure:  # Streamlit's cookies, of sign-in too, are so only where it has the certificate itself
                headers.raw[:] = [
                    (name, _secured(value) if name == b"set-cookie" else value) for name, value in headers.raw
                ]
        await send(message)

    return with_headers


def _secured(cookie: bytes) -> bytes:
    return cookie if b"; secure" in cookie.lower() else cookie + b"; Secure"


# --- health


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
            fault = await self._pages_hang() or models_hang()
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
    from engine.runtime import time_limit  # a server answers before models can

    try:
        limit = time_limit.limit()
    except SeqscopeError as error:  # each question to a model ends with it
        return f"Models are not answered: {error}"
    if (seconds := time_limit.stalled()) > HANGS * limit:
        held = f"all {time_limit.PLACES} places have been held by the same questions for {seconds:.0f} s."
        return f"Models are not answered: {held}"
    late = [run for run in time_limit.running() if run.options.terminate and run.seconds > run.limit * (1 + HANGS)]
    return f"A model came to no end within {late[0].limit:g} s, and could not be ended." if late else ""


def page_works() -> None:
    """Looks for datasets, and asks the store."""
    from app import zoo
    from app.store.server import open_store
    from engine.runtime import Zoo

    Zoo.list(zoo.root())
    with contextlib.suppress(SeqscopeError):
        open_store().file.ask("select 1")


def _is_page(headers: Headers) -> bool:
    return any(name in headers for name in ("cookie", "referer", "sec-fetch-site"))
