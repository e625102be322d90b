"""About in a real browser: cards and definitions, headings in order, no rule of accessibility broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.bundles import TOYS, make_zoo, seal

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def told(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = make_zoo(tmp_path_factory.mktemp("told"))
    seal(path / "alpha", summary="<img src=x onerror='window.hit = 1'> [link](https://example.org) $x$")
    return serve(path.parent)


def test_cards_and_definitions(told: Any, page: Page, settle: Callable[..., None], console_errors: list[str]) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{told.url}/about")
    page.get_by_role("heading", name="Limits").wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    page.get_by_role("heading", name="Limits").wait_for()
    levels = [
        int(heading.evaluate("one => one.tagName[1]"))
        for heading in page.get_by_test_id("stMain").locator("h1, h2, h3").all()
    ]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in itertools.pairwise(levels))
    text = page.get_by_test_id("stMain").inner_text().replace("\u2060", "")
    for toy in TOYS:
        assert toy.name.capitalize() in text
    assert "[link](https://example.org) $x$" in text and "simulated" in text
    assert page.evaluate("window.hit") is None
    assert not console_errors
