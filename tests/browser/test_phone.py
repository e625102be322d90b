"""On a phone: what is touched, what comes first, and how long a page is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser import messy
from tests.browser.conftest import settle, until

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def screen() -> dict[str, Any]:
    return {
        "viewport": {"width": 390, "height": 844},
        "is_mobile": True,
        "has_touch": True,
        "user_agent": "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36",
    }


@pytest.mark.long
def test_no_page_is_long_as_it_is_opened(visit: Callable[[str], Page]) -> None:
    page, heights = visit("/?ds=films"), {}
    for name in ("Compare", "Metrics", "Semantic IDs", "Users"):
        link = page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, include_hidden=True)
        link.evaluate("link => link.click()")  # the menu is folded
        page.locator("[data-testid=stSidebarNavLink][aria-current=page]", has_text=name).wait_for(state="attached")
        settle(page, 1.5)
        heights[name] = page.get_by_test_id("stMain").evaluate("main => main.scrollHeight")
    assert {name: height for name, height in heights.items() if not 1_000 < height <= 3_500} == {}


def test_a_chip_is_dragged_straight_down_by_its_number(visit: Callable[[str], Page]) -> None:
    first, second, third = "alien-resurrection-1997", "raiders-of-the-lost-ark-1981", "the-terminator-1984"
    page = visit(f"/?ds=films&h={first}~{second}~{third}&m=popularity")
    grips = page.locator(".history .move")
    start, end = (grips.nth(place).bounding_box() for place in (0, 2))
    assert start is not None and end is not None
    middle = start["x"] + start["width"] / 2
    page.mouse.move(middle, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(middle, end["y"] + end["height"] / 2, steps=12)
    page.mouse.up()
    page.wait_for_url(re.compile(f"h={second}~{third}~{first}"))


@pytest.mark.long
def test_the_map_is_on_the_first_screen_and_each_tap_selects_its_own_point(visit: Callable[[str], Page]) -> None:
    page = visit("/map?ds=sample&space=sasrec&h=alien-1979~gravity-2013")
    plot, bar = page.locator(".st-key-map_sasrec .js-plotly-plot"), page.locator(".st-key-map_sasrec .modebar")
    plot.locator("canvas").first.wait_for()
    settle(page)
    title, drawn, tools, space = (
        part.bounding_box() for part in (page.get_by_role("heading", level=1), plot, bar, page.get_by_label("Space"))
    )
    assert title and drawn and tools and space
    assert title["y"] + title["height"] <= drawn["y"] and drawn["y"] + drawn["height"] <= space["y"]
    assert drawn["y"] + drawn["height"] < 600
    assert tools["y"] >= title["y"] + title["height"] and tools["x"] >= 0 and tools["x"] + tools["width"] <= 390
    assert tools["height"] < 50  # one row
    for place, item in enumerate(("alien-1979", "gravity-2013")):
        page.touchscreen.tap(*plot.evaluate(_HISTORY_POINT, place))
        page.wait_for_url(re.compile(f"item={item}"))
        settle(page)
        page.get_by_role("button", name="Close the details").tap()
        page.wait_for_url(lambda url: "item=" not in url)
        settle(page)


_HISTORY_POINT = """(plot, place) => {
  const { x, y } = plot._fullData.find(trace => trace.name === "History")
  const { xaxis, yaxis } = plot._fullLayout
  const { left, top } = plot.getBoundingClientRect()
  return [left + xaxis._offset + xaxis.l2p(x[place]), top + yaxis._offset + yaxis.l2p(y[place])]
}"""


@pytest.mark.long
def test_details_are_a_sheet_that_leaves_the_page_to_be_used(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys&h=toy-1~toy-2&view=ranks")
    sheet, more = page.locator(".st-key-item_panel"), page.get_by_role("button", name="Details", exact=True)
    main, finger = page.get_by_test_id("stMain"), page.context.new_cdp_session(page)

    def swipe(way: int) -> None:
        """On the head of the sheet, so many pixels down, as fast as a finger: after a faster one the browser takes a tap for what
        stops it."""
        head = sheet.locator("header .item").bounding_box()
        assert head is not None
        x, y = head["x"] + 20, head["y"] + head["height"] / 2
        moves = [("Move", [y + way * part / 8]) for part in range(1, 9)]
        for kind, points in (("Start", [y]), *moves, ("End", [])):
            finger.send(
                "Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": [{"x": x, "y": y} for y in points]}
            )
            page.wait_for_timeout(16)

    page.locator(".ranks .title").first.tap()
    expect(more).to_have_attribute("aria-expanded", "true")
    settle(page)
    assert sheet.evaluate("e => e.offsetHeight") <= 844 * 0.45 + 1
    sheet.get_by_role("link", name="Attention").tap()
    page.wait_for_url(re.compile("/attention"))
    expect(more).to_have_attribute("aria-expanded", "false")  # that page is what was chosen
    settle(page)
    assert sheet.evaluate("e => e.offsetHeight") < 100
    room = main.locator("[data-testid=stMainBlockContainer]").evaluate(
        "e => parseFloat(getComputedStyle(e).paddingBottom)"
    )
    assert 0 < room - sheet.evaluate("e => e.offsetHeight") < 50  # the end of the page can be seen above it
    sheet.locator("header .item").tap()
    expect(more).to_have_attribute("aria-expanded", "true")
    expect(sheet.get_by_role("link", name="Catalogue")).to_be_visible()
    swipe(60)
    expect(more).to_have_attribute("aria-expanded", "false")
    swipe(-60)
    expect(more).to_have_attribute("aria-expanded", "true")
    settle(page)  # a tap on what still moves stops it, and does no more
    more.tap()
    expect(more).to_have_attribute("aria-expanded", "false")  # and the head lies lower
    swipe(60)
    sheet.wait_for(state="detached")


def small(page: Page) -> dict[str, list[int]]:
    """What is touched on less than 44 px in a direction, by its name; heads of columns, links in sentences and the arrows beside
    tabs are left out, and of signs of help the room around them counts."""
    return dict(page.evaluate(_SMALL))


_SMALL = """() => {
  const found = []
  const look = root => {
    for (const e of root.querySelectorAll("*")) {
      if (e.shadowRoot) look(e.shadowRoot)
      if (!e.matches("button, summary, select, [role=tab], .download a, .actions a")) continue
      if (e.matches(".sort, [data-testid^=stTabsScroll]") || e.disabled || e.closest("[data-testid=stSidebar]")) continue
      const { width, height } = e.getBoundingClientRect()
      const around = 2 * Math.max(0, -parseFloat(getComputedStyle(e, "::after").inset) || 0)
      if (width && height && Math.min(width, height) + around < 43.5)
        found.push([e.ariaLabel ?? e.textContent, [width, height].map(Math.round)])
    }
  }
  look(document)
  return found
}"""


def test_what_is_touched_is_large_enough_and_a_link_needs_no_clipboard(
    page: Page, visit: Callable[[str], Page], console_errors: list[str]
) -> None:
    page.add_init_script("delete Navigator.prototype.clipboard; document.execCommand = () => false")
    visit("/?ds=hostile&h=toy-9&view=lists")
    for part in (".model", ".history"):
        page.locator(part).first.wait_for()
    assert small(page) == {}
    written = page.locator("input:not([role=combobox])")
    sizes = written.evaluate_all("all => all.map(field => parseFloat(getComputedStyle(field).fontSize))")
    assert sizes and min(sizes) >= 16  # Safari enlarges the page where one writes in smaller letters, and leaves it so
    page.get_by_role("tab", name="Agreement").click()
    page.locator(".modebar").first.wait_for(state="attached")
    assert not any(bar.is_visible() for bar in page.locator(".modebar").all())  # it would lie on what a finger touches
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("button", name="Copy link").click()
    field = page.get_by_label("Address")  # the link stands there, selected
    expect(field).to_have_value(re.compile("ds=hostile&h=toy-9"))
    assert (
        field.evaluate("field => [field.selectionStart, field.selectionEnd, field.value.length]")[1:]
        == [len(field.input_value())] * 2
    )
    box = field.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert not console_errors


def test_the_rank_table_comes_first_is_sorted_by_any_model_and_has_room(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys&h=toy-1~toy-2")
    page.locator(".ranks tbody tr").first.wait_for()
    for column in (2, 4):  # after the item and the mean
        page.locator(".ranks thead th").nth(column).get_by_role("button").click()
        ranks = page.locator(f".ranks tbody tr td:nth-child({column + 1})").all_inner_texts()
        assert [float(rank) for rank in ranks] == sorted(float(rank) for rank in ranks)
    heads = page.locator(".ranks thead th")
    assert heads.evaluate_all("heads => Math.min(...heads.map(head => head.getBoundingClientRect().width))") >= 55
    assert {*heads.evaluate_all("heads => heads.map(head => getComputedStyle(head).writingMode)")} == {"horizontal-tb"}
    item = page.locator(".ranks .item").first
    item.evaluate("item => item.insertAdjacentHTML('beforeend', '<span class=tag>in the history</span>')")
    item.locator(".title").evaluate("title => { title.textContent = 'A title of some words' }")
    assert item.locator(".title").evaluate("title => title.getBoundingClientRect().width") > 80  # beside a tag, too
    first, last = heads.first.bounding_box(), heads.last.bounding_box()
    page.locator(".ranks").evaluate("table => table.scrollTo(1000, 0)")
    after = heads.last.bounding_box()
    assert first is not None and last is not None and after is not None
    assert heads.first.bounding_box() == first and after["x"] + after["width"] <= 390 < last["x"] + last["width"]


@pytest.mark.long
def test_names_are_whole_and_buttons_within_the_screen(visit: Callable[[str], Page]) -> None:
    page = visit("/users?ds=sample")
    opens = page.locator("tbody .open")
    opens.first.wait_for()
    assert opens.evaluate_all("all => Math.max(...all.map(open => open.getBoundingClientRect().right))") <= 390
    page = visit("/?ds=films&m=sasrec~sasrec-bce")
    for name in page.locator(".ranks thead .name").filter(has_text="SASRec").all():
        assert name.evaluate("name => name.getClientRects().length") == 1  # no line ends in SASRec-
    page = visit("/report?ds=sample")
    chosen = page.locator(".st-key-report_batch_models_sample").get_by_text("Counting transitions", exact=True)
    assert chosen.evaluate("name => name.scrollWidth <= name.clientWidth + 1")


def test_an_edit_of_the_history_brings_its_ranks_into_view(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys&h=" + "~".join(f"toy-{item}" for item in range(30)))
    top = "e => e.getBoundingClientRect().top"
    table = page.locator(".ranks")
    table.locator("tbody tr").first.wait_for()
    assert table.evaluate(top) > 844 / 2
    page.get_by_role("button", name="Remove last").tap()
    until(page, lambda: 0 < table.evaluate(top) < 844 / 2, True)


def test_why_a_file_did_not_arrive_stands_with_it(page: Page, visit: Callable[[str], Page]) -> None:
    page.route("**/_stcore/upload_file/**", lambda route: route.abort())
    visit("/your_data")
    messy.put(page, 0, "lost.csv", b"item_id\n1\n")
    words = page.get_by_role("alert").bounding_box()
    assert words is not None and words["width"] > 100 and words["height"] > 10
