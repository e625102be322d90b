"""The beam on Compare, and what written codes looked at, in a real browser: clicks, the address, narrow and dark screens."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.app.conftest import HOSTILE, ODD_IDS, rename
from tests.app.writers import make_writers
from tests.browser.conftest import download, for_everybody, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

TREE = ".st-key-compare_beam_tree"


@pytest.fixture(scope="module")
def url(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = make_writers(tmp_path_factory.mktemp("exports"))
    rename(path, HOSTILE * 5, ODD_IDS)
    found: str = serve(path.parent).url
    return found


@pytest.mark.parametrize("width", [390, 1440])
def test_figures_have_room_for_their_labels_before_they_are_drawn(
    url: str, page: Page, settle: Callable[..., None], width: int
) -> None:
    """Plotly widens a margin that is too narrow, and draws everything a second time."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{url}/?ds=writers&h=toy-11~{quote('ключ')}&beam=writer")
    until(page, lambda: page.locator(".js-plotly-plot .main-svg").count() >= 3, True)
    settle(page)
    margins = page.locator(".js-plotly-plot").evaluate_all(
        "all => all.map(g => ['l', 'r', 't', 'b'].map(side => [g._fullLayout._size[side], g.layout.margin[side]]))"
    )
    assert len(margins) == 3  # agreement, beam, effects
    for figure in margins:
        assert all(drawn == given for drawn, given in figure), margins
    hidden = page.locator(".js-plotly-plot .xtick text, .js-plotly-plot .ytick text").evaluate_all(
        "all => all.filter(text => text.style.display === 'none').map(text => text.textContent)"
    )
    assert hidden == []


def test_the_beam_is_drawn_when_it_is_asked_for(
    url: str,
    page: Page,
    settle: Callable[..., None],
    console_errors: list[str],
    foreign_requests: list[str],
    tmp_path: Path,
) -> None:
    page.goto(f"{url}/?ds=writers&h=toy-11~toy-12")
    page.get_by_role("heading", name="How were the codes written?").wait_for()
    settle(page)
    expect(page.locator(TREE)).to_have_count(0)
    page.locator(".st-key-compare_beam").get_by_text("Writer").click()
    page.wait_for_url("**beam=writer**")
    page.locator(f"{TREE} .js-plotly-plot").wait_for()
    until(page, lambda: page.locator(f"{TREE} .y2tick text, {TREE} .ytick text").count(), 5)
    page.locator(".st-key-compare_width_writer").get_by_text("10", exact=True).click()
    page.wait_for_url("**width=10**")
    until(page, lambda: page.locator(f"{TREE} .y2tick text, {TREE} .ytick text").count(), 10)
    settle(page)
    page.locator(".st-key-compare_beam_tree_twin summary").click()
    taken = download(page.locator(".st-key-compare_beam_tree_csv a"), tmp_path)
    rows = list(csv.DictReader(io.StringIO(taken.read_text("utf-8-sig"))))
    assert sum(row["fate"] == "written" for row in rows) == 10
    page.go_back()
    until(page, lambda: page.locator(f"{TREE} .y2tick text, {TREE} .ytick text").count(), 5)
    page.go_back()
    expect(page.locator(TREE)).to_have_count(0)
    assert page.evaluate("window.hit") is None
    assert not console_errors and not foreign_requests


@pytest.mark.parametrize(
    "path", ["/?ds=writers&h=toy-11~toy-12&beam=writer", "/attention?ds=writers&h=toy-11&model=writer"]
)
def test_for_everybody(url: str, page: Page, settle: Callable[..., None], path: str, console_errors: list[str]) -> None:
    page.goto(url + path)
    page.locator(".js-plotly-plot").first.wait_for()
    settle(page)
    for_everybody(page)
    assert not console_errors
