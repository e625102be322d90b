"""Semantic IDs in a browser: an item's codes, items of a prefix, the bars of a branch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle
from tests.runtime.tokenizations import toy_codes

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.long
def test_from_an_items_code_to_what_shares_it_to_the_map(
    visit: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = visit("/semantic_ids?ds=codes&section=item&right=third&item=toy-3")
    codes = toy_codes()
    chip = page.locator(".st-key-semantic_chip_rqvae_2 button").first  # Streamlit draws one with a tooltip twice
    expect(chip).to_have_text(str(codes[3, 1]))
    chip.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"prefix={codes[3, 0]}-{codes[3, 1]}"))
    number = int((codes[:, :2] == codes[3, :2]).all(1).sum())
    page.get_by_text(re.compile(rf"^{number} items? with codes that begin")).wait_for()
    settle(page)
    close = page.get_by_role("button", name="Close")
    for _ in range(2):  # a row whose details were closed opens them again
        close.click()
        expect(close).to_have_count(0)
        settle(page)
        page.locator("[class*=st-key-semantic_items] [data-testid=stDataFrame]").click(position={"x": 15, "y": 54})
        close.wait_for()
        settle(page)
    bars = page.locator(".js-plotly-plot .bars .point path")
    # the branch's own box leads back to the one above; Plotly has a layer of its own for clicks
    bars.first.click(force=True)
    page.wait_for_url(re.compile(rf"prefix={codes[3, 0]}(&|$)"))
    settle(page)
    page.go_back()
    page.wait_for_url(re.compile(rf"prefix={codes[3, 0]}-{codes[3, 1]}"))
    settle(page)
    page.locator(".st-key-semantic_map button").click()
    page.get_by_role("heading", name="Map", exact=True).wait_for()
    page.get_by_text(re.compile(rf"^{number} items?\.$")).wait_for()
    assert not console_errors and not foreign_requests
