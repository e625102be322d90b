"""Metrics in a real browser: choices stay in the link, studies are drawn and come down as a file, a history opens in Compare."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.browser.conftest import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAST = "What each piece adds"


def test_a_persons_history_opens_in_compare(visit: Callable[[str], Page]) -> None:
    page = visit("/metrics?ds=hostile")
    page.get_by_role("heading", name=LAST).wait_for()
    settle(page)
    page.get_by_role("button", name="Open in Compare").click()
    page.wait_for_url(re.compile(r"://[^/]+/(compare)?\?(.*&)?u=u"))
    page.get_by_role("heading", level=1, name=re.compile("^What did u. choose next")).wait_for()
