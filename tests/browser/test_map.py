"""The map in a browser: drawing, choosing, selecting an area, and a zoom that survives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.app.test_page_catalogue import films
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Page

PLOT = ".st-key-map_alpha .js-plotly-plot"
DRAWN = f"document.querySelector('{PLOT}')?._fullLayout?.xaxis?.range && document.querySelector('{PLOT} canvas')"


@pytest.fixture(scope="module")
def url(serve: Callable, tmp_path_factory: pytest.TempPathFactory) -> str:
    exports = tmp_path_factory.mktemp("map") / "exports"
    pq.write_table(films(), make_zoo(exports) / "items.parquet")
    address: str = serve(exports).url
    return address


@pytest.fixture
def go(page: Page, url: str, settle: Callable) -> Callable[[str], Page]:
    page.set_default_timeout(90_000)

    def open_(path: str) -> Page:
        page.goto(url + path)
        page.get_by_role("heading", level=1).first.wait_for(timeout=90_000)  # the first visit opens the models
        settle(page)
        page.wait_for_function(DRAWN)
        settle(page)
        return page

    return open_


def span(page: Page) -> float:
    found: list[float] = page.evaluate(f"document.querySelector('{PLOT}')._fullLayout.xaxis.range")
    return found[1] - found[0]


def test_points_carry_their_item_and_the_figure_its_name(go: Callable, console_errors: list[str]) -> None:
    page = go("/map")
    carried = page.evaluate(f"document.querySelector('{PLOT}').data.flatMap(trace => trace.customdata ?? [])")
    assert {f"toy-{i}" for i in range(40)} <= set(carried)
    assert page.get_by_role("figure", name="Map of 40 items as Alpha arranges them").count() == 1
    assert page.get_by_text("axes have no units").count() == 1
    assert not console_errors


def test_zoom_survives_another_colour_and_another_history(go: Callable, settle: Callable) -> None:
    page = go("/map")
    whole = span(page)
    page.locator(PLOT).hover(position={"x": 300, "y": 250})
    for _ in range(4):
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(100)
    page.wait_for_timeout(800)
    settle(page)
    near = span(page)
    assert near < 0.8 * whole
    page.get_by_text("Next items", exact=True).click()
    settle(page)
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(500)
    assert span(page) == pytest.approx(near, rel=0.02)
    page.get_by_role("button", name="Whole map").click()
    settle(page)
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(500)
    assert span(page) > 0.8 * whole


def test_a_box_becomes_a_table_and_a_history(go: Callable, settle: Callable, console_errors: list[str]) -> None:
    page = go("/map")
    page.locator(PLOT).hover()
    page.locator(f'{PLOT} [data-title="Box Select"]').click()
    frame = page.locator(f"{PLOT} .nsewdrag").first.bounding_box()
    assert frame is not None
    page.mouse.move(frame["x"] + 5, frame["y"] + 5)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] - 5, frame["y"] + frame["height"] - 5, steps=5)
    page.mouse.up()
    page.get_by_text("40 items.").wait_for()
    settle(page)
    page.get_by_role("button", name="Add the most popular 20 to the history").click()
    settle(page)
    assert "toy-0~toy-1~toy-2" in page.url
    page.get_by_role("button", name="Clear selection").click()
    page.get_by_text("Nothing is selected").wait_for()
    assert not console_errors


def test_a_title_is_found_and_chosen_by_keyboard(go: Callable, settle: Callable) -> None:
    page = go("/map")
    page.get_by_label("Find on the map").press_sequentially("기생충")
    found = page.locator(".st-key-map_hit_3 button")
    found.wait_for()
    settle(page)
    found.focus()
    page.keyboard.press("Enter")
    page.get_by_text("nearest items by each model's own measure").wait_for()
    assert "item=toy-3" in page.url


def test_two_models_side_by_side(go: Callable, settle: Callable) -> None:
    page = go("/map")
    page.locator(".st-key-map_second input").click()
    page.get_by_role("option", name="Beta").click()
    settle(page)
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot canvas').length >= 2")
    assert page.get_by_role("figure").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(new_page: Callable, url: str, settle: Callable, scheme: str) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.goto(url + "/map?item=toy-3")
    settle(page)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
