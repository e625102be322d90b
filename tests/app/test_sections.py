"""The sections of a page: the open one is in the address, and no other is computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from app.components import sections
from app.session import state

TITLES = {"first": "The first", "second": "The second"}


def test_only_the_open_section_is_computed(open_app: Callable[..., AppTest]) -> None:
    for address, title in (({}, "Comparison"), ({"section": "runs"}, "Training runs")):
        page = open_app(page="metrics", ds="toys", **address)
        assert not page.error and len(page.tabs) > 5
        assert [tab.label for tab in page.tabs if len(tab.children)] == [title]


def test_what_the_browser_sends_must_be_one_of_the_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[object] = []
    monkeypatch.setattr(state, "choose", lambda **own: chosen.append(own))
    for sent in ("The second", "<b>", None):
        monkeypatch.setattr(sections.st, "session_state", {"tabs": sent})
        sections._take("tabs", TITLES)
    assert chosen == [{"section": "second"}]
