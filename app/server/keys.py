"""The key of a browser: who has it has what was uploaded with it. It lies in a cookie that no script can read.

    key = keys.make()                      # "k4t9x-…": 130 random bits and a check against misspelling
    keys.read(" K4T9X-… ")                 # the key as it was made; None for anything else
    keys.owner(key)                        # who it stands for: a hash, which the store and the file system know

The server keeps no list of keys. Whatever has the form of one stands for an owner, with or without data.
A key is in no log and in no page; the app shows it only where it is asked for (app/components/sidebar.py).

Streamlit's own pages cannot set a cookie that scripts cannot read, so this is done where the server answers: a middleware gives
every page that it sends the cookie (again, so that it does not run out while it is used), and the route /key takes a form, by
which a key is brought to another browser.
"""

import base64
import hashlib
import hmac
import html
import re
import secrets
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "seqscope_key"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Over https: browsers take that name from this very host alone, not from a neighbour in its domain."""
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_RANDOM, _CHECK, _GROUP = 26, 4, 5  # characters
_TYPED = str.maketrans("ilo", "110", " -–—\t\r\n")
_FORM = re.compile(f"[{_DIGITS}]{{{_RANDOM + _CHECK}}}")


def make() -> str:
    text = "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM))
    return _grouped(text + _check(text))


def read(typed: str) -> str | None:
    """The key that was typed or pasted, in the form in which it was made; None where it is none."""
    if len(typed) > 200:
        return None
    text = typed.casefold().translate(_TYPED)
    if not _FORM.fullmatch(text) or not hmac.compare_digest(_check(text[:_RANDOM]), text[_RANDOM:]):
        return None
    return _grouped(text)


def owner(key: str) -> str:
    """Whose data a key opens. The key cannot be had from it."""
    return _hashed("b", "browser", key)


def account(issuer: str, subject: str) -> str:
    """Whose data an account opens: the provider, and its own name for the person, which never changes."""
    return _hashed("a", "account", f"{len(issuer)}:{issuer}{subject}")


def _hashed(kind: str, purpose: str, text: str) -> str:
    return kind + hashlib.sha256(f"seqscope {purpose} {text}".encode()).hexdigest()[:32]


def _check(text: str) -> str:
    digest = hashlib.sha256(f"seqscope key {text}".encode()).digest()
    return "".join(_DIGITS[byte % 32] for byte in digest[:_CHECK])


def _grouped(text: str) -> str:
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))


# --- the cookie


_MAX_AGE = 400 * 24 * 3600  # seconds; browsers allow no more
_MAX_FORM = 2_000  # bytes


class KeyCookie:
    """Middleware: every HTML page that is sent carries the visitor's key, or a new one. needed: asked at each page."""

    def __init__(self, app: ASGIApp, needed: Callable[[], bool] = lambda: True) -> None:
        self._app = app
        self._needed = needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return

        request = Headers(scope=scope)
        browser_key = key(_cookies(request), secure=is_secure(scope, request))

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                is_page = headers.get("content-type", "").startswith("text/html") and message["status"] == 200
                if is_page and self._needed():
                    _give(headers, browser_key or make(), scope)
                    headers["cache-control"] = "no-store"  # nobody may get another one's page
            await send(message)

        if browser_key is None:  # a page that the browser still had from a server without keys would come without one
            whole = [pair for pair in scope["headers"] if pair[0] not in (b"if-none-match", b"if-modified-since")]
            scope = {**scope, "headers": whole}
        await self._app(scope, receive, with_cookie)


