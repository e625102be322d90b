"""The page Compare and the tray in a real browser: clicks, the keyboard, the address, foreign text, narrow and dark screens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from app import address
from tests.app.conftest import HOSTILE, ODD_IDS, rename
from tests.browser.conftest import until
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Settle = Callable[..., None]
TOYS = [f"Toy {i} – <b>bold</b>" for i in range(40)]


@pytest.fixture(scope="module")
def url(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The app on a folder whose titles and ids try to be more than text, and on a plain one."""
    root = tmp_path_factory.mktemp("exports")
    path = make_zoo(root, name="hostile")
    rename(path, HOSTILE, ODD_IDS)
    (path / "broken").mkdir()
    (path / "broken" / "manifest.json").write_text("{}")
    make_zoo(root, name="toys")
    found: str = serve(root).url
    return found


@pytest.fixture
def go(page: Page, url: str, settle: Settle) -> Callable[[str], Page]:
    def visit(path: str) -> Page:
        page.goto(url + path)
        settle(page)
        shown(page)
        return page

    return visit


def shown(page: Page) -> None:
    """Waits for the lists and the history: their code is loaded after the script has run."""
    page.locator(".model").first.wait_for()
    page.locator(".history, .empty").first.wait_for()


def history(page: Page) -> list[str]:
    """The titles in the tray, without their years."""
    return [without_marks(text).split(" (19")[0] for text in page.locator(".history .title").all_inner_texts()]


def lists(page: Page) -> list[str]:
    """Every list's text."""
    return page.locator(".model").all_inner_texts()


def tray_button(page: Page, name: str, title: str) -> Locator:
    return page.get_by_role("button", name=f"{name}: {title}", exact=True)


