"""The catalogue in a browser: search while typing, filters, the card of an item and its link, hostile titles, a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.app.test_page_catalogue import films
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def url(serve: Callable, tmp_path_factory: pytest.TempPathFactory) -> str:
    exports = tmp_path_factory.mktemp("catalogue") / "exports"
    pq.write_table(films(), make_zoo(exports) / "items.parquet")
    address: str = serve(exports).url
    return address


@pytest.fixture
def go(page: Page, url: str, settle: Callable) -> Callable[[str], Page]:
    page.set_default_timeout(90_000)

    def open_(path: str) -> Page:
        page.goto(url + path)
        page.get_by_role("heading", level=1).first.wait_for(timeout=90_000)  # the first visit opens the models
        settle(page)
        return page

    return open_


def rows(page: Page) -> list[str]:
    """Titles of the list, once every row has been drawn."""
    page.wait_for_function(
        "[...document.querySelectorAll('[class*=st-key-catalogue_open_]')].every(row => row.innerText.trim())"
    )
    return [
        row.strip().replace("\u2060", "") for row in page.locator("[class*='st-key-catalogue_open_']").all_inner_texts()
    ]


def test_search_while_typing_and_hostile_titles(go: Callable, settle: Callable, console_errors: list[str]) -> None:
    page = go("/catalogue")
    shown = rows(page)
    assert shown[:6] == [
        "<script>alert(1)</script> (1960)",
        "$x^2$ (1961)",
        '=HYPERLINK("http://x") (1962)',
        "기생충 (1963)",
        "\u2068أفلام (1964)\u2069",
        "🎬 **bold** [a](b) (1965)",
    ]
    assert len(shown) == 20
    box = page.get_by_label("Search titles")
    box.press_sequentially("기생")
    page.wait_for_function("document.querySelectorAll('[class*=st-key-catalogue_open_]').length === 1")
    settle(page)
    assert rows(page) == ["기생충 (1963)"]
    box.fill("flim 17")  # mistyped
    page.get_by_text("these are similar").wait_for()
    assert "Film 17 (1977)" in rows(page)
    box.fill("qqqqqqqq")
    page.get_by_text("None of 40 items").wait_for()
    page.get_by_role("button", name="Clear search and filters").click()
    settle(page)
    assert len(rows(page)) == 20
    assert not console_errors


def test_the_card_is_reached_by_click_and_by_link(go: Callable, settle: Callable, console_errors: list[str]) -> None:
    page = go("/catalogue")
    page.get_by_role("button", name="기생충 (1963)").first.click()
    page.get_by_role("heading", level=1, name="기생충 (1963)").wait_for()
    assert "item=toy-3" in page.url
    settle(page)
    before = page.locator("text=Film 8 (1968)").count()
    assert before  # the series, in order
    page = go("/catalogue?item=toy-0")
    page.get_by_role("heading", level=1, name="<script>alert(1)</script> (1960)").wait_for()
    page.get_by_role("button", name="All items").click()
    settle(page)
    assert len(rows(page)) == 20 and "item=" not in page.url
    assert not console_errors


def test_adding_reaches_the_history(go: Callable, settle: Callable) -> None:
    page = go("/catalogue")
    page.get_by_role("button", name="Add", exact=True).nth(3).click()
    settle(page)
    assert "toy-3" in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(new_page: Callable, url: str, settle: Callable, scheme: str) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.set_default_timeout(90_000)
    for path in ("/catalogue", "/catalogue?item=toy-3"):
        page.goto(url + path)
        page.get_by_role("heading", level=1).first.wait_for(timeout=90_000)  # the first visit opens the models
        settle(page)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
