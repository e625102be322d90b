"""Attention in a real browser: from the history to the figures, their twins and files, at two widths, by keyboard."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.browser.conftest import download
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = [
    "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>",
    "$\\href{javascript:window.hit=1}{x}$",
    '=HYPERLINK("https://example.org")',
    "기생충",
    "أفلام الحركة",
    "🎬 **bold** [link](https://example.org)",
]


@pytest.fixture(scope="module")
def hostile(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An app whose titles are all hostile; its first person's history is items 0 to 5."""
    path = make_zoo(tmp_path_factory.mktemp("hostile"))
    items = pq.read_table(path / "items.parquet")
    titles = [HOSTILE[item % len(HOSTILE)] for item in range(items.num_rows)]
    pq.write_table(
        items.set_column(items.column_names.index("title"), "title", pa.array(titles)), path / "items.parquet"
    )
    users = pq.read_table(path / "users.parquet")
    histories = pa.array([list(range(8)), *users["history"].to_pylist()[1:]], pa.list_(pa.int32()))
    pq.write_table(users.set_column(2, "history", histories), path / "users.parquet")
    return serve(path.parent)


def test_the_page_with_hostile_titles(
    hostile: Any,
    page: Page,
    settle: Callable[..., None],
    console_errors: list[str],
    foreign_requests: list[str],
) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{hostile.url}/attention?v=1&ds=toys&u=u0")
    page.get_by_role("heading", name="Is that why?").wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    page.get_by_role("heading", name="Is that why?").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == "Attention"
    assert page.evaluate("window.hit") is None
    main = page.get_by_test_id("stMain")
    assert main.locator("img[src=x], a[href*='example.org']").count() == 0
    assert page.get_by_text("not an explanation").is_visible()
    assert page.get_by_text("Every row sums to 1.00").is_visible()
    assert "Traceback" not in main.inner_text()
    for figure in page.get_by_test_id("stPlotlyChart").all():
        assert figure.locator("[aria-label]").count() or figure.get_attribute("aria-label")
    assert not console_errors and not foreign_requests


def test_the_table_twin_and_its_file(hostile: Any, page: Page, settle: Callable[..., None], tmp_path: Path) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{hostile.url}/attention?v=1&ds=toys&u=u0")
    page.get_by_role("heading", name="Is that why?").wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    twin = page.get_by_test_id("stExpander").first
    twin.locator("summary").focus()
    page.keyboard.press("Enter")  # by keyboard
    settle(page)
    text = download(page.get_by_role("link", name="Download CSV").first, tmp_path).read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(1, abs=1e-3)
    assert any(row["title"].startswith("'=HYPERLINK") for row in rows)


def test_a_model_that_does_not_attend_says_why(hostile: Any, page: Page, settle: Callable[..., None]) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{hostile.url}/attention?v=1&ds=toys&u=u0")
    page.get_by_role("heading", name="Is that why?").wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    page.get_by_role("radio", name="Plain").or_(page.get_by_role("button", name="Plain")).first.click()
    settle(page)
    assert page.get_by_text("has no attention to show").is_visible()
    assert page.get_by_role("heading", name="Is that why?").is_visible()


def test_narrow_screens_do_not_scroll_sideways(
    hostile: Any, new_page: Callable[..., Page], settle: Callable[..., None]
) -> None:
    narrow = new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    narrow.set_default_timeout(60_000)
    narrow.goto(f"{hostile.url}/attention?v=1&ds=toys&u=u0")
    narrow.get_by_role("heading", name="Is that why?").wait_for(timeout=200_000)  # the first visit starts everything
    settle(narrow)
    width = narrow.evaluate(
        "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth })()"
    )
    assert width <= 390, json.dumps(width)


def test_from_compare_to_attention_and_what_is_chosen_there_is_in_the_link(
    hostile: Any, new_page: Callable[..., Page], page: Page, settle: Callable[..., None], console_errors: list[str]
) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{hostile.url}/?v=1&ds=toys&h=toy-1~toy-2~toy-3&item=toy-10")
    inside = page.locator(".st-key-compare_inside").get_by_role("link", name="Beta")
    inside.wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    inside.click()
    page.get_by_role("heading", name="Is that why?").wait_for()
    settle(page)
    asked = parse_qs(urlsplit(page.url).query)
    assert urlsplit(page.url).path == "/attention"
    assert (asked["h"], asked["model"], asked["item"]) == (["toy-1~toy-2~toy-3"], ["beta"], ["toy-10"])

    page.locator(".st-key-attention_view").get_by_text("One head", exact=True).click()
    page.wait_for_url("**view=head**")
    settle(page)
    page.locator(".st-key-attention_layer").get_by_text("1", exact=True).click()
    page.wait_for_url("**layer=1**")
    settle(page)
    page.get_by_label("Or any other one").press_sequentially("기생충")
    page.locator("[class*='st-key-attention_pick_']").first.get_by_role("button").click()
    page.wait_for_function("!location.search.includes('item=toy-10')")
    settle(page)
    item = parse_qs(urlsplit(page.url).query)["item"][0]
    assert int(item.removeprefix("toy-")) % len(HOSTILE) == HOSTILE.index("기생충")

    other = new_page()  # somebody else who was sent the link
    other.set_default_timeout(60_000)
    other.goto(page.url)
    other.get_by_role("heading", name="Is that why?").wait_for()
    settle(other)
    assert other.get_by_text("Layer 1 of 2, head 1 of 2").is_visible()
    assert "기생충" in other.get_by_role("combobox", name="For which item?").input_value()

    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Metrics").click()  # the menu keeps the history
    page.wait_for_url("**/metrics?**")
    settle(page)
    assert "h=toy-1~toy-2~toy-3" in page.url and "view=" not in page.url
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Attention").click()  # and the page its own
    page.wait_for_url("**/attention?**")
    settle(page)
    assert parse_qs(urlsplit(page.url).query)["item"] == [item]
    assert not console_errors
