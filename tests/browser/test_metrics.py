"""Metrics in a real browser: its sections stay in view."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.conftest import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_sections_stay_in_view_and_open_from_their_beginning(visit: Callable[[str], Page]) -> None:
    page = visit("/metrics?ds=films")
    tab = page.get_by_role("tab", name="Slices")
    tab.wait_for()
    settle(page)
    page.locator("[data-testid=stMain]").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    expect(tab).to_be_in_viewport()
    tab.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("section=beyond"))
    settle(page)
    top = page.locator(".st-key-sections_metrics").evaluate("row => row.getBoundingClientRect().top")
    assert 0 <= top < 100
    page.go_back()
    expect(page.get_by_role("tab", name="Comparison")).to_have_attribute("aria-selected", "true")
