"""Metrics, Users and Semantic IDs in a real browser: tabs that stay in view, rows that open, bars of a branch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.conftest import settle
from tests.runtime.tokenizations import toy_codes

if TYPE_CHECKING:
    from playwright.sync_api import Page


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


def test_a_users_history_opens_in_compare(visit: Callable[[str], Page]) -> None:
    page = visit("/users?ds=hostile")
    page.get_by_role("button", name="Sort by Items").click()
    settle(page)
    page.get_by_role("button", name="u2", exact=True).click()
    page.get_by_role("heading", name="u2").wait_for()
    settle(page)
    page.get_by_role("button", name="Open in Compare: u2").click()
    page.wait_for_url(re.compile(r"://[^/]+/(compare)?\?(.*&)?u=u2"))
    settle(page)
    page.go_back()  # to the list as it was left
    page.wait_for_url(re.compile(r"/users\?.*sort=length.*user=u2"))


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
