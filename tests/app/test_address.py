"""An address is decoded without the app."""

from __future__ import annotations

import pytest

from app.session.address import MAX_HISTORY, MAX_ID, Address, decode, encode
from tests.app.conftest import ODD_IDS


@pytest.mark.parametrize(
    "ids",
    [(), ("",), ("", ""), ("a",), tuple(ODD_IDS), ("~", "%", "%25", "%7E", "a+b", "/?#&=", "기생충", "🎬", "\n")],
)
def test_any_ids_survive_the_address(ids: tuple[str, ...]) -> None:
    assert decode(encode(ids)) == ids


def test_what_is_missing_is_none_and_an_empty_history_is_none_of_these() -> None:
    assert Address.read({}) == Address() and Address().length == 10
    link = Address.read({"ds": "films", "h": "", "b": encode(("a b", "c~d")), "s": "a", "u": "anna", "k": "0"})
    assert link.shows_a and not Address.read({"h": "", "s": "a"}).shows_a
    assert (link.history, link.variant, link.user, link.length) == ((), ("a b", "c~d"), None, None)
    assert Address.read({"u": "anna%20b"}).user == "anna b"
    assert len("".join(Address.read({"h": "x" * 10**6}).history or ())) == MAX_HISTORY * MAX_ID
