"""Users in a real browser: a click in the table opens a user beside it, another one the history in Compare."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.conftest import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_users_history_opens_in_compare(visit: Callable[[str], Page]) -> None:
    page = visit("/users?ds=hostile")
    page.get_by_role("button", name="Sort by Items").click()
    settle(page)
    page.get_by_role("button", name="u2", exact=True).click()
    page.get_by_role("heading", name="u2").wait_for()
    settle(page)
    like = page.locator(".st-key-users_user button[kind=tertiary] p").last  # on a tablet it takes two lines
    assert like.evaluate("words => getComputedStyle(words).textAlign") == "start"
    page.get_by_role("button", name="Open in Compare", exact=True).press("Enter")
    page.wait_for_url(re.compile(r"://[^/]+/(compare)?\?(.*&)?u=u2"))
    settle(page)
    expect(page.get_by_test_id("stMain")).to_be_focused()  # a keyboard goes on at the page that came
    page.go_back()  # to the list as it was left
    page.wait_for_url(re.compile(r"/users\?.*sort=length.*user=u2"))
