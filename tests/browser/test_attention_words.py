"""The words that Recformer looked at, in a real browser: text that stays text, choices in the address, files, narrow and dark."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.app.readers import READER, make_readers
from tests.browser.conftest import download, for_everybody, until
from tests.browser.test_attention import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATH = f"/attention?ds=sample&model={READER}&h=safety-last-1923~the-kid-1921~nosferatu-1922"
CARDS = ".st-key-attention_words"


@pytest.fixture(scope="module")
def url(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    found: str = serve(make_readers(tmp_path_factory.mktemp("exports"), HOSTILE).parent).url
    return found


def cards(page: Page) -> Locator:
    return page.locator(CARDS).locator("li")


def test_words_in_cards_and_files(
    url: str,
    page: Page,
    settle: Callable[..., None],
    console_errors: list[str],
    foreign_requests: list[str],
    tmp_path: Path,
) -> None:
    page.goto(url + PATH)
    page.get_by_role("heading", name="And its own words?").wait_for()
    settle(page)
    expect(cards(page)).to_have_count(3)
    words = page.locator(CARDS).locator(".value .word bdi").all_inner_texts()
    assert {word[:8] for word in words} >= {HOSTILE[0][:8], "기생충"}  # as text
    assert page.locator(CARDS).locator("img, a, script").count() == 0
    assert page.evaluate("window.hit") is None

    before = page.locator(CARDS).locator(".share").all_inner_texts()
    page.locator(".st-key-attention_word_layer_2").get_by_text("1", exact=True).click()
    page.wait_for_url("**word_layer=1**")
    until(page, lambda: page.locator(CARDS).locator(".share").all_inner_texts() != before, True)
    settle(page)
    changed = page.locator(CARDS).locator(".share").all_inner_texts()
    page.locator(".st-key-attention_words_twin summary").click()
    taken = download(page.locator(".st-key-attention_words_csv a"), tmp_path)
    rows = list(csv.DictReader(io.StringIO(taken.read_text("utf-8-sig"))))
    assert 0.5 < sum(float(row["weight"]) for row in rows) <= 1.001
    assert any(row["word"].startswith("'=HYPERLINK") for row in rows)
    first = sum(float(row["weight"]) for row in rows if row["position"] == "1")
    assert changed[0] == f"{first:.0%}"  # the card says what the file says
    page.go_back()
    until(page, lambda: page.locator(CARDS).locator(".share").all_inner_texts(), before)
    assert not console_errors and not foreign_requests


def test_numbers_stand_beneath_the_words(
    url: str, page: Page, settle: Callable[..., None], console_errors: list[str]
) -> None:
    page.goto(url + PATH)
    page.get_by_role("heading", name="And its own words?").wait_for()
    settle(page)
    expect(cards(page)).to_have_count(3)
    for word in page.locator(CARDS).locator(".word").all():
        text, share = (word.get_attribute("title") or "").removesuffix("%").rsplit(": ", 1)
        assert text
        numbers = [float(number.removesuffix("%")) for number in word.locator("small").all_inner_texts()]
        assert numbers == ([pytest.approx(float(share), abs=0.51)] if float(share) >= 1.01 else numbers)
        assert not numbers or float(share) >= 0.99
    for_everybody(page)
    for card in cards(page).all():
        assert card.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert not console_errors
