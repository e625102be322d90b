"""An upload in a browser: a messy catalogue and log, mended by choosing otherwise, and checked; on a phone, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests import shop
from tests.browser.conftest import download
from tests.browser.messy import choose, put

if TYPE_CHECKING:
    from playwright.sync_api import Page

TITLES = (
    "기생충",
    "올드보이",
    "살인의 추억",
    "<script>alert(1)</script>",
    '=HYPERLINK("http://x.org")',
    "봄 여름 가을 겨울",
)
ITEMS = (
    "번호;제목;장르\n"
    + "".join(f"{n};{title};영화\n" for n, title in enumerate(TITLES))
    + ";no id;영화\n0;again;영화\n"
)
LOG = "user\tmovie\twhen\n" + "".join(f"u{u}\t{(u + n) % 7}\t{n + 1:02d}/02/2024\n" for u in range(4) for n in range(5))


@pytest.fixture
def start(server: Any, settle: Callable) -> Callable[[Page], Page]:
    def go(page: Page) -> Page:
        page.goto(f"{server.url}/your_data")
        page.get_by_role("heading", name="Log (optional)").wait_for()
        settle(page)
        return page

    return go


def test_a_messy_upload_is_looked_at_and_checked(
    page: Page,
    start: Callable,
    settle: Callable,
    console_errors: list[str],
    foreign_requests: list[str],
    tmp_path: Path,
) -> None:
    start(page)
    put(page, 0, "영화.csv", ITEMS.encode("cp949"))
    page.get_by_text("CP949 (Korean)").first.wait_for()
    # what was guessed, and the lines that it was guessed by
    page.get_by_text("The lines that the encoding decides on").wait_for()
    page.get_by_role("heading", name="How the catalogue is read").wait_for()
    put(page, 0, "log.tsv", LOG.encode())
    page.get_by_role("heading", name="How the log is read").wait_for()
    settle(page)
    check = page.get_by_role("button", name="Check", exact=True)
    choose(page, settle, "Item title", "장르")  # and back again
    choose(page, settle, "Item title", "제목")
    choose(page, settle, "Time (optional)", "when")
    page.get_by_text("the other way round").first.wait_for()  # 05/02/2024 is in May or in February
    expect(check).to_be_enabled()
    check.click()
    page.get_by_role("heading", name="What was found").wait_for()
    page.get_by_text("1 × item without an id, in the catalogue").wait_for()
    page.get_by_text("1 × further row of an item, with other content, in the catalogue").wait_for()
    page.get_by_text("1 × item of the log that the catalogue lacks, in the log").wait_for()
    page.get_by_text("2 rows are left out").wait_for()
    page.get_by_text("Findings line by line").click()
    rows = download(page.get_by_role("link", name="as CSV"), tmp_path).read_text("utf-8").splitlines()
    assert rows[0].startswith("file,line,column,value,problem") and any(row.startswith("catalogue,8,") for row in rows)
    page.get_by_role("button", name="Use it without the 2 bad rows").wait_for()
    page.get_by_role("button", name="Start over").click()
    page.get_by_text("영화.csv").wait_for(state="detached")
    assert not console_errors and not foreign_requests


def test_a_log_of_a_shop_says_what_its_held_out_items_are(
    page: Page, start: Callable, console_errors: list[str]
) -> None:
    start(page)
    put(page, 1, "retail.csv", shop.log(60).encode())
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("8 (13%) have a negative quantity").wait_for()
    for label, words in (("Shuffle ties", ""), ("Drop negative quantities", "0 (0%) have a negative quantity")):
        page.get_by_text(label, exact=True).click()
        page.get_by_text(words or "Of 60 held-out items").first.wait_for()
        expect(page.get_by_role("checkbox", name=label)).to_be_checked()
    expect(page.get_by_text("8 × event of a negative quantity").first).to_be_visible()
    assert not console_errors


def test_what_is_no_table_ends_in_words(page: Page, start: Callable, console_errors: list[str]) -> None:
    start(page)
    put(page, 0, "films.csv", b"PK\x03\x04 this is no text")
    page.get_by_text("a ZIP archive or an Excel workbook").wait_for()
    page.get_by_role("button", name="Another file").click()
    page.get_by_text("a ZIP archive or an Excel workbook").wait_for(state="detached")
    put(page, 0, "shop.csv", b"item_id,title\n1,a\n2,b\n")
    expect(page.get_by_role("button", name="Check", exact=True)).to_be_enabled()
    assert not console_errors


def test_the_steps_are_not_wider_than_a_phone(new_page: Callable, start: Callable, settle: Callable) -> None:
    page = new_page(viewport={"width": 390, "height": 844})
    start(page)
    put(page, 0, "a file with a rather long name of its own.csv", ITEMS.encode("cp949"))
    page.get_by_role("heading", name="How the catalogue is read").wait_for()
    settle(page)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
