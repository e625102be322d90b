"""Metrics in a real browser: choices stay in the link, studies are drawn and come down as a file, a history opens in Compare."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.conftest import download, settle, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAST = "What each piece adds"


def test_a_persons_history_opens_in_compare(visit: Callable[[str], Page]) -> None:
    page = visit("/metrics?ds=hostile")
    page.get_by_role("heading", name=LAST).wait_for()
    settle(page)
    page.get_by_role("button", name="Open in Compare").click()
    page.wait_for_url(re.compile(r"://[^/]+/(compare)?\?(.*&)?u=u"))
    page.get_by_role("heading", level=1, name=re.compile("^What did u. choose next")).wait_for()


def test_choices_are_in_the_link_and_survive_a_reload(visit: Callable[[str], Page], console_errors: list[str]) -> None:
    page = visit("/metrics?ds=hostile&metric=HR&at=5&baseline=beta&by=length&first=beta&second=alpha")
    page.get_by_role("heading", name=LAST).wait_for()
    settle(page)
    for key, shown in (("metrics_slice", "Length of the history"), ("metrics_first", "<script>")):
        until(page, lambda key=key, shown=shown: shown in page.locator(f"[class*='st-key-{key}']").first.inner_text()
              + (page.locator(f"[class*='st-key-{key}'] input").first.get_attribute("value") or ""), True)  # fmt: skip
    page.get_by_text("NDCG", exact=True).first.click()
    page.wait_for_url(re.compile(r"[?&]metric=NDCG(&|$)"))
    settle(page)
    address = page.url
    page.reload()
    page.get_by_role("heading", name=LAST).wait_for()
    settle(page)
    assert page.url == address and "baseline=beta" in address and "at=5" in address
    expect(page.get_by_role("figure", name=re.compile(r"^NDCG@5 of \d"))).to_have_count(1)
    page = visit("/metrics?ds=hostile&metric=luck&baseline=nobody")
    page.get_by_text("metric “luck”; possible is NDCG, HR or MRR").wait_for()
    page.get_by_text("was not evaluated under this protocol").wait_for()
    assert not console_errors


def test_studies_are_drawn_and_every_run_is_in_the_file(
    visit: Callable[[str], Page], tmp_path: Path, console_errors: list[str]
) -> None:
    page = visit("/metrics?ds=hostile")
    expect(page.get_by_role("heading", name="What <b>pieces</b> add")).to_have_count(1)
    for name, traces in (("pieces", 6), ("width", 1), ("alpha", 8)):
        figure = page.locator(f".st-key-metrics_study_{name} .js-plotly-plot")
        figure.scroll_into_view_if_needed()
        expect(figure).to_have_count(1)
        assert figure.evaluate("figure => figure.data.length") == traces
    ticks = page.locator(".st-key-metrics_study_width .js-plotly-plot").evaluate("one => one.layout.xaxis.ticktext")
    assert ticks == ["1", "2", "4"]
    page.get_by_text("How the studies were made").click()
    settle(page)
    expect(page.get_by_text("seqscope study pieces")).to_be_visible()
    taken = download(page.get_by_role("link", name="Every figure as CSV"), tmp_path)
    rows = list(csv.DictReader(taken.read_text("utf-8-sig").splitlines()))
    assert len(rows) == 4 * 2 * 2 + 3 * 2 + 3 * 2 * 4
    assert {row["study"] for row in rows} == {"What <b>pieces</b> add", "Study width", "Study alpha"}
    assert {row["seed"] for row in rows} == {"1", "2"}
    assert not console_errors
