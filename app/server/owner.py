"""Who is looking: the owner of what this visitor uploads and saves.

    who = owner.get()
    if who is None:                         # sign-in is configured, and nobody has signed in
        sidebar.sign_in("page")             # app/components/sidebar.py
    else:
        store.datasets.of(who.id)

account   signed in through Streamlit's st.login (OIDC), where secrets.toml has [auth]
browser   everybody else: an unguessable key in a cookie, which the server sets (keys.py)
session   without that cookie, because the browser refuses cookies or the app runs without app/serve.py: until the tab is closed
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.types import Scope
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.errors import StreamlitAuthError

from app.server import keys
from app.text import clean
from engine.errors import SeqscopeError

OUTCOME = "sign_in"
"""The parameter of an address that says how a sign-in ended, where nobody was signed in (door.py)."""
_SESSION, _LAST = "seqscope_session_owner", "seqscope_owner"


@dataclass(frozen=True)
class Owner:
    """Whose data are shown. `id` is a hash: no key and no name can be had from it."""

    id: str
    kind: Literal["account", "browser", "session"]
    name: str = ""
    """How the provider calls the person, not escaped; "" for browsers."""


def get() -> Owner | None:
    """None where one must sign in first. What a tab remembers of one owner is forgotten when another one takes its place."""
    who = _account(st.user) if providers() is not None else _browser()
    id = who.id if who is not None else ""
    if st.session_state.setdefault(_LAST, id) != id:
        st.session_state.clear()
        st.session_state[_LAST] = id
    return who


def id_of_visitor() -> str | None:
    """The id of `get`."""
    who = get()
    return None if who is None else who.id


def required() -> Owner:
    """The owner. Raises SeqscopeError where one must sign in first."""
    owner = get()
    if owner is None:
        raise SeqscopeError("Sign in to use data of your own.")
    return owner


def key() -> str | None:
    """The browser's key itself, to be shown to those who ask for it and put nowhere else; None without one."""
    return keys.key(st.context.cookies)


def _browser() -> Owner:
    secret = key()
    if secret is not None:
        return Owner(keys.owner(secret), "browser")
    id = st.session_state.setdefault(_SESSION, "b" + secrets.token_hex(16))
    return Owner(id, "session")


# --- sign-in


def providers() -> list[str] | None:
    """Names of the providers that one can sign in with; "" is one without a name. None where sign-in is not configured."""
    if not st.secrets.load_if_toml_exists() or "auth" not in st.secrets:
        return None
    section = st.secrets["auth"]
    named = [name for name, value in section.items() if hasattr(value, "get") and value.get("client_id")]
    return named or [""]


def sign_in(provider: str = "") -> None:
    """Leads to the provider. For callbacks. Raises SeqscopeError where the server is not set up for it."""
    try:
        st.login(provider or None)
    except StreamlitAuthError as error:
        raise SeqscopeError(
            "Sign-in is not set up rightly. Those who run this server find out why in its log."
        ) from error


def not_signed_in() -> str:
    """Why who comes back from a provider is nobody, said once; "" for all others. It is taken out of the address."""
    outcome = st.query_params.pop(OUTCOME, "")
    if outcome == "cancelled":
        return "You are not signed in: it was cancelled, or the provider does not let you in. Sign in again, or as somebody else."
    more = "Try once more; where that does not help, those who run this server find out why in its log."
    return f"You are not signed in: it failed between this server and the provider. {more}" if outcome else ""


def _account(claims: Mapping[str, Any]) -> Owner | None:
    if not claims.get("is_logged_in"):
        return None
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not isinstance(issuer, str) or not isinstance(subject, str) or not issuer or not subject:
        return None  # a provider that does not say who somebody is
    called = next((claims.get(claim) for claim in ("name", "preferred_username", "email") if claims.get(claim)), "")
    return Owner(keys.account(issuer, subject), "account", clean(called, 80))


# --- without a page: what the front door asks


def of_request(scope: Scope) -> Owner | None:
    """The owner of an HTTP request or a WebSocket, the same as `get` says in its session.

    None for who has neither: not signed in where one can, or a browser without a key where one cannot.
    """
    connection = HTTPConnection(scope)
    if providers() is not None:
        return _account(_claims(connection))
    sent = keys.key(connection.cookies)
    return Owner(keys.owner(sent), "browser") if sent is not None else None


def _claims(connection: HTTPConnection) -> dict[str, Any]:
    """What st.user holds in a session of this browser: from the cookie that Streamlit signed for this very server.

    Read as in streamlit.web.server.starlette.starlette_websocket (1.67), which does it for WebSockets alone.
    """
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME
    from streamlit.web.server.starlette.starlette_websocket import gather_user_info

    def part(name: str) -> bytes | None:
        sent = connection.cookies.get(name)
        return decode_signed_value(get_cookie_secret(), name, sent) if sent else None

    signed = get_cookie_with_chunks(part, USER_COOKIE_NAME)
    claims: dict[str, Any] = json.loads(signed) if signed else {}
    if urlsplit(str(claims.get("origin"))).netloc != connection.headers.get("host"):
        claims = {}  # of another server that signs with the same secret
    return claims | gather_user_info(connection.headers)  # server.trustedUserHeaders, where a proxy signs in
