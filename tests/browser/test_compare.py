"""The page Compare and the tray in a real browser: clicks, the keyboard, the address, foreign text, narrow and dark screens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from app import state
from tests.app.conftest import HOSTILE, ODD_IDS, rename
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Settle = Callable[..., None]


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
    """Waits for the lists: their code is loaded after the script has run, which takes its time on a busy machine."""
    page.locator(".model").first.wait_for(timeout=90_000)


def history(page: Page) -> list[str]:
    """The titles in the tray."""
    return page.locator(".history .title").all_inner_texts()


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
    assert page.get_by_role("heading", name="How much do they agree?").is_visible()
    assert page.get_by_role("heading", name="Why this item?").is_visible()
    page.locator(".js-plotly-plot").nth(1).wait_for(timeout=90_000)
    assert not console_errors
    assert not foreign_requests


def test_the_history_can_be_edited_by_keyboard(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    first, second, third = (f"Toy {i} – <b>bold</b>" for i in (1, 2, 3))
    tray_button(page, "Move later", first).focus()
    page.keyboard.press("Enter")
    settle(page)
    assert [title.split(" (")[0] for title in history(page)] == [second, first, third]
    page.keyboard.press("Enter")  # the focus has gone along with the item
    settle(page)
    assert [title.split(" (")[0] for title in history(page)] == [second, third, first]
    tray_button(page, "Remove", second).focus()
    page.keyboard.press("Enter")
    settle(page)
    page.keyboard.press("Enter")  # the next item's button has the focus
    settle(page)
    assert [title.split(" (")[0] for title in history(page)] == [first]
    assert "h=toy-1" in page.url


def test_quick_clicks_leave_page_and_address_in_agreement(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&h=" + "~".join(f"toy-{i}" for i in range(8)))
    for _ in range(4):
        page.locator(".history .remove").first.click()  # some of them at an entry that is on its way out
    settle(page, 1.5)
    left = len(history(page))
    assert left < 8
    assert page.url.count("toy-") == left
    page.reload()
    settle(page)
    shown(page)
    assert len(history(page)) == left


def test_search_forgives_typing_errors(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=hostile&h=toy-9")
    box = page.get_by_label("Add an item")
    box.press_sequentially("hyperlnik")
    page.locator(".st-key-tray_hits button").first.wait_for()
    page.locator(".st-key-tray_hits button").first.click()
    settle(page)
    assert history(page)[-1].startswith("=HYPERLINK(")
    assert box.input_value() == ""


def test_a_what_if_shows_what_moved_and_can_be_kept(go: Callable[[str], Page], settle: Settle) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    before = lists(page)
    page.get_by_role("button", name="the last item were gone").click()
    settle(page)
    assert page.locator(".moved").count() > 0
    assert re.search(r"b=toy-1~toy-2(&|$)", page.url)
    assert len(history(page)) == 3  # A is pinned
    page.get_by_role("button", name="Back to A").click()
    settle(page)
    assert lists(page) == before
    page.get_by_role("button", name="the last item were gone").click()
    settle(page)
    page.get_by_role("button", name="Keep B").click()
    settle(page)
    assert len(history(page)) == 2
    assert page.locator(".moved").count() == 0


def test_a_link_shows_another_person_the_same(
    go: Callable[[str], Page], new_page: Callable[..., Page], settle: Settle
) -> None:
    page = go("/?ds=hostile")
    page.locator(".model .add").first.click()
    settle(page)
    page.get_by_role("button", name="the last two were swapped").click()
    settle(page)
    page.get_by_role("button", name="Copy link").click()
    settle(page)
    link = page.locator("[data-testid=stCode] code").inner_text()
    other = new_page()
    other.goto(link)
    settle(other)
    shown(other)
    assert lists(other) == lists(page)
    assert history(other) == history(page)


def test_titles_and_ids_are_text_and_nothing_else(
    go: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = go("/?" + urlencode({"ds": "hostile", "h": state.encode(ODD_IDS)}))
    assert [without_marks(text).split(" (19")[0] for text in history(page)] == HOSTILE
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
    assert page.get_by_text("1 model could not be opened").is_visible()


def test_what_truly_came_next_is_marked(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&u=u3")
    assert page.locator("li.truth").count() == page.locator(".model").count()
    assert page.get_by_text("What came next:").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screens_need_no_sideways_scrolling(
    new_page: Callable[..., Page], url: str, settle: Settle, scheme: str, console_errors: list[str]
) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme, has_touch=True)
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
