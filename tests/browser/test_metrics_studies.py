"""Studies on the page Metrics in a real browser: figures are drawn in order, files come down, phones have room."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import download
from tests.runtime.bundles import make_zoo
from tests.runtime.studies import toy_studies

if TYPE_CHECKING:
    from playwright.sync_api import Page

DRAWN = ".st-key-metrics_study_{} .js-plotly-plot"


@pytest.fixture(scope="module")
def studied(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = make_zoo(tmp_path_factory.mktemp("studied"))
    toy_studies(path)
    return serve(path.parent)


@pytest.fixture
def go(studied: Any, new_page: Callable[..., Page], settle: Callable[..., None]) -> Callable[..., Page]:
    def open_(**options: Any) -> Page:
        page = new_page(**options)
        page.goto(f"{studied.url}/metrics")
        page.get_by_text("How the studies were made").wait_for()
        settle(page)
        return page

    return open_


def test_figures_and_words(go: Callable[..., Page], console_errors: list[str], foreign_requests: list[str]) -> None:
    page = go()
    expect(page.get_by_role("heading", name="What <b>pieces</b> add")).to_have_count(1)
    for name, traces in (("pieces", 6), ("width", 1), ("alpha", 8)):
        figure = page.locator(DRAWN.format(name))
        figure.scroll_into_view_if_needed()
        expect(figure).to_have_count(1)
        assert figure.evaluate("figure => figure.data.length") == traces
    ticks = page.locator(DRAWN.format("width")).evaluate("figure => figure.layout.xaxis.ticktext")
    assert ticks == ["1", "2", "4"]
    assert not console_errors and not foreign_requests


def test_the_file_has_every_run(go: Callable[..., Page], settle: Callable[..., None], tmp_path: Path) -> None:
    page = go()
    page.get_by_text("How the studies were made").click()
    settle(page)
    expect(page.get_by_text("seqscope study pieces")).to_be_visible()
    taken = download(page.get_by_role("link", name="Every figure as CSV"), tmp_path)
    rows = list(csv.DictReader(taken.read_text("utf-8-sig").splitlines()))
    assert len(rows) == 4 * 2 * 2 + 3 * 2 + 3 * 2 * 4
    assert {row["study"] for row in rows} == {"What <b>pieces</b> add", "Study width", "Study alpha"}
    assert {row["seed"] for row in rows} == {"1", "2"}


def test_a_phone_has_room(go: Callable[..., Page]) -> None:
    page = go(viewport={"width": 390, "height": 844})
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
    for name in ("pieces", "width", "alpha"):
        figure = page.locator(DRAWN.format(name))
        figure.scroll_into_view_if_needed()
        box = figure.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
