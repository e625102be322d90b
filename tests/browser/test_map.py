"""The map in a browser: drawing, choosing, selecting an area, and a zoom that survives."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import WIDE, settle, until
from tests.runtime.tokenizations import toy_codes

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.clients import Server

PLOT = ".st-key-map_alpha .js-plotly-plot"
CODES = ".st-key-map_codes-rqvae .js-plotly-plot"
DRAWN = f"document.querySelector('{PLOT}')?._fullLayout?.xaxis?.range && document.querySelector('{PLOT} canvas')"


@pytest.fixture
def go(visit: Callable[[str], Page]) -> Callable[[str], Page]:
    def open_(address: str) -> Page:
        page = visit(address)
        page.wait_for_function(DRAWN)
        settle(page)
        return page

    return open_


def span(page: Page) -> float:
    """How much of the horizontal axis is on the screen; 0 while the figure is being replaced."""
    found = page.evaluate(f"{DRAWN} ? document.querySelector('{PLOT}')._fullLayout.xaxis.range : [0, 0]")
    return float(found[1] - found[0])


@pytest.mark.long
def test_zoom_survives_another_colour_and_a_box_becomes_a_table(go: Callable, console_errors: list[str]) -> None:
    page = go("/map?ds=codes&h=toy-1")
    carried = page.evaluate(f"document.querySelector('{PLOT}').data.flatMap(trace => trace.customdata ?? [])")
    assert {f"toy-{i}" for i in range(40)} <= set(carried)
    expect(page.get_by_role("figure", name="Map of 40 items as Alpha arranges them")).to_have_count(1)
    whole = span(page)
    page.evaluate(f"document.querySelector('{PLOT}').on('plotly_relayout', () => (window.moved = performance.now()))")
    page.locator(PLOT).hover(position={"x": 300, "y": 250})
    for _ in range(4):
        page.mouse.wheel(0, -200)
    page.wait_for_function("window.traffic.sent - window.moved > 300")  # a while after the last move
    settle(page)
    near = span(page)
    assert 0 < near < 0.8 * whole
    layers = page.evaluate(f"document.querySelector('{PLOT}').data.length")
    page.get_by_role("button", name="Display").click()
    page.get_by_text("Next items", exact=True).click()
    page.wait_for_function(f"{DRAWN} && document.querySelector('{PLOT}').data.length !== {layers}")
    assert span(page) == pytest.approx(near, rel=0.02)
    settle(page)
    page.get_by_role("button", name="Reset view").click()
    until(page, lambda: span(page) > 0.8 * whole, True)
    settle(page)

    page.locator(PLOT).hover()
    page.locator(f'{PLOT} [data-title="Box Select"]').click()
    page.wait_for_function(f"document.querySelector('{PLOT}')._fullLayout.dragmode === 'select'")
    frame = page.locator(f"{PLOT} .nsewdrag").first.bounding_box()
    assert frame is not None
    page.mouse.move(frame["x"] + 5, frame["y"] + 5)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] - 5, frame["y"] + frame["height"] - 5, steps=5)
    page.mouse.up()
    page.get_by_text("40 items.").wait_for()
    page.wait_for_url(re.compile(r"[?&]area=alpha~[-0-9._]+(&|$)"))
    assert not console_errors


@pytest.mark.long
def test_the_map_fills_any_window_and_its_names_leave_each_other_room(visit: Callable[[str], Page]) -> None:
    page = visit("/map?ds=sample&space=sasrec")
    plot = page.locator(".st-key-map_sasrec .js-plotly-plot")

    def fills(size: dict[str, int]) -> bool:
        box = plot.bounding_box()
        return box is not None and all(box[side] >= 0.7 * length for side, length in size.items())

    def apart() -> bool:  # names find their places after the map has
        boxes = [name.bounding_box() for name in page.locator(".st-key-map_sasrec_over span:visible").all()]
        placed = [(box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]) for box in boxes if box]
        return len(placed) > 5 and not any(
            a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for a, b in combinations(placed, 2)
        )

    for size in (WIDE, {"width": 1920, "height": 1080}):
        page.set_viewport_size(size)
        until(page, partial(fills, size), True)
        until(page, apart, True)
    samples = "canvas => canvas.getContext('webgl').getContextAttributes().antialias"
    assert page.locator("canvas.gl-canvas-context").evaluate(samples) is False  # of the points that are drawn by now


def test_a_map_whose_scripts_are_on_their_way_has_its_place_and_no_names(
    new_page: Callable[..., Page], server: Server
) -> None:
    page = new_page()
    page.route("**/PlotlyChart*", lambda route: None)
    page.goto(f"{server.url}/map?ds=films&space=sasrec")
    names = page.locator(".st-key-map_sasrec_over span")
    until(page, lambda: names.count() > 5, True)
    assert page.locator(".st-key-map_maps [data-testid=stSkeleton]").evaluate("e => e.offsetHeight") > 600
    expect(names.locator("visible=true")).to_have_count(0)
    expect(
        page.get_by_role("button", name="Attributes")
    ).to_be_visible()  # folded: no room for the bars beside its points


@pytest.mark.long
def test_two_maps_are_linked_and_bars_filter_both(visit: Callable[[str], Page]) -> None:
    page = visit("/map?ds=sample&space=sasrec&beside=attrec&colour=genres")
    left, right = (f".st-key-map_{model} .js-plotly-plot" for model in ("sasrec", "attrec"))
    drawn = "document.querySelector('{}')?._fullLayout?.xaxis?.range && document.querySelector('{} canvas')"
    for plot in (left, right):
        page.wait_for_function(drawn.format(plot, plot))
    settle(page)
    legend, plots = page.locator(".st-key-map_bars").bounding_box(), page.locator(right).bounding_box()
    assert legend and plots and legend["y"] + legend["height"] <= plots["y"]  # no points under it
    lasso(page, right)
    page.get_by_role("heading", name=re.compile("^[0-9,]+ items? selected$")).wait_for()  # the bars are folded
    page.get_by_role("button", name="Deselect").click()
    page.get_by_text("Nothing is selected").wait_for()
    settle(page)

    # a figure that is being replaced is not there for a moment: then it is as large as ever
    def seen(plot: str) -> float:
        low, high = page.evaluate(f"document.querySelector('{plot}')?._fullLayout?.xaxis?.range ?? [0, 1e9]")
        return float(high - low)

    def shown(plot: str) -> int:
        names = f"document.querySelector('{plot}')?.data?.flatMap(t => t.customdata ?? [])"
        return int(page.evaluate(f"new Set({names}).size || 1e9"))

    whole, items = seen(right), shown(right)
    page.mouse.move(*at(page, "alien-1979", left))
    expect(page.locator(".st-key-map_attrec_over i")).to_be_visible()
    expect(page.locator(".st-key-map_sasrec_over i")).to_be_hidden()
    for _ in range(6):
        page.mouse.wheel(0, -200)
    until(page, lambda: seen(right) < 0.9 * whole, True)
    settle(page)
    page.get_by_role("button", name="Attributes").click()
    page.get_by_role("button", name=re.compile("^Horror: ")).click()
    page.wait_for_url(re.compile(r"[?&]only=genres(~|%7E)Horror(&|$)"))
    until(page, lambda: shown(left) < items and shown(right) < items, True)


@pytest.mark.long
def test_many_points_are_enlarged_as_a_picture_and_drawn_when_the_wheel_rests(visit: Callable[[str], Page]) -> None:
    page = visit("/map?ds=many")
    plot = ".st-key-map_space-minilm .js-plotly-plot"
    drawn = f"document.querySelector('{plot}')?._fullLayout?.xaxis?.range && document.querySelector('{plot} canvas')"
    page.wait_for_function(drawn, timeout=30_000)
    settle(page)
    pointer = {"x": 300, "y": 250}
    look = """([plot, {x, y}]) => {
      const part = document.querySelector(plot), { xaxis, yaxis } = part._fullLayout
      const [across, down] = [xaxis.p2d(x - xaxis._offset), yaxis.p2d(y - yaxis._offset)]
      const { transform } = part.querySelector(".gl-container canvas").style
      const label = getComputedStyle(part.querySelector(".hoverlayer")).visibility
      return { across, down, transform, label, span: xaxis.range[1] - xaxis.range[0] }
    }"""

    def seen() -> dict[str, Any]:
        return dict(page.evaluate(look, [plot, pointer]))

    def turned() -> bool:
        page.mouse.wheel(0, -200)
        now = seen()
        return "scale(1.1" in now["transform"] and now["label"] == "hidden"  # it would be of what was there before

    before = seen()
    page.locator(plot).hover(position=pointer)  # type: ignore[arg-type]
    until(page, turned, True)
    until(page, lambda: seen()["transform"], "")
    after = seen()
    assert after["label"] == "visible"
    assert after["span"] < 0.95 * before["span"]  # what the pointer is on has stayed there
    assert (after["across"], after["down"]) == pytest.approx(
        (before["across"], before["down"]), abs=1e-3 * before["span"]
    )

    lasso(page, plot)
    page.locator(f"{plot} .selectionlayer path").first.wait_for()
    settle(page)
    page.locator(f"{plot} .selectionlayer path").first.hover(force=True)
    page.mouse.wheel(0, -200)  # over what was selected
    until(page, lambda: seen()["span"] < after["span"], True)


def lasso(page: Page, plot: str) -> None:
    """Draws around the middle of a map, with its own tool."""
    page.locator(plot).hover()
    page.locator(f'{plot} [data-title="Lasso Select"]').click()
    page.wait_for_function(f"document.querySelector('{plot}')._fullLayout.dragmode === 'lasso'")
    frame = page.locator(f"{plot} .nsewdrag").first.bounding_box()
    assert frame is not None
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    page.mouse.move(x - 80, y - 80)
    page.mouse.down()
    for across, down in ((80, -80), (80, 80), (-80, 80), (-80, -80)):
        page.mouse.move(x + across, y + down, steps=3)
    page.mouse.up()


def at(page: Page, name: str, plot: str = CODES) -> tuple[float, float]:
    """Where a point is on the screen."""
    found = page.evaluate(
        """([plot, name]) => {
          const figure = document.querySelector(plot), {xaxis, yaxis} = figure._fullLayout
          const box = figure.getBoundingClientRect()
          for (const trace of figure._fullData) {
            const place = (trace.customdata ?? []).indexOf(name)
            if (place >= 0) return [box.x + xaxis._offset + xaxis.d2p(trace.x[place]),
                                    box.y + yaxis._offset + yaxis.d2p(trace.y[place])]
          }
        }""",
        [plot, name],
    )
    return found[0], found[1]


@pytest.mark.long
def test_from_a_code_to_its_items_to_semantic_ids(
    visit: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = visit("/map?ds=codes&space=codes.rqvae")
    page.wait_for_function(DRAWN.replace(PLOT, CODES))
    settle(page)
    expect(page.get_by_role("figure", name="Map of RQ <b>: codes, 10 codes of 2 levels")).to_have_count(1)
    page.mouse.click(*at(page, "1-2"))
    page.wait_for_url(re.compile(r"[?&]code=rqvae\.1-2(&|$)"))
    items = int((toy_codes()[:, 0] == 2).sum())
    page.get_by_text(f"{items} items.").wait_for()
    settle(page)
    page.get_by_role("link", name="Open in Semantic IDs").click()
    page.wait_for_url(re.compile(r"[?&]prefix=2(&|$)"))
    page.get_by_text(re.compile(f"^{items} items? with codes that begin with 2")).wait_for()
    assert not console_errors and not foreign_requests


def test_a_browser_without_webgl_draws_the_map_all_the_same(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page()
    page.add_init_script(
        "const context = HTMLCanvasElement.prototype.getContext\n"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
        " return kind.includes('webgl') ? null : context.call(this, kind, ...more) }"
    )
    page.goto(server.url + "/map?ds=codes&h=toy-1")
    expect(page.locator(f"{PLOT} .scatterlayer .point").nth(39)).to_be_attached()
    expect(page.locator(PLOT).get_by_text("WebGL")).to_have_count(0)
