"""The sections of a page: the open one is in the address, and no other is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.components import sections
from app.session import state
from tests.app.conftest import at_page
from tests.runtime.bundles import make_zoo

TITLES = {"first": "The first", "second": "The second"}


@pytest.fixture
def opened(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    make_zoo(tmp_path / "exports")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path / "exports"))
    return lambda **address: at_page(root, "metrics", **address).run()


def test_only_the_open_section_is_computed(opened: Callable[..., AppTest]) -> None:
    for address, title in (({}, "Comparison"), ({"section": "runs"}, "Training runs")):
        page = opened(**address)
        assert not page.exception and not page.error and len(page.tabs) > 5
        assert [tab.label for tab in page.tabs if len(tab.children)] == [title]


def test_a_section_that_is_not_there_is_told(opened: Callable[..., AppTest]) -> None:
    page = opened(section="<b>")
    assert "section" in page.warning[0].value and page.tabs[0].children


def test_what_the_browser_sends_must_be_one_of_the_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[object] = []
    monkeypatch.setattr(state, "choose", lambda **own: chosen.append(own))
    for sent in ("The second", "<b>", None):
        monkeypatch.setattr(sections.st, "session_state", {"tabs": sent})
        sections._take("tabs", TITLES)
    assert chosen == [{"section": "second"}]