def _give(answer: MutableHeaders, key: str, scope: Scope) -> None:
    """Out of reach of scripts, and not sent along when another site posts a form here."""
    request = Headers(scope=scope)
    secure = is_secure(scope, request)
    name, ending = (SECURE_COOKIE, "; Secure") if secure else (COOKIE, "")
    answer.append("set-cookie", f"{name}={key}; Path=/; Max-Age={_MAX_AGE}; HttpOnly; SameSite=Lax{ending}")
    if secure and COOKIE in _cookies(request):  # given over http, it would come back when the other is forgotten
        answer.append("set-cookie", f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure")


def is_secure(scope: Scope, headers: Headers) -> bool:
    """Whether the visitor came by https, to us or to the proxy before us."""
    forwarded = headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return str(scope.get("scheme")) == "https" or forwarded == "https"


def key(cookies: Mapping[str, str], *, secure: bool = False) -> str | None:
    """The browser's key among its cookies; None without one. secure: by the name alone that no neighbour can set."""
    values = (cookies.get(name, "") for name in ((SECURE_COOKIE,) if secure else (SECURE_COOKIE, COOKIE)))
    keys = (read(value) for value in values if isinstance(value, str))  # AppTest's browser sends anything
    return next(filter(None, keys), None)


def _cookies(headers: Headers) -> dict[str, str]:
    return cookie_parser("; ".join(headers.getlist("cookie")))


def is_foreign(headers: Headers) -> bool:
    """Whether another site's page asks: a browser names the page's site in Origin and ours in Host. Programs name none."""
    origin = headers.get("origin")
    if origin is None or origin in st.get_option("server.corsAllowedOrigins"):
        return False
    try:
        return urlsplit(origin).netloc != headers.get("host")
    except ValueError:
        return True


# --- /key


async def page(request: Request) -> Response:
    """GET: the form. POST: this browser takes the key that was typed, or a new one, and goes to the front page."""
    home = request.url.path.removesuffix("key")
    if request.method != "POST":
        return _form(home)
    if not _same_site(request.headers):  # another site must not be able to plant its key here
        return _form(
            home, "This form was not sent from this server's own page. Open the page again and try once more.", 403
        )
    fields = await _fields(request)
    if fields.get("do") == ["new"]:
        key: str | None = make()
    else:
        key = read(fields.get("key", [""])[0])
    if key is None:
        words = "That is not a key: it has six groups of five letters and digits. Look for a missing or mistyped one."
        return _form(home, words, 400)
    answer = RedirectResponse(home, status_code=303)
    _give(answer.headers, key, request.scope)
    answer.headers["cache-control"] = "no-store"
    return answer


def _same_site(headers: Headers) -> bool:
    """Of a form, which all browsers send with an Origin."""
    fetched = headers.get("sec-fetch-site", "same-origin")
    return "origin" in headers and not is_foreign(headers) and fetched in ("same-origin", "none")


async def _fields(request: Request) -> dict[str, list[str]]:
    """What the form says; nothing where it is too long or no form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_FORM:
            return {}
    try:
        return parse_qs(body.decode("ascii"), max_num_fields=5)
    except ValueError:
        return {}


def _form(home: str, problem: str = "", status: int = 200) -> Response:
    told = f'<p class="problem" role="alert">{html.escape(problem)}</p>' if problem else ""
    body = _PAGE.replace("{style}", _STYLE).replace("{home}", html.escape(home)).replace("{problem}", told)
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return HTMLResponse(
        body,
        status_code=status,
        headers={
            "cache-control": "no-store",
            "content-security-policy": f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; "
            "frame-ancestors 'none'; base-uri 'none'",
            "referrer-policy": "same-origin",
            "x-content-type-options": "nosniff",
        },
    )


# The colours of .streamlit/config.toml
_STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfb; --field: #f1f4f3; --ink: #0f181a; --faint: #556264; --line: #d5dcda;
  --accent: #0b6e6e; --on: #fff; --bad: #a32020 }
@media (prefers-color-scheme: dark) { :root { --paper: #111718; --field: #1b2426; --ink: #e6ecea; --faint: #a9b5b6;
  --line: #334043; --accent: #5cc8bd; --on: #0c1112; --bad: #ff9d94 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 "Source Sans", "Segoe UI", system-ui, sans-serif }
main { max-width: 34rem; margin: 8vh auto; padding: 0 1.25rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .75rem } h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem }
p { margin: .5rem 0 } .faint { color: var(--faint) } .problem { color: var(--bad) }
label { display: block; font-weight: 600; margin: 1.25rem 0 .35rem }
input { width: 100%; padding: .6rem .7rem; border: 1px solid var(--line); border-radius: .375rem; background: var(--field);
  color: var(--ink); font: 1rem ui-monospace, Menlo, Consolas, monospace }
button { margin-top: .9rem; padding: .5rem 1rem; border: 1px solid var(--accent); border-radius: .375rem; font: inherit;
  background: var(--accent); color: var(--on); cursor: pointer }
button.plain { background: none; color: var(--accent) }
a { color: var(--accent) } :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Your key – Seqscope</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>Bring your key to this browser</h1>
<p>What you upload and save belongs to the browser that you did it with. With the key of that browser, this one shows the same.
You find the key there in the sidebar, under “Access key”.</p>
{problem}
<form method="post" action="{home}key" autocomplete="off">
<label for="key">Key</label>
<input id="key" name="key" type="password" maxlength="60" required autocapitalize="none" spellcheck="false">
<button name="do" value="bring">Use this key</button>
</form>
<p class="faint">This browser’s own key is then gone from it. Save that one first, if there is anything that you want to keep.</p>
<h2>Leave nothing behind</h2>
<p>On somebody else’s computer: forget the key. Whoever uses this browser next begins with nothing.</p>
<form method="post" action="{home}key"><button class="plain" name="do" value="new">Forget the key</button></form>
<p><a href="{home}">Back to Seqscope</a></p>
</main>
</body>
</html>
"""
