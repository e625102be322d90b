"""Real films: the path of a newcomer, from the first page, without an address, to what is worth its training."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_newcomers_path(visit: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]) -> None:
    page = visit("/")
    expect(page.get_by_test_id("stSidebar")).to_contain_text("9,081 users")
    expect(page.get_by_text(re.compile("^What came next for .* users"))).to_be_visible()
    assert naming(page, "Jedi|Star Wars|Indiana Jones") >= 2  # both sagas are in the history
    fits(page, 1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.get_by_test_id("stSidebarContent").evaluate("sidebar => sidebar.scrollHeight") == 900
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollHeight") <= 3_500  # not long as it is opened

    # counting stands beside neural models; one click tells why it has an item, event by event
    neural, counting = (page.locator(".model").filter(has_text=name) for name in ("SASRec", "Counting transitions"))
    expect(neural).to_be_visible()
    film = counting.locator(".title").first
    title = film.inner_text()
    film.click()
    details = page.get_by_role("complementary", name=f"Details: {title.split(' (')[0]}")
    told = details.get_by_text(re.compile("^Counting transitions adds up to .*, exactly: ")).inner_text()
    score, parts = told.split(" adds up to ")[1].split(", exactly: ")
    assert sum(map(float, re.findall(r" ([+-][\d.]+)(?=,| and|\.$)", parts))) == pytest.approx(float(score), abs=0.03)
    expect(details.get_by_text("Why? Leave-one-out effect")).to_be_in_viewport()  # nothing has to be scrolled to
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied.")).to_be_in_viewport()
    assert "item=" in page.evaluate("navigator.clipboard.readText()")

    page.get_by_role("link", name="Metrics").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Metrics")
    verdict = page.get_by_text(re.compile("^(No neural model is worth|.*, the best of .* neural models, )"))
    expect(verdict).to_contain_text(re.compile("(beats|is below|are level).*, the best of .* that need no training"))
    expect(verdict).to_contain_text(re.compile(r"SASRec.* is (furthest )?(ahead|behind|level) (on|in) "))

    page.get_by_role("link", name="Compare").click()
    page.get_by_role("radio", name="A director").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("these 3 items")
    settle(page)
    assert naming(page, "Kiki|Spirited Away|Nausicaä|Ponyo") >= 1
    fits(page, 390)
    assert not console_errors and not foreign_requests


def naming(page: Page, films: str) -> int:
    """How many models have one of these films among their first three."""
    expect(page.locator(".model .title").first).to_be_visible()
    return sum(
        bool(re.search(films, " ".join(model.locator(".title").all_inner_texts()[:3])))
        for model in page.locator(".model").all()
    )


def fits(page: Page, width: int) -> None:
    """Nothing reaches beyond the screen."""
    page.set_viewport_size({"width": width, "height": 900})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth - e.clientWidth") <= 0