def test_a_real_result_before_any_click(
    go: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = go("/?ds=toys")
    assert page.get_by_role("heading", level=1).inner_text().endswith("?")
    assert page.locator(".model").count() == 5
    assert page.locator(".model li").count() == 50
    page.get_by_role("heading", name="How much do they agree?").wait_for()
    page.get_by_role("heading", name="Why this item?").wait_for()
    page.locator(".js-plotly-plot").nth(1).wait_for()
    assert not console_errors
    assert not foreign_requests


def test_a_recommendation_can_be_added_and_taken_back(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2")
    before = lists(page)
    wanted = page.locator(".model").first.locator(".title").first.inner_text().split(" (19")[0]
    page.locator(".model").first.locator(".add").first.click()
    until(page, lambda: history(page), [TOYS[1], TOYS[2], wanted])
    until(page, lambda: page.url.count("~"), 2)
    until(page, lambda: lists(page) != before, True)
    page.go_back()  # at once: the server must tell this from a click that came late
    until(page, lambda: history(page), [TOYS[1], TOYS[2]])
    until(page, lambda: lists(page), before)
    assert page.url.endswith("/?ds=toys&h=toy-1~toy-2")


def test_the_history_can_be_edited_by_keyboard(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    tray_button(page, "Move later", TOYS[1]).focus()
    page.keyboard.press("Enter")
    until(page, lambda: history(page), [TOYS[2], TOYS[1], TOYS[3]])
    page.keyboard.press("Enter")  # the focus has gone along with the item
    until(page, lambda: history(page), [TOYS[2], TOYS[3], TOYS[1]])
    tray_button(page, "Remove", TOYS[2]).focus()
    page.keyboard.press("Enter")
    until(page, lambda: history(page), [TOYS[3], TOYS[1]])
    page.keyboard.press("Enter")  # the next item's button has the focus
    until(page, lambda: history(page), [TOYS[1]])
    page.wait_for_url(re.compile(r"[?&]h=toy-1(&|$)"))


def test_enter_takes_the_first_result_and_the_focus_stays(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    box = page.get_by_label("Add an item")
    box.press_sequentially("toy 17")
    box.press("Enter")
    until(page, lambda: history(page), [TOYS[1], TOYS[2], TOYS[3], TOYS[17]])
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    settle(page)
    swap = page.get_by_role("button", name="the last two were swapped")
    swap.focus()
    page.keyboard.press("Enter")
    until(page, lambda: history(page), [TOYS[1], TOYS[2], TOYS[17], TOYS[3]])
    settle(page)
    expect(swap).to_be_focused()


def test_plotlys_bar_does_not_lie_on_figures_under_a_finger(
    new_page: Callable[..., Page], url: str, settle: Settle
) -> None:
    page = new_page(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    page.goto(f"{url}/attention?ds=toys&h=toy-1~toy-2~toy-3")
    settle(page)
    page.locator(".modebar").first.wait_for(state="attached")
    assert not any(bar.is_visible() for bar in page.locator(".modebar").all())


def test_quick_clicks_leave_page_and_address_in_agreement(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&h=" + "~".join(f"toy-{i}" for i in range(8)))
    for _ in range(4):
        page.locator(".history .remove").first.click()  # some of them at an entry that is on its way out
    until(page, lambda: len(history(page)) < 8, True)
    settle(page, 1.5)
    left = history(page)
    assert page.url.count("toy-") == len(left)
    page.reload()
    settle(page)
    shown(page)
    assert history(page) == left


def test_search_forgives_typing_errors(go: Callable[[str], Page]) -> None:
    page = go("/?ds=hostile&h=toy-9")
    box = page.get_by_label("Add an item")
    box.press_sequentially("hyperlnik")
    hit = page.locator(".st-key-tray_hits button").first  # the first of what was found for all the letters, or for some
    expect(hit).to_contain_text("HYPERLINK")
    hit.click()
    until(page, lambda: history(page), [TOYS[9], HOSTILE[2]])
    expect(box).to_have_value("")
    expect(page.locator(".st-key-tray_hits button")).to_have_count(0)


def test_a_what_if_shows_what_moved_and_can_be_kept(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    before = lists(page)
    page.get_by_role("button", name="the last item were gone").click()
    page.wait_for_url(re.compile(r"[?&]b=toy-1~toy-2(&|$)"))
    expect(page.locator(".moved")).not_to_have_count(0)
    until(page, lambda: history(page), [TOYS[1], TOYS[2]])  # every page looks at B
    page.get_by_role("button", name="Back to A").first.click()
    until(page, lambda: lists(page), before)
    until(page, lambda: len(history(page)), 3)
    settle(page)  # until then the buttons of the page before may stand beside the new ones
    page.get_by_role("button", name="the last item were gone").click()
    page.get_by_role("button", name="Keep B").click()
    until(page, lambda: history(page), [TOYS[1], TOYS[2]])
    expect(page.locator(".moved")).to_have_count(0)


def test_a_link_shows_another_person_the_same(
    go: Callable[[str], Page], new_page: Callable[..., Page], settle: Settle, url: str
) -> None:
    page = go("/?ds=hostile")
    before = len(history(page))
    page.locator(".model .add").first.click()
    until(page, lambda: len(history(page)), before + 1)
    page.get_by_role("button", name="the last two were swapped").click()
    page.get_by_role("button", name="Keep B").wait_for()
    settle(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied.").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(url) and "b=" in link
    other = new_page()
    other.goto(link)
    shown(other)
    until(other, lambda: history(other), history(page))
    until(other, lambda: lists(other), lists(page))


def test_without_a_clipboard_the_link_stands_there_selected(new_page: Callable[..., Page], url: str) -> None:
    page = new_page(viewport={"width": 390, "height": 844})
    page.add_init_script("delete Navigator.prototype.clipboard; document.execCommand = () => false")
    page.goto(url + "/?ds=toys&h=toy-1")
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("button", name="Copy link").click()
    field = page.get_by_label("Address")
    expect(field).to_have_value(re.compile("ds=toys&h=toy-1"))
    assert (
        field.evaluate("field => [field.selectionStart, field.selectionEnd, field.value.length]")[1:]
        == [len(field.input_value())] * 2
    )
    box = field.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_titles_and_ids_are_text_and_nothing_else(
    go: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = go("/?" + urlencode({"ds": "hostile", "h": address.encode(ODD_IDS)}))
    assert history(page) == HOSTILE
    said = without_marks(page.locator(".st-key-compare_histories").inner_text())
    for title in HOSTILE:
        assert " ".join(title.split()) in said
    assert page.locator(".katex, [data-testid=stMarkdownContainer] a[href*='b.org']").count() == 0
    assert not console_errors
    assert not foreign_requests


def test_a_model_that_cannot_answer_or_be_opened_says_why(go: Callable[[str], Page]) -> None:
    page = go("/?ds=hostile&h=")
    texts = lists(page)
    assert "needs at least one item" in texts[0]
    assert any("1\n" in text for text in texts[3:])  # those that need no history still answer
    page.get_by_text("1 model could not be opened").wait_for()


def test_a_model_says_what_it_can_and_cannot_do_without_a_rerun(
    go: Callable[[str], Page], settle: Settle, console_errors: list[str]
) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        settle(page)
        can_and_cannot(page, width)
    assert not console_errors


def can_and_cannot(page: Page, width: int) -> None:
    tall = page.locator(".model").first.evaluate("e => e.offsetHeight")
    sent = page.evaluate("window.traffic.sent")
    page.get_by_role("button", name="What Alpha can and cannot do").focus()
    page.keyboard.press("Enter")
    told = page.get_by_role("dialog", name="What Alpha can and cannot do")
    for term in ("Items it has never seen", "Ties", "Invalid codes", "Can show"):
        expect(told.get_by_text(term, exact=True)).to_be_visible()
    place = told.bounding_box()
    assert place is not None and place["x"] >= 0 and place["x"] + place["width"] <= width
    assert place["y"] >= 0 and place["y"] + place["height"] <= 844
    assert page.locator(".model").first.evaluate("e => e.offsetHeight") == tall
    page.keyboard.press("Escape")
    expect(told).to_have_count(0)
    assert page.evaluate("window.traffic.sent") == sent  # the server was not asked


def test_what_truly_came_next_is_marked(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&u=u3")
    expect(page.locator("li.truth")).to_have_count(page.locator(".model").count())
    page.get_by_text("What came next:").wait_for()


def test_all_bars_are_drawn_on_tracks_of_one_length(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&u=u3")  # with badges, a target in the list and one beyond it
    widths = "all => all.map(bar => bar.getBoundingClientRect().width)"
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        settle(page)
        tracks, bars = (page.locator(f".model .bar{part}").evaluate_all(widths) for part in ("", " > span"))
        assert len(tracks) == 40  # four of the five models give probabilities
        assert min(tracks) > 100 and max(tracks) - min(tracks) < 1
        assert max(bars) == pytest.approx(max(tracks), abs=1) and min(bars) < max(bars) / 2


def test_narrow_screens_need_no_sideways_scrolling(
    new_page: Callable[..., Page], url: str, settle: Settle, console_errors: list[str]
) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    page.goto(url + "/?ds=hostile")
    settle(page)
    shown(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    main = page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('[data-testid=stMain]'))")
    assert wide <= 390
    assert main <= 0
    sizes = page.locator(".model .add").first.bounding_box()
    assert sizes is not None and min(sizes["width"], sizes["height"]) >= 24
    assert not console_errors


def without_marks(text: str) -> str:
    """Without the invisible signs that keep text from being read as anything else."""
    return re.sub("[\u2060\u2068\u2069]", "", text)
