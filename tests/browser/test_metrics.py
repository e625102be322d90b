"""Metrics in a real browser: its sections stay in view."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.long
def test_sections_stay_in_view_and_open_from_their_beginning(visit: Callable[[str], Page]) -> None:
    page = visit("/metrics?ds=films")
    tab = page.get_by_role("tab", name="Slices")
    tab.wait_for()
    settle(page)
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("main => main.scrollHeight") <= 3_500  # not long as it is opened
    main.evaluate("main => main.scrollTo(0, main.scrollHeight)")
    expect(tab).to_be_in_viewport()
    tab.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("section=beyond"))
    settle(page)
    top = page.locator(".st-key-sections_metrics").evaluate("row => row.getBoundingClientRect().top")
    assert 0 <= top < 100
    page.go_back()
    expect(page.get_by_role("tab", name="Comparison")).to_have_attribute("aria-selected", "true")


def test_below_a_short_section_is_as_much_as_leaves_the_open_tab_where_it_was(visit: Callable[[str], Page]) -> None:
    page = visit("/about?ds=toys&section=limits")
    main, row = page.locator("[data-testid=stMain]"), page.locator(".st-key-sections_about [role=tablist]")
    panel = page.locator(".st-key-sections_about [role=tabpanel]:visible")
    settle(page)
    content = "panel => panel.firstElementChild.getBoundingClientRect().height"
    assert panel.bounding_box()["height"] <= panel.evaluate(content) + 40  # opened by its address: nothing below it
    page.set_viewport_size({"width": 1440, "height": 400})
    page.get_by_role("tab", name="Terms").click()
    page.wait_for_url(re.compile("section=terms"))
    settle(page)
    main.evaluate("main => main.scrollTo(0, main.scrollHeight)")
    page.get_by_role("tab", name="Limits").click()
    page.wait_for_url(re.compile("section=limits"))
    settle(page)
    assert 0 <= row.evaluate("row => row.getBoundingClientRect().top") < 100
    main.evaluate("main => main.scrollTo(0, 0)")
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop === 0")
    page.wait_for_timeout(100)
    assert panel.bounding_box()["height"] <= max(300, panel.evaluate(content) + 40)
