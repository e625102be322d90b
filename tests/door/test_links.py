"""Addresses that a page hands out: how long they lead anywhere, and who may follow them."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from app import keys, links
from app.links import Link, Links
from app.owner import Owner

KEY = keys.make()


def ask(served: Links[str], link: Link[str]) -> str | None:
    """What the link leads its owner to."""
    headers = [(b"cookie", f"{keys.COOKIE}={KEY}".encode())]
    followed = served.followed(Request({"type": "http", "path": f"/there/{link.token}", "headers": headers}))
    return None if followed is None else followed[1].target


def test_a_link_that_is_drawn_again_keeps_its_address_and_leads_to_what_is_there_now() -> None:
    served = Links[str]("/there")
    before = served.link("session", "key", keys.owner(KEY), "old")
    assert served.link("session", "key", keys.owner(KEY), "new").token == before.token and ask(served, before) == "new"
    of_another = served.link("session", "key", "somebody else", "theirs")
    assert of_another.token != before.token and ask(served, before) is None and ask(served, of_another) is None


def test_links_go_with_their_session_and_the_oldest_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LINKS", 3)
    served = Links[str]("/there")
    drawn = [served.link("session", str(n), keys.owner(KEY), str(n)) for n in range(4)]
    assert [ask(served, link) for link in drawn] == [None, "1", "2", "3"]
    served.tidy()
    assert ask(served, drawn[3]) == "3"
    monkeypatch.setattr(links, "LEFT_SECONDS", -1.0)  # since its connection ended
    served.tidy()
    assert ask(served, drawn[3]) is None


def test_links_of_the_latest_alone_are_kept_of_those_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LEFT", 2)
    served = Links[str]("/there")
    for session in ("first", "second", "third"):
        served.link(session, "key", "anna", "")
    served.tidy()
    assert set(served.sessions) == {"second", "third"} and len(served) == 2


def test_who_has_neither_key_nor_account_is_known_by_the_token_of_the_browser() -> None:
    def sent(token: bytes) -> dict[str, str]:
        return {"_streamlit_xsrf": generate_xsrf_token_string(token)}  # masked anew each time

    tab = Owner("of this tab", "session")  # as pages know a browser that keeps no key
    assert links.bearer(tab, sent(b"a" * 16)) == links.bearer(None, sent(b"a" * 16))
    assert len({links.bearer(None, jar) for jar in (sent(b"a" * 16), sent(b"b" * 16), {})}) == 3
