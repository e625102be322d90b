"""Semantic IDs in a browser: two tokenizers, an item's codes, items of a prefix; for everybody, on phones, in both schemes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.app.conftest import HOSTILE, rename
from tests.browser.conftest import for_everybody, until
from tests.runtime.bundles import TOYS, make_zoo
from tests.runtime.tokenizations import toy_codes, write_tokenization

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def url(serve: Callable, tmp_path_factory: pytest.TempPathFactory) -> str:
    exports = tmp_path_factory.mktemp("semantic") / "exports"
    path = make_zoo(exports, TOYS[:2])
    rename(path, HOSTILE, [f"toy-{i}" for i in range(len(HOSTILE))])
    write_tokenization(path, "rqvae", order=1)
    write_tokenization(path, "letter", seed=1, order=2)
    write_tokenization(path, "third", seed=2, order=3)
    address: str = serve(exports).url
    return address


def test_from_two_tokenizers_to_an_item_to_a_history(
    page: Page, url: str, settle: Callable, console_errors: list[str], foreign_requests: list[str]
) -> None:
    page.goto(url)
    page.get_by_role("link", name="Semantic IDs").click()
    page.get_by_role("heading", name="Items by their codes").wait_for()
    settle(page)
    page.locator(".st-key-semantic_right_toys input").click()
    page.get_by_role("option", name="THIRD").click()
    page.wait_for_url(re.compile(r"right=third"))
    page.get_by_label("Look up an item").press_sequentially("기생충")
    found = page.get_by_role("button", name="기생충")
    found.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"item=toy-3"))
    settle(page)
    codes = toy_codes()
    chip = page.locator(".st-key-semantic_chip_rqvae_2 button").first  # Streamlit draws one with a tooltip twice
    expect(chip).to_have_text(str(codes[3, 1]))
    chip.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"prefix={codes[3, 0]}-{codes[3, 1]}"))
    number = int((codes[:, :2] == codes[3, :2]).all(1).sum())
    page.get_by_text(re.compile(rf"^{number} items? with codes that begin")).wait_for()
    page.locator(".st-key-semantic_add button").click()
    page.wait_for_url(re.compile(r"[?&]h=[^&]*toy-3"))
    settle(page)
    page.locator(".st-key-semantic_map button").click()
    page.get_by_role("heading", name="Map", exact=True).wait_for()
    page.get_by_text(re.compile(rf"^{number} items?\.$")).wait_for()
    assert not console_errors and not foreign_requests


def test_figures_have_names_and_titles_stay_text(
    page: Page, url: str, settle: Callable, console_errors: list[str]
) -> None:
    page.goto(url + "/semantic_ids?item=toy-0")
    page.get_by_role("heading", name="Items by their codes").wait_for()
    until(page, lambda: page.locator(".js-plotly-plot").count(), 8)
    expect(page.get_by_role("figure", name=re.compile("^Tree of the codes of RQVAE"))).to_have_count(1)
    assert page.locator(".icicle .slice").count() > 20
    expect(page.get_by_text("<script>alert(1)</script>").first).to_be_visible()
    assert page.evaluate("document.querySelectorAll('script:not([src])').length") == page.evaluate(
        "[...document.querySelectorAll('script:not([src])')].filter(e => !e.textContent.includes('alert(1)')).length"
    )
    assert not console_errors


def test_for_everybody(
    page: Page, url: str, settle: Callable, console_errors: list[str], foreign_requests: list[str]
) -> None:
    page.goto(url + "/semantic_ids?prefix=2")
    page.get_by_role("heading", name="Items by their codes").wait_for()
    until(page, lambda: page.locator(".js-plotly-plot").count(), 8)
    settle(page)
    for_everybody(page)
    assert not console_errors and not foreign_requests
