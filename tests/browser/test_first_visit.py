"""A newcomer's path: the app without an address shows real films, sensible lists side by side, and what real people had next."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

EXPORTS = Path(__file__).parents[2] / "exports"
pytestmark = pytest.mark.skipif(
    not (EXPORTS / "films" / "dataset.json").is_file(), reason="exports/films is missing: make exports DATASET=films"
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_real_films_at_first_sight(
    new_page: Callable[..., Page],
    serve: Callable[[Path], Any],
    settle: Callable[..., None],
    scheme: str,
    console_errors: list[str],
    foreign_requests: list[str],
) -> None:
    page = new_page(color_scheme=scheme)
    page.goto(serve(EXPORTS).url)
    expect(page.get_by_test_id("stSidebar")).to_contain_text("9,081 people")
    expect(page.get_by_text(re.compile("^What came next for .* people"))).to_be_visible()
    first = " ".join(titles(page, 3))  # Star Wars and Indiana Jones in turn
    assert page.locator(".model").count() >= 3
    assert "Jedi" in first and "Indiana Jones" in first
    fits(page, settle, 1440)

    page.get_by_role("button", name="Load …").click()
    page.get_by_role("button", name="A director").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("these 3 items")
    settle(page)
    assert re.search("Kiki|Spirited Away|Nausicaä", " ".join(titles(page, 3)))
    fits(page, settle, 390)
    assert not console_errors and not foreign_requests


def titles(page: Page, k: int) -> list[str]:
    """The first k of SASRec's list."""
    rows = page.locator('.model[aria-label^="SASRec"]').first.locator(".title")
    expect(rows.first).to_be_visible()
    return rows.all_inner_texts()[:k]


def fits(page: Page, settle: Callable[..., None], width: int) -> None:
    """Nothing reaches beyond the screen."""
    page.set_viewport_size({"width": width, "height": 900})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth - e.clientWidth") <= 0
