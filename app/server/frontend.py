"""Streamlit's own page and scripts, handed out so that a first visit waits for few round trips.

Its page names sixty modules to load at once; those of the widgets are found later, in three rounds of requests, as each names
what it needs. And every file is opened and read anew in a pool of threads, some 4 ms for each of a hundred files. Here the page
names all that the first lists need and says that it is loading; once it stands it fetches what tables and figures need, and a
click on another page finds them there. Files that were asked for stay in memory, packed with gzip for browsers that read it:
Streamlit sends the scripts of a first page as they are, 3 MB, those of a figure 5 MB more.
"""

import gzip
import json
import mimetypes
import re
from functools import cache
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.file_util import get_static_dir

WIDGETS = ("BidiComponent", "Button", "ButtonGroup", "NumberInput", "Selectbox", "TextInput")
"""Streamlit's modules of what stands on every page; one that a later version calls otherwise is found late, as before."""
LATER = ("DataFrame", "PlotlyChart")
"""Those of tables and figures: 1.7 MB as they are sent, for which a click on a page that has some would wait."""
_FOLDER = "/static/"
_IMPORT = re.compile(r'(?:from|import)\s*"\./([^"]+\.js)"')
_NAMED = re.compile(r'"\./static/js/([^"]+\.js)"')
_ROOT = b'<div id="root">'
_STYLE = b"<style>html{color-scheme:light dark}p{font:1rem sans-serif;margin:2rem}</style>"
_LOADING = _STYLE + b"<p>Seqscope is loading &hellip;</p>"
"""Until Streamlit's page takes its place: on a slow line the window was blank until all scripts had come."""
_FETCH_LATER = b"""<script>
addEventListener("load", () => setTimeout(() => {
  for (const name of %s) {
    const link = document.createElement("link")
    Object.assign(link, {rel: "prefetch", as: "script", crossOrigin: "", href: `./static/js/${name}`})
    document.head.append(link)
  }
}, 4000))
</script>
"""
"""When the first lists stand, which would share the line with them; the browser does it when it has nothing else to fetch."""
_FOR_EVER = "public, immutable, max-age=31536000"  # names carry a hash of the content; Streamlit says the same


class Frontend:
    """Middleware. root: where the app begins, "" or as "/seqscope" (server.baseUrlPath)."""

    def __init__(self, app: ASGIApp, root: str = "") -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        name = scope["path"].removeprefix(self._root)
        headers = Headers(scope=scope)
        if name.startswith(_FOLDER) and name in _files() and "range" not in headers:
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            packed = name.endswith((".js", ".css")) and "gzip" in headers.get("accept-encoding", "")
            more = {"cache-control": _FOR_EVER, "vary": "Accept-Encoding"}
            if packed:
                more["content-encoding"] = "gzip"
            await Response(_content(name, packed), media_type=kind, headers=more)(scope, receive, send)
        elif "text/html" in headers.get("accept", ""):
            plain = [(key, value) for key, value in scope["headers"] if key != b"accept-encoding"]
            await self._app({**scope, "headers": plain}, receive, _with_modules(send, self._missing(name)))
        else:
            await self._app(scope, receive, send)

    def _missing(self, name: str) -> bytes | None:
        """What answers an address below a page's, where Streamlit's page would not find its scripts and stay blank; else None."""
        if "/" not in name[1:]:
            return None
        link = f'<p>There is no such page. <a href="{self._root}/">Open Seqscope</a></p>'
        return b"<!doctype html><title>Seqscope</title>" + _STYLE + link.encode()


@cache
def _files() -> frozenset[str]:
    """What may be asked for: "/static/js/index.DormvYxC.js", …"""
    top = Path(get_static_dir())
    return frozenset(f"/{path.relative_to(top).as_posix()}" for path in (top / "static").rglob("*") if path.is_file())


@cache
def _content(name: str, packed: bool = False) -> bytes:
    content = Path(get_static_dir(), name.lstrip("/")).read_bytes()
    return gzip.compress(content, 6, mtime=0) if packed else content


def _named_by_page() -> list[str]:
    return _NAMED.findall(Path(get_static_dir(), "index.html").read_text("utf-8"))


@cache
def modules_of(*names: str) -> tuple[str, ...]:
    """File names of Streamlit's modules of these names and of all that they import, without those that its page names itself."""
    seen = set(_named_by_page())
    needed: list[str] = []
    prefix = f"{_FOLDER}js/"
    scripts = [name.removeprefix(prefix) for name in sorted(_files()) if name.startswith(prefix)]
    waiting = [name for name in scripts if name.split(".")[0] in names and name.endswith(".js")]
    while waiting:
        name = waiting.pop()
        if name not in seen and prefix + name in _files():
            seen.add(name)
            needed.append(name)
            waiting += _IMPORT.findall(_content(prefix + name).decode("utf-8"))
    return tuple(needed)


def pack() -> None:
    """Reads and packs the scripts of a first page and those of LATER, a quarter of a second for which its visitor would wait."""
    for module in (*_named_by_page(), *modules_of(*WIDGETS, *LATER)):
        _content(f"{_FOLDER}js/{module}", packed=True)


def _with_modules(send: Send, missing: bytes | None) -> Send:
    """Names them in the head of Streamlit's page, which says that it is loading; any other answer goes as it is. missing: stands
    for Streamlit's page where there is none."""
    links = "".join(
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">\n' for name in modules_of(*WIDGETS)
    )
    head = links.encode() + _FETCH_LATER % json.dumps(modules_of(*LATER)).encode()
    start: Message | None = None
    body = b""

    async def insert(message: Message) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start" and message["status"] == 200:
            if Headers(raw=message["headers"]).get("content-type", "").startswith("text/html"):
                start = message
                return
        elif message["type"] == "http.response.body" and start is not None:
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            if b"./static/js/" in body:
                if missing is not None:
                    start["status"], body = 404, missing
                else:
                    body = body.replace(b"</head>", head + b"</head>", 1).replace(_ROOT, _ROOT + _LOADING, 1)
                    body = body.replace(b"<title>Streamlit<", b"<title>Seqscope<", 1)
                MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
            await send(start)
            message = {"type": "http.response.body", "body": body}
        await send(message)

    return insert
