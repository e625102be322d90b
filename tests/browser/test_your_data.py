"""From a file to a page that shows it, while another visitor looks on and sees nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

SLOW = 600_000  # milliseconds; a map of the items is drawn on the way
KINDS = ("shampoo", "soap", "lip balm", "day cream", "perfume")
MINE = "Ninas Regal"


def catalogue() -> bytes:
    rows = [f"p{n},{('Ruby', 'Dune', 'Fjord')[n % 3]} {KINDS[n % 5]} {n},{KINDS[n % 5]},{n}.50" for n in range(30)]
    return "\n".join(["id,title,category,price", *rows]).encode()


def bring(page: Page, settle: Callable[..., None], title: str) -> None:
    page.locator("input[type=file]").first.set_input_files(
        {"name": "shop.csv", "mimeType": "text/csv", "buffer": catalogue()}
    )
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("30 items", exact=False).first.wait_for()
    page.get_by_label("Title", exact=True).fill(title)
    page.keyboard.press("Tab")
    settle(page)
    page.get_by_role("button", name="Use it", exact=True).click()
    page.get_by_role("heading", name=title).wait_for()


@pytest.mark.timeout(1_200)
def test_from_a_file_to_compare_and_nobody_else_sees_it(
    new_page: Callable[..., Page], server: Any, settle: Callable[..., None], console_errors: list[str]
) -> None:
    anna, ben = new_page(), new_page()
    for page in (anna, ben):
        page.goto(f"{server.url}/your_data")
        settle(page)
    bring(anna, settle, MINE)
    home: Path = server.log_file.parent / "home"
    (folder,) = home.glob("owners/*/datasets/*")
    secret = folder.name

    # Ben's browser has another key
    ben.reload()
    settle(ben)
    assert ben.get_by_role("heading", name="Your data", exact=True).is_visible()
    assert MINE not in ben.content() and secret not in ben.content()

    # the work goes on without a page; whoever comes back with the cookie sees how far it is
    context = anna.context
    anna.close()
    anna = context.new_page()
    anna.goto(f"{server.url}/your_data")
    anna.get_by_role("heading", name=MINE).wait_for()
    anna.get_by_role("button", name="Open in Compare").and_(anna.locator(":enabled")).wait_for(timeout=SLOW)
    anna.get_by_role("button", name="Open in Compare").click()
    anna.get_by_text("(zero-shot)").first.wait_for()
    assert f"ds={secret}" in anna.url
    anna.get_by_text("Ruby shampoo 0").first.wait_for()

    ben.goto(f"{server.url}/?ds={secret}")
    ben.get_by_text(f"There is no dataset “{secret}” here").wait_for()
    settle(ben)
    assert "Ruby shampoo" not in ben.content() and MINE not in ben.content()

    # what is deleted is gone with its files, and whatever was being done with it ends
    anna.goto(f"{server.url}/your_data")
    anna.get_by_role("button", name="Delete", exact=True).click()
    anna.get_by_role("button", name="Delete it all").click()
    anna.get_by_text(f"Deleted “{MINE}”").wait_for()
    assert not folder.exists()
    assert not console_errors
