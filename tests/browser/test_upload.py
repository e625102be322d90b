"""An upload in a browser: a messy catalogue and log, mended by choosing otherwise, and checked; on a phone, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests import shop
from tests.browser.conftest import WIDE, download, settle
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
def start(visit: Callable[[str], Page]) -> Callable[[], Page]:
    def go() -> Page:
        page = visit("/your_data?ds=sample")
        page.get_by_role("heading", name="Log (optional)").wait_for()
        settle(page)
        return page

    return go


@pytest.mark.timeout(900)
def test_a_messy_upload_is_looked_at_and_checked(
    start: Callable[[], Page],
    console_errors: list[str],
    foreign_requests: list[str],
    tmp_path: Path,
) -> None:
    page = start()
    put(page, 0, "영화 of a rather long name of its own.csv", ITEMS.encode("cp949"))
    page.get_by_text("CP949 (Korean)").first.wait_for()
    # what was guessed, and the lines that it was guessed by
    page.get_by_text("The lines that the encoding decides on").wait_for()
    page.get_by_role("heading", name="How the catalogue is read").wait_for()
    put(page, 0, "log.tsv", LOG.encode())
    page.get_by_role("heading", name="How the log is read").wait_for()
    settle(page)
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    page.set_viewport_size(WIDE)
    settle(page)
    check = page.get_by_role("button", name="Check", exact=True)
    choose(page, "Item title", "장르")  # and back again
    choose(page, "Item title", "제목")
    choose(page, "Time (optional)", "when")
    page.get_by_text("the other way round").first.wait_for()  # 05/02/2024 is in May or in February
    expect(check).to_be_enabled()
    settle(page)
    check.click()
    page.get_by_role("heading", name="What was found").wait_for(
        timeout=300_000
    )  # what checks yields to everything else
    page.get_by_text("1 × item without an id, in the catalogue").wait_for()
    page.get_by_text("1 × further row of an item, with other content, in the catalogue").wait_for()
    page.get_by_text("1 × item of the log that the catalogue lacks, in the log").wait_for()
    page.get_by_text("2 rows are left out").wait_for()
    page.get_by_text("Findings line by line").click()
    rows = download(page.get_by_role("link", name="as CSV"), tmp_path).read_text("utf-8").splitlines()
    assert rows[0].startswith("file,line,column,value,problem") and any(row.startswith("catalogue,8,") for row in rows)
    page.get_by_role("button", name="Use it without the 2 bad rows").wait_for()
    page.get_by_role("button", name="Start over").click()
    page.get_by_text("영화 of a rather long name of its own.csv").wait_for(state="detached")
    assert not console_errors and not foreign_requests


@pytest.mark.timeout(900)
def test_a_log_of_a_shop_says_what_its_held_out_items_are(start: Callable[[], Page], console_errors: list[str]) -> None:
    page = start()
    put(page, 1, "retail.csv", shop.log(60).encode())
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("8 (13%) have a negative quantity").wait_for(timeout=300_000)
    for label, words in (("Shuffle ties", ""), ("Drop negative quantities", "0 (0%) have a negative quantity")):
        page.get_by_text(label, exact=True).click()
        page.get_by_text(words or "Of 60 held-out items").first.wait_for()
        expect(page.get_by_role("checkbox", name=label)).to_be_checked()
    expect(page.get_by_text("8 × event of a negative quantity").first).to_be_visible()
    assert not console_errors


def test_what_is_no_table_ends_in_words(start: Callable[[], Page], console_errors: list[str]) -> None:
    page = start()
    put(page, 0, "films.csv", b"PK\x03\x04 this is no text")
    page.get_by_text("a ZIP archive or an Excel workbook").wait_for()
    page.get_by_role("button", name="Another file").click()
    page.get_by_text("a ZIP archive or an Excel workbook").wait_for(state="detached")
    put(page, 0, "shop.csv", b"item_id,title\n1,a\n2,b\n")
    expect(page.get_by_role("button", name="Check", exact=True)).to_be_enabled()
    assert not console_errors
