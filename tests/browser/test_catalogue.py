"""The catalogue in a browser: search while typing, filters, the card of an item and its link, hostile titles."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.app.test_page_catalogue import HOSTILE
from tests.browser.conftest import WIDE, settle, until

if TYPE_CHECKING:
    from playwright.sync_api import Page


def rows(page: Page) -> list[str]:
    """Titles of the list."""
    found = page.locator("[class*='st-key-catalogue_open_']").all_inner_texts()
    return [row.strip().replace("\u2060", "") for row in found]


def test_search_while_typing_hostile_titles_and_by_keyboard_a_filter_paging_and_an_item(
    visit: Callable[[str], Page], console_errors: list[str]
) -> None:
    page = visit("/catalogue?ds=codes")
    hostile = [f"{title} ({1960 + at})" for at, title in enumerate(HOSTILE)]
    until(page, lambda: [row.strip("\u2068\u2069") for row in rows(page)[:6]], hostile)
    assert len(rows(page)) == 20
    box = page.get_by_label("Search titles and attributes")
    said = page.get_by_role("status").filter(has_text="items")  # for a screen reader
    expect(said).to_have_text("40 items")
    box.press_sequentially("기생")
    until(page, lambda: rows(page), ["기생충 (1963)"])
    expect(said).to_have_text("1 of 40 items")
    box.fill("flim 17")  # mistyped
    page.get_by_text("Nearest: film 17").wait_for()
    until(page, lambda: "Film 17 (1977)" in rows(page), True)
    box.fill("mystery")  # a genre of every second one
    page.get_by_text("Genres: Mystery").first.wait_for()
    box.fill("qqqqqqqq")
    page.get_by_text("None of 40 items").wait_for()
    settle(page)
    page.get_by_role("button", name="Clear search and filters").click()
    until(page, lambda: len(rows(page)), 20)
    expect(box).to_have_value("")
    settle(page)

    button = page.get_by_role("button", name="Genres", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    mystery = page.get_by_role("button", name="Mystery · 20")
    mystery.wait_for()
    page.keyboard.press("Tab")  # into what has opened
    focused = page.locator("[data-testid=stPopoverBody] button:focus")
    expect(focused).to_have_text(re.compile("· 20"))
    page.keyboard.press("Tab")  # and on
    expect(page.get_by_role("button", name="Year", exact=True)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(button).to_be_focused()
    mystery.click()
    expect(said).to_have_text("20 of 40 items")
    settle(page)
    page.get_by_text("Horror · 20").click()  # the list stays open for a second pick
    page.get_by_role("button", name=re.compile("Genres: (Mystery, Horror|Horror, Mystery)")).wait_for()
    page.keyboard.press("Escape")
    expect(mystery).to_have_count(0)
    settle(page)
    page.get_by_role("button", name="Genres:").click()
    until(page, lambda: rows(page)[:1] + rows(page)[-1:], ["<script>alert(1)</script> (1960)", "Film 19 (1979)"])
    settle(page)
    page.get_by_role("button", name="Page 2").click()
    until(page, lambda: rows(page)[:1] + rows(page)[-1:], ["Film 20 (1980)", "Film 39 (1999)"])
    settle(page)
    page.evaluate("document.documentElement.style.fontSize = '48px'")  # text is three times as large
    pages = page.get_by_role("navigation", name="Pagination")
    assert pages.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert page.locator(".st-key-catalogue_sort").evaluate("e => e.clientWidth") > 400
    page.evaluate("document.documentElement.style.fontSize = ''")
    title, add = (page.locator(f".st-key-catalogue_{name}_29 button:visible") for name in ("open", "add"))
    add.focus()
    page.keyboard.press("Enter")
    expect(add).to_be_disabled()
    expect(title).to_be_focused()  # the keyboard stays at the item that it added
    assert not console_errors


@pytest.mark.long
def test_details_open_beside_the_list_until_escape(visit: Callable[[str], Page], console_errors: list[str]) -> None:
    page = visit("/catalogue?ds=codes")
    details = page.get_by_role("complementary", name="Details")
    for size in (WIDE, {"width": 390, "height": 844}):
        page.set_viewport_size(size)
        settle(page)
        title = page.get_by_role("button", name="기생충 (1963)").first
        title.click()
        page.wait_for_url(re.compile(r"[?&]item=toy-3(&|$)"))
        expect(details.locator("header .item")).to_be_in_viewport()
        expect(title).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= size["width"]
        details.get_by_role("button", name="Film 8 (1968)").first.click()  # of its series
        expect(details.locator("header .item")).to_contain_text("Film 8")
        page.keyboard.press("Escape")
        expect(details).to_have_count(0)
        until(page, lambda: "item=" in page.url, False)
        assert len(rows(page)) == 20
    assert not console_errors
