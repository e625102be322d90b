"""Attention in a real browser: words and their file, and what a pointer lights."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import download, settle
from tests.browser.datasets import TITLES

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

WORDS = ".st-key-attention_words"


def cards(page: Page) -> Locator:
    return page.locator(WORDS).locator("li")


@pytest.mark.long
def test_words_in_cards_and_files(visit: Callable[[str], Page], console_errors: list[str], tmp_path: Path) -> None:
    page = visit("/attention?ds=readers&model=recformer&h=safety-last-1923~the-kid-1921~nosferatu-1922")
    page.get_by_role("heading", name="Word by word").wait_for()
    settle(page)
    expect(cards(page)).to_have_count(3)
    words = page.locator(WORDS).locator(".value .word bdi").all_inner_texts()
    assert {word[:8] for word in words} >= {TITLES[0][:8], "기생충"}  # as text
    assert page.locator(WORDS).locator("img, a, script").count() == 0
    for word in page.locator(WORDS).locator(".word").all():  # numbers stand beneath the words
        text, share = (word.get_attribute("title") or "").removesuffix("%").rsplit(": ", 1)
        assert text
        numbers = [float(number.removesuffix("%")) for number in word.locator("small").all_inner_texts()]
        assert numbers == ([pytest.approx(float(share), abs=0.51)] if float(share) >= 1.01 else numbers)
        assert not numbers or float(share) >= 0.99
    for card in cards(page).all():
        assert card.evaluate("e => e.scrollWidth - e.clientWidth") <= 0

    page.locator(".st-key-attention_words_twin summary").click()
    settle(page)  # no link moves under the click
    taken = download(page.locator(".st-key-attention_words_csv a"), tmp_path)
    rows = list(csv.DictReader(io.StringIO(taken.read_text("utf-8-sig"))))
    assert 0.5 < sum(float(row["weight"]) for row in rows) <= 1.001
    assert any(row["word"].startswith("'=HYPERLINK") for row in rows)
    first = sum(float(row["weight"]) for row in rows if row["position"] == "1")
    assert page.locator(WORDS).locator(".share").first.inner_text() == f"{first:.0%}"  # the card says the same
    assert page.evaluate("window.hit") is None
    assert not console_errors


def test_what_is_pointed_at_is_lit_in_both_places(visit: Callable[[str], Page], console_errors: list[str]) -> None:
    page = visit("/attention?ds=hostile&h=toy-21~toy-22~toy-23&section=positions")
    page.get_by_role("heading", name="Layers and heads").wait_for()
    settle(page)
    chips, bands = page.locator(".history li"), page.locator(".st-key-attention_map i.lit")
    grid = page.locator(".st-key-attention_map .nsewdrag").first
    box = grid.bounding_box()
    assert box is not None
    cell = {"x": box["width"] / 6, "y": box["height"] / 2}  # of 3 × 3: the second event, and the first that it sees
    grid.hover(position=cell, force=True)
    expect(bands).to_have_count(2)
    expect(page.locator(".history li.lit")).to_have_count(2)
    row, column = (band.bounding_box() for band in bands.all())
    label = page.locator(".st-key-attention_map .ytick text").nth(1).bounding_box()
    assert row and column and label
    assert row["x"] <= label["x"] and row["y"] <= label["y"] + label["height"] / 2 <= row["y"] + row["height"]
    assert column["x"] <= box["x"] + cell["x"] <= column["x"] + column["width"]
    page.get_by_role("heading", level=1).hover()
    expect(bands).to_have_count(0)
    chips.nth(2).locator(".title").focus()
    expect(bands).to_have_count(2)
    expect(page.locator(".history li.lit .move")).to_have_text("3")
    assert not console_errors
