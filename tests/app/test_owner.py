"""Whose data these are: keys, the cookie that carries them, the form that brings them, and what the app makes of both."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit.testing.v1 import AppTest
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from app import home
from app.server import keys, owner
from app.store.server import open_store
from tests.app.conftest import Open

HOST = "seqscope.example.org"


class TestKeys:
    def test_nobody_guesses_one(self) -> None:
        found = {keys.make() for _ in range(500)}
        assert len(found) == 500
        assert all(re.fullmatch(r"([0-9a-hjkmnp-tv-z]{5}-){5}[0-9a-hjkmnp-tv-z]{5}", key) for key in found)
        letters = "".join(key.replace("-", "")[:26] for key in found)
        assert set(letters) == set("0123456789abcdefghjkmnpqrstvwxyz")  # 5 bits a letter, 26 letters

    def test_it_is_read_as_people_type_it(self) -> None:
        for _ in range(50):
            key = keys.make()
            for typed in (key, key.upper(), key.replace("-", ""), f"  {key.replace('-', ' – ')}\n"):
                assert keys.read(typed) == key
            assert keys.read(key.replace("0", "O").replace("1", "l")) == key

    def test_what_is_misspelt_is_none(self) -> None:
        key = keys.make()
        letters = key.replace("-", "")
        taken = 0
        for place in range(0, len(letters), 3):
            for other in "0123456789abcdefghjkmnpqrstvwxyz":
                if other != letters[place]:
                    taken += keys.read(letters[:place] + other + letters[place + 1 :]) is not None
        assert taken == 0  # 10 × 31 misspellings, each taken with a chance of one in a million
        for wrong in ("", letters[:-1], letters + "0", "u" * 30, "x" * 10_000, "é" * 30):
            assert keys.read(wrong) is None

    def test_owners_do_not_tell_the_key_and_accounts_of_two_providers_are_two(self) -> None:
        one, two = keys.make(), keys.make()
        assert keys.owner(one) == keys.owner(one) != keys.owner(two)
        for id in (keys.owner(one), keys.account("https://a.org", "1")):
            assert home.OWNER.fullmatch(id)
        assert keys.owner(one)[0] == "b" and keys.account("https://a.org", "1")[0] == "a"
        assert one.replace("-", "")[:8] not in keys.owner(one)
        ids = {keys.account(*who) for who in (("a", "1"), ("b", "1"), ("a", "11"), ("a1", "1"), ("a", ""))}
        assert len(ids) == 5


# --- the server's side


async def front(request: Request) -> Response:
    return HTMLResponse("<html></html>", headers={"etag": "x", "cache-control": "no-cache"})


async def fragment(request: Request) -> Response:
    return PlainTextResponse("ok")


def served(needed: Callable[[], bool] = lambda: True) -> Starlette:
    return Starlette(
        routes=[
            Route("/", front),
            Route("/static/a.js", fragment),
            Route("/key", keys.page, methods=["GET", "POST"]),
        ],
        middleware=[Middleware(keys.KeyCookie, needed=needed)],
    )


def ask(
    app: Starlette, path: str, method: str = "GET", body: str = "", scheme: str = "http", **headers: str
) -> tuple[int, dict[str, str], str]:
    """(status, headers with cookies one per line, body)"""
    sent = {name.replace("_", "-"): value.encode("latin-1") for name, value in headers.items()}

    async def answered() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"{scheme}://{HOST}") as client:
            return await client.request(method, path, content=body, headers=sent)

    answer = asyncio.run(answered())
    return answer.status_code, {name: "\n".join(answer.headers.get_list(name)) for name in answer.headers}, answer.text


def given(headers: dict[str, str]) -> str:
    match = re.fullmatch(r"([^=]*)=([^;]*)((?:; [^;]*)*)", headers["set-cookie"].splitlines()[0])
    assert match is not None
    assert match[1] == (keys.SECURE_COOKIE if "Secure" in match[3] else keys.COOKIE)
    rest = match[3].removeprefix("; ").split("; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(rest)
    assert keys.read(match[2]) == match[2]
    return match[2]


class TestCookie:
    def test_a_page_brings_a_new_key_for_nobody_else_which_stays(self) -> None:
        app = served()
        one, two = (ask(app, "/")[1] for _ in range(2))
        assert given(one) != given(two) and one["cache-control"] == "no-store"
        key = keys.make()
        _, headers, _ = ask(served(), "/", cookie=f"a=b; {keys.COOKIE}={key}; c=d")
        assert given(headers) == key
        assert "Max-Age=34560000" in headers["set-cookie"]
        parted = {"cookie": "a=b", "Cookie": f"{keys.COOKIE}={key}"}  # as HTTP/2 allows
        assert given(ask(served(), "/", **parted)[1]) == key

    @pytest.mark.parametrize("sent", ["", "a" * 30, "'; drop table", "\xff" * 50])
    def test_what_is_no_key_is_replaced(self, sent: str) -> None:
        assert given(ask(served(), "/", cookie=f"{keys.COOKIE}={sent}")[1]) != sent

    def test_only_pages_bring_it_and_only_where_it_is_needed(self) -> None:
        for app, path in ((served(), "/static/a.js"), (served(), "/nowhere"), (served(lambda: False), "/")):
            assert "set-cookie" not in ask(app, path)[1]

    def test_a_page_that_the_browser_still_has_is_sent_again_for_want_of_a_key(self) -> None:
        seen: list[dict[str, str]] = []

        async def page(request: Request) -> Response:
            seen.append(dict(request.headers))
            return HTMLResponse("")

        app = Starlette(routes=[Route("/", page)], middleware=[Middleware(keys.KeyCookie)])
        ask(app, "/", if_none_match="x", if_modified_since="y")
        ask(app, "/", if_none_match="x", cookie=f"{keys.COOKIE}={keys.make()}")
        assert ["if-none-match" in headers for headers in seen] == [False, True]
        assert "if-modified-since" not in seen[0]

    def test_over_https_it_is_secure_and_has_the_name_that_no_other_site_can_set(self) -> None:
        assert "Secure" not in ask(served(), "/")[1]["set-cookie"]
        for _, headers, _ in (ask(served(), "/", scheme="https"), ask(served(), "/", x_forwarded_proto="https, http")):
            assert given(headers)
            assert headers["set-cookie"].startswith("__Host-") and headers["set-cookie"].endswith("; Secure")
        old, other = keys.make(), keys.make()
        headers = ask(served(), "/", scheme="https", cookie=f"{keys.COOKIE}={old}")[1]
        assert given(headers) != old, "a neighbour in the domain may have set it"
        assert f"{keys.COOKIE}=; Path=/; Max-Age=0" in headers["set-cookie"]
        both = f"{keys.COOKIE}={old}; {keys.SECURE_COOKIE}={other}"
        assert given(ask(served(), "/", scheme="https", cookie=both)[1]) == other


class TestForm:
    def post(self, body: str, **headers: str) -> tuple[int, dict[str, str], str]:
        return ask(served(), "/key", "POST", body, **{"origin": f"https://{HOST}", **headers})

    def test_a_key_is_taken_or_a_new_one_given(self) -> None:
        key = keys.make()
        status, headers, body = self.post(f"do=bring&key={key.upper().replace('-', '+')}")
        assert (status, headers["location"], body) == (303, "/", "")
        assert given(headers) == key
        old = keys.make()
        assert given(self.post("do=new", cookie=f"{keys.COOKIE}={old}")[1]) != old

    @pytest.mark.parametrize(
        "body",
        ["key=abc", "key=%3Cscript%3E", "key=" + "a" * 5000, "key=é", "key=a&" * 50],
    )
    def test_what_is_no_key_changes_nothing_and_is_not_repeated(self, body: str) -> None:
        status, headers, page = self.post(body)
        assert status == 400 and "set-cookie" not in headers
        assert "not a key" in page and 'role="alert"' in page
        assert "<script" not in page and "abc" not in page

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "https://evil.example.org"},
            {"origin": "null"},
            {"origin": f"https://{HOST}.evil.org"},
            {"sec_fetch_site": "cross-site"},
        ],
    )
    def test_another_site_cannot_send_it(self, headers: dict[str, str]) -> None:
        status, answered, _ = self.post(f"key={keys.make()}", **headers)
        assert status == 403 and "set-cookie" not in answered

    def test_without_an_origin_it_is_refused(self) -> None:
        assert ask(served(), "/key", "POST", f"key={keys.make()}")[0] == 403

    def test_the_page_loads_and_runs_nothing(self) -> None:
        key = keys.make()
        status, headers, page = ask(served(), "/key", cookie=f"{keys.COOKIE}={key}")
        assert status == 200 and key not in page
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src" not in policy and "frame-ancestors 'none'" in policy
        assert "<script" not in page and "http" not in page.split("</style>")[1]


# --- the app's side


def who(monkeypatch: pytest.MonkeyPatch, jar: dict[str, str]) -> AppTest:
    """A script that writes who is looking, in a browser with these cookies."""
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.cookies", jar)

    def script() -> None:
        import streamlit as st

        from app.server import owner

        found = owner.get()
        st.session_state.setdefault("of_the_last", found.id if found is not None else "nobody")
        st.text(f"{found.kind} {found.id} {found.name}" if found is not None else "nobody")

    return AppTest.from_function(script)


class TestOwner:
    def test_without_a_cookie_a_tab_is_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for jar in ({}, {keys.COOKIE: "not-a-key"}):
            one, two = who(monkeypatch, jar).run(), who(monkeypatch, jar).run()
            kind, id = one.text[0].value.split()
            assert kind == "session" and home.OWNER.fullmatch(id) and id[0] == "b"
            assert two.text[0].value != one.text[0].value == one.run().text[0].value

    def test_what_a_tab_remembers_goes_with_its_owner(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = keys.make(), keys.make()
        test = who(monkeypatch, {keys.COOKIE: first}).run()
        assert test.session_state["of_the_last"] == keys.owner(first)
        assert test.text[0].value.split() == ["browser", keys.owner(first)]
        monkeypatch.setattr("streamlit.runtime.context.ContextProxy.cookies", {keys.COOKIE: second})
        assert test.run().session_state["of_the_last"] == keys.owner(second)

    def test_with_sign_in_a_key_opens_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        test = who(monkeypatch, {keys.COOKIE: keys.make()})
        test.secrets["auth"] = {"client_id": "c", "redirect_uri": "http://localhost/oauth2callback"}
        assert test.run().text[0].value == "nobody"

    def test_an_account_is_provider_and_subject(self) -> None:
        signed_in = {"is_logged_in": True, "iss": "https://a.org", "sub": "1"}
        id = keys.account("https://a.org", "1")
        assert owner._account(signed_in | {"name": "Anna"}) == owner.Owner(id, "account", "Anna")
        assert owner._account(signed_in) == owner.Owner(id, "account")
        for wrong in (
            {"is_logged_in": False},
            {"iss": None, "email": "anna@a.org"},
            {"sub": ""},
        ):  # an address may change
            assert owner._account(signed_in | wrong) is None


SECRET = "a server's secret"


def signed(claims: dict[str, Any], secret: str = SECRET) -> str:
    """The cookie of a browser that has signed in, as Streamlit writes it."""
    written = json.dumps({"origin": f"https://{HOST}", "is_logged_in": True, **claims})
    return f"{USER_COOKIE_NAME}={create_signed_value(secret, USER_COOKIE_NAME, written).decode()}"


def requester(sent: str, host: str = HOST) -> owner.Owner | None:
    headers = [(b"host", host.encode()), (b"cookie", sent.encode())]
    return owner.of_request({"type": "websocket", "path": "/", "query_string": b"", "headers": headers})


class TestRequest:
    def test_its_key_says_whose_it_is(self) -> None:
        key = keys.make()
        assert requester(f"a=b; {keys.COOKIE}={key}") == owner.Owner(keys.owner(key), "browser")
        assert requester(f"{keys.COOKIE}=made-up") is None

    def test_with_sign_in_the_signed_cookie_of_this_server_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("streamlit.secrets", _Secrets({"auth": {"client_id": "c", "cookie_secret": SECRET}}))
        monkeypatch.setattr("streamlit.web.server.server_util.get_cookie_secret", lambda: SECRET)
        anna = {"iss": "https://a.org", "sub": "1"}
        assert requester(signed(anna)) == owner.Owner(keys.account("https://a.org", "1"), "account")
        assert requester(f"{keys.COOKIE}={keys.make()}") is None
        assert requester(signed(anna, secret="another one's")) is None
        assert requester(signed(anna), host="other.example.org") is None
        assert requester(signed(anna | {"is_logged_in": False})) is None


class _Secrets(dict[str, Any]):
    def load_if_toml_exists(self) -> bool:
        return True


def test_providers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    google, okta = {"client_id": "x"}, {"client_id": "y"}
    for secrets, named in (
        ({"other": google}, None),
        ({"auth": {"client_id": "x"}}, [""]),
        ({"auth": {"cookie_secret": "x", "google": google, "okta": okta}}, ["google", "okta"]),
    ):
        monkeypatch.setattr("streamlit.secrets", _Secrets(secrets))
        assert owner.providers() == named


def save(test: AppTest, name: str, what: str) -> None:
    next(button for button in test.button if button.label == "Saved …").click().run()
    test.text_input(key="saved_name").set_value(name)
    test.button(key=f"saved_{what}").click().run()
    assert not test.exception


def test_a_history_and_a_comparison_are_saved_and_opened(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    key = keys.make()
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.cookies", {keys.COOKIE: key})
    test = open_app(ds="toys", k="7")
    save(test, "  First\n ones ", "history")
    (history,) = open_store().histories.of(keys.owner(key))
    assert (history.name, history.dataset) == ("First ones", "toys")
    assert history.items == test.session_state["seqscope_state"].history
    save(test, "Seven", "comparison")
    (comparison,) = open_store().comparisons.of(keys.owner(key))
    assert comparison.address.startswith("/?") and {"k=7", "ds=toys"} <= set(comparison.address[2:].split("&"))
    again = open_app(saved=history.id)
    assert again.session_state["seqscope_state"].history == history.items
    assert "saved" not in again.query_params and not again.warning
    assert open_app(saved=comparison.id).session_state["seqscope_state"].k == 7
    for number in range(40):  # of so many not all are drawn: five hundred would take seconds
        open_store().histories.save(keys.owner(key), "toys", f"Number {number}", history.items)

    def drawn() -> list[str]:
        next(button for button in test.button if button.label == "Saved …").click().run()
        return [button.label for button in test.button if (button.key or "").startswith("saved_go_")]

    assert len(drawn()) == 30 + 1 and "The latest 30 of 41." in [caption.value for caption in test.caption]
    test.text_input(key="saved_find").set_value(" number 7")
    assert drawn() == ["Number 7"]
