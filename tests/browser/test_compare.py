"""Compare in a real browser: clicks, the keyboard, the address, foreign text. Telephones: test_phone.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from app.session import address
from tests import clients
from tests.app.conftest import ODD_IDS
from tests.browser.conftest import settle, until
from tests.browser.datasets import LONG, TITLES
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.clients import Server

TOYS = [f"Toy {i} – <b>bold</b>" for i in range(40)]


@pytest.fixture
def go(visit: Callable[[str], Page]) -> Callable[[str], Page]:
    def open_(path: str) -> Page:
        page = visit(path)
        shown(page)
        return page

    return open_


def shown(page: Page) -> None:
    """Waits for the lists and the history: their code is loaded after the script has run."""
    page.locator(".model").first.wait_for()
    page.locator(".history, .empty").first.wait_for()


def history(page: Page) -> list[str]:
    """The titles of the chips, without their years."""
    return [without_marks(text).split(" (19")[0] for text in page.locator(".history .title").all_inner_texts()]


def lists(page: Page) -> list[str]:
    """Every list's text."""
    return page.locator(".model").all_inner_texts()


def chip_button(page: Page, name: str, toy: int) -> Locator:
    """Named with the year: other items may have the title."""
    return page.get_by_role("button", name=f"{name}: {TOYS[toy]} ({1950 + toy})", exact=True)


_ORDER = """() => {
  const order = (window.order = [])
  const send = WebSocket.prototype.send
  WebSocket.prototype.send = function (...words) { order.push("run"); return send.apply(this, words) }
  for (const name of ["model", "history"]) {
    const root = [...document.querySelectorAll("*")].find(part => part.shadowRoot?.querySelector(`.${name}`)).shadowRoot
    new MutationObserver(() => order.at(-1) === name || order.push(name)).observe(root, { childList: true, subtree: true })
  }
}"""


def test_a_recommendation_can_be_taken_back_and_is_drawn_once_before_its_run_or_by_it(
    go: Callable[[str], Page],
) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2")
    before, model = lists(page), page.locator(".model").first
    added = model.locator(".title").first.inner_text().split(" (19")[0]
    model.locator(".add").first.dblclick()  # adds once: the second comes before the first is answered
    until(page, lambda: history(page), [TOYS[1], TOYS[2], added])
    until(page, lambda: page.url.count("~"), 2)
    until(page, lambda: lists(page) != before, True)
    first = model.locator(".title").first.inner_text().split(" (19")[0]
    expect(page.get_by_role("status").filter(has_text="First in each list")).to_contain_text(first)  # read aloud
    page.go_back()  # at once: the server must tell this from a click that came late
    until(page, lambda: history(page), [TOYS[1], TOYS[2]])
    until(page, lambda: lists(page), before)
    assert page.url.endswith("/?ds=toys&h=toy-1~toy-2")

    settle(page)
    page.evaluate(_ORDER)
    model.locator(".add").first.click()
    until(page, lambda: page.url.count("~"), 2)
    settle(page)
    assert page.evaluate("order")[:3] == ["model", "history", "run"]
    assert sorted(set(page.evaluate("order")[3:])) in ([], ["run"])
    before = lists(page)
    page.route("**/early/**", lambda route: route.abort())  # nothing answers before the run
    model.locator(".add").first.click()
    until(page, lambda: len(history(page)), 4)
    until(page, lambda: lists(page) != before, True)


def test_a_screen_reader_is_told_that_there_is_no_list(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys&view=lists&h=" + "~".join(f"toy-{i}" for i in range(40)))
    for view in ("lists", "Rank table"):
        if view == "Rank table":
            page.get_by_text(view).click()
            page.locator(".ranks").wait_for(state="attached")
        expect(page.get_by_role("status").filter(has_text="list")).to_have_text("No model gives a list.")


def test_a_search_pushes_nothing_and_is_over_with_a_click_on_what_it_finds(go: Callable[[str], Page]) -> None:
    """All pages that search for an item have the same box."""
    page = go("/?ds=toys&h=toy-1~toy-2")
    below, box, hits = (
        page.locator(".st-key-compare_models_row"), page.get_by_label("Add an item"), page.locator(".st-key-history_hits"),
    )  # fmt: skip
    before = below.bounding_box()
    for text, shown in (("zzzzqq", "Nothing like “zzzzqq”"), ("toy 17", "Toy 17")):
        box.fill("")
        box.press_sequentially(text)
        expect(hits).to_contain_text(shown)
        settle(page)
        assert below.bounding_box() == before
    hits.locator("button").first.click()
    until(page, lambda: history(page), [TOYS[1], TOYS[2], TOYS[17]])
    expect(box).to_have_value("")
    expect(hits.locator("button")).to_have_count(0)


@pytest.mark.long
def test_the_buttons_of_a_figure_stand_above_it(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2&section=agreement")
    plot = page.locator(".js-plotly-plot").first
    plot.hover()
    bar = plot.locator(".modebar")
    assert bar.bounding_box()["y"] + bar.bounding_box()["height"] <= plot.bounding_box()["y"] + 8  # type: ignore[index]
    bar.locator("button").first.click(trial=True)  # nothing lies over it


def test_the_history_is_edited_by_dragging_by_keyboard_and_by_typing(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    start, end = (chip_button(page, "Details", toy).bounding_box() for toy in (1, 3))
    assert start is not None and end is not None
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] - 5, end["y"] + 5, steps=8)
    page.mouse.up()
    until(page, lambda: history(page), [TOYS[2], TOYS[3], TOYS[1]])
    until(page, lambda: "h=toy-2~toy-3~toy-1" in page.url, True)
    settle(page)

    chip_button(page, "Move", 2).focus()
    page.keyboard.press("ArrowRight")
    until(page, lambda: history(page), [TOYS[3], TOYS[2], TOYS[1]])
    page.keyboard.press("ArrowRight")  # the focus has gone along with the item
    until(page, lambda: history(page), [TOYS[3], TOYS[1], TOYS[2]])
    chip_button(page, "Remove", 3).focus()
    page.keyboard.press("Enter")
    until(page, lambda: history(page), [TOYS[1], TOYS[2]])
    page.keyboard.press("Enter")  # the next item's button has the focus
    until(page, lambda: history(page), [TOYS[2]])
    page.wait_for_url(re.compile(r"[?&]h=toy-2(&|$)"))

    box = page.get_by_label("Add an item")
    box.press_sequentially("toy 1")
    expect(page.locator(".st-key-history_hits button").first).to_contain_text("Toy 1 ")
    expect(page.locator(".st-key-announced_history").get_by_role("status")).to_have_text("6 results")
    box.press_sequentially("7")  # and at once, while the results of "toy 1" are there:
    box.press("Enter")  # takes the first result, and the focus stays
    until(page, lambda: history(page), [TOYS[2], TOYS[17]])
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    settle(page)
    swap = page.get_by_role("button", name="Swap last two")
    swap.focus()
    page.keyboard.press("Enter")
    until(page, lambda: history(page), [TOYS[17], TOYS[2]])
    settle(page)
    expect(swap).to_be_focused()
    page = go("/?ds=sample")
    pills = page.locator(".st-key-compare_models button")
    many = pills.count()
    pills.nth(1).focus()
    page.keyboard.press("Enter")
    expect(pills).to_have_count(many - 1)
    expect(pills.nth(1)).to_be_focused()  # the next one, in its place


def test_edits_quicker_than_runs_are_all_made_and_page_and_address_agree(go: Callable[[str], Page]) -> None:
    """Each as soon as the one before is drawn, which is before its run; then some at an entry that is on its way out."""
    page = go("/?ds=toys&h=" + "~".join(f"toy-{i}" for i in range(11)))
    page.locator(".history").evaluate("""async list => {
      const root = list.getRootNode(), removes = () => root.querySelectorAll(".history .remove")
      for (const left of [10, 9, 8]) {
        removes()[0].click()
        const end = Date.now() + 20_000
        while (removes().length > left && Date.now() < end) await new Promise(requestAnimationFrame)
      }
    }""")
    edited = re.compile(r"[?&]h=toy-3~toy-4~toy-5~toy-6~toy-7~toy-8~toy-9~toy-10(&|$)")
    page.wait_for_url(edited)
    assert history(page) == [TOYS[i] for i in range(3, 11)]
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="About").click()
    page.get_by_role("heading", name="About", level=1).wait_for()
    page.go_back()  # to the last edit, which was made a moment before
    page.wait_for_url(edited)
    settle(page)
    for _ in range(4):
        page.locator(".history .remove").first.click()
    until(page, lambda: len(history(page)) < 8, True)
    settle(page, 1.5)
    left = history(page)
    assert page.url.count("toy-") == len(left)
    page.reload()
    settle(page)
    shown(page)
    assert history(page) == left


def test_a_page_that_opens_without_parameters_is_one_step_back(visit: Callable[[str], Page]) -> None:
    """As Streamlit opens one where the click cuts a run short."""
    page = visit("/?ds=toys")
    page.evaluate("['/about', '/about?ds=toys'].forEach(url => history.pushState({}, '', url))")
    page.go_back()
    assert page.evaluate("location.pathname") == "/"


def test_an_edit_that_is_not_answered_yet_comes_before_the_what_if_that_is_clicked_after_it(
    go: Callable[[str], Page],
) -> None:
    page = go("/?ds=toys&h=toy-1~toy-2~toy-3")
    page.route("**/early/**", lambda route: None)
    page.evaluate("AbortSignal.timeout = () => new AbortController().signal")
    page.locator(".history .remove").first.click()
    page.get_by_role("button", name="Swap last two").click(delay=100)
    until(page, lambda: history(page), [TOYS[3], TOYS[2]])
    page.wait_for_url(re.compile(r"[?&]h=toy-2~toy-3&.*b=toy-3~toy-2(&|$)"))


@pytest.mark.long
def test_a_link_shows_others_the_same(go: Callable[[str], Page], new_page: Callable[..., Page], server: Server) -> None:
    page = go("/?ds=hostile")
    before = len(history(page))
    page.locator(".model .add").first.click()
    until(page, lambda: len(history(page)), before + 1)
    settle(page)
    page.get_by_role("button", name="Swap last two").click()
    page.get_by_role("button", name="Keep B").wait_for()
    settle(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied.").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(server.url) and "b=" in link
    other = new_page()
    other.goto(link)
    shown(other)
    until(other, lambda: history(other), history(page))
    until(other, lambda: lists(other), lists(page))
    # the same rank of both lists stands at the same height
    tops = "all => all.map(row => row.getBoundingClientRect().top)"
    card = other.locator(".model .both").first
    original, edited = (card.locator(f"> div:nth-child({side}) li").evaluate_all(tops) for side in (1, 2))
    assert len(original) == 10 and edited[:10] == pytest.approx(original, abs=1)


def test_titles_and_ids_are_text_of_which_the_first_lines_are_shown(
    go: Callable[[str], Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = go("/?" + urlencode({"ds": "hostile", "h": address.encode(ODD_IDS), "k": 40}))
    assert history(page) == TITLES
    hebrew = page.locator(".history .title").filter(has_text="שלום")
    assert hebrew.evaluate("e => getComputedStyle(e).direction") == "rtl"  # where it is cut, its beginning stays
    assert page.locator(".katex, [data-testid=stMarkdownContainer] a[href*='b.org']").count() == 0
    title = page.locator(".model .title").filter(has_text=LONG).first
    shown, whole = title.locator(".long").evaluate("words => [words.clientHeight, words.scrollHeight]")
    assert 0 < shown < whole
    assert LONG in (title.get_attribute("title") or "") and LONG in (title.get_attribute("aria-label") or "")
    page = go("/?ds=hostile&h=long~toy-9&item=toy-12")
    title = page.locator(".why .title").first
    title.wait_for()
    shown, whole = title.evaluate("e => [e.clientHeight, e.firstElementChild?.scrollHeight]")
    assert 0 < shown < whole and LONG in (title.get_attribute("title") or "")
    assert not console_errors and not foreign_requests


@pytest.mark.long
def test_a_narrow_window_is_laid_out_as_a_phones_is(page: Page, visit: Callable[[str], Page]) -> None:
    """Whatever its browser calls itself."""
    page.set_viewport_size({"width": 390, "height": 844})
    visit("/?ds=toys&h=toy-1~toy-2")
    page.locator(".ranks").first.wait_for()
    page.set_viewport_size({"width": 1_440, "height": 900})
    page.locator(".model").first.wait_for()
    settle(page)
    page.evaluate(
        "document.addEventListener('click', () => document.body.dataset.clicks = 1 + +(document.body.dataset.clicks ?? 0))"
    )
    box = page.get_by_label("Add an item")
    box.press_sequentially("toy 17")
    box.press("Enter")
    expect(box).to_have_value("")
    assert page.evaluate("document.body.dataset.clicks") == "1"  # though it was listened to anew at each width


def test_a_table_of_ranks_stays_sorted_by_its_model(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys&view=ranks&m=alpha~beta~gamma")
    heads = page.locator(".ranks thead th")
    heads.nth(3).get_by_role("button").click()
    expect(heads.nth(3)).to_have_attribute("aria-sort", "ascending")
    model = heads.nth(3).inner_text()
    page.locator(".st-key-compare_models button").first.click()
    expect(heads).to_have_count(4)
    expect(page.locator(".ranks thead th[aria-sort=ascending]")).to_have_text(model, use_inner_text=True)


@pytest.mark.long
def test_the_first_click_counts_after_the_server_began_anew(
    new_page: Callable[..., Page], own_server: Callable[..., Server], tmp_path: Path
) -> None:
    exports = make_zoo(tmp_path / "exports", name="toys").parent
    first, page = own_server(exports), new_page()
    page.goto(first.url + "/?ds=toys&h=toy-1~toy-2")
    shown(page)
    settle(page)
    app = page.get_by_test_id("stApp")
    clients.stop(first)
    expect(app).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    own_server(exports, f"--server.port={first.url.rpartition(':')[2]}", wait=False)
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    settle(page)
    page.get_by_role("button", name="Swap last two").click()
    until(page, lambda: history(page), [TOYS[2], TOYS[1]])


@pytest.mark.long
def test_the_keyboard_stays_where_what_it_was_at_has_gone(go: Callable[[str], Page]) -> None:
    """The last item of the history, an item that a list or the table has no longer, and details that close."""
    page = go("/?ds=toys&h=toy-1&view=lists")
    page.locator(".history .remove").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".empty")).to_be_focused()
    settle(page)

    page.locator(".model .add").first.focus()
    page.keyboard.press("Enter")
    until(page, lambda: len(history(page)), 1)
    expect(page.locator(".model .add").first).to_be_focused()
    settle(page)

    page.locator(".model .title").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Add to history", exact=True).focus()
    page.keyboard.press("Enter")
    until(page, lambda: len(history(page)), 2)
    settle(page)
    page.keyboard.press("Escape")
    page.locator(".st-key-item_panel").wait_for(state="detached")
    expect(page.locator(".models")).to_be_focused()

    page.get_by_text("Rank table").click()
    add = page.locator(".ranks .add")
    added = add.nth(1).get_attribute("aria-label")
    add.nth(1).focus()
    page.keyboard.press("Enter")
    until(page, lambda: len(history(page)), 3)
    expect(page.get_by_role("button", name=added, exact=True)).to_have_count(0)
    expect(add.nth(1)).to_be_focused()  # the item that stands there now


@pytest.mark.long
def test_keys_that_are_pressed_quickly_move_one_item_and_keep_the_focus(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&view=lists&h=" + "~".join(f"toy-{toy}" for toy in range(1, 7)))
    settle(page, 1)
    chip_button(page, "Move", 1).focus()
    expect(chip_button(page, "Move", 1)).to_be_focused()
    for _ in range(4):  # some of them while what an earlier one led to is drawn
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
    until(page, lambda: history(page) != TOYS[1:7], True)
    settle(page, 1.5)
    assert [toy for toy in history(page) if toy != TOYS[1]] == TOYS[2:7]
    expect(chip_button(page, "Move", 1)).to_be_focused()


def test_the_keyboard_skips_lists(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys&view=lists")
    skips = page.locator(".model > .skip")
    page.keyboard.press("Tab")
    skips.first.focus()
    for place in range(skips.count()):
        expect(skips.nth(place)).to_be_focused()
        expect(skips.nth(place)).to_have_css("opacity", "1")
        page.keyboard.press("Enter")
    expect(page.locator(".models > .end")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".models :focus")).to_have_count(0)
    page.get_by_text("Rank table").click()
    page.locator(".ranks > .skip").press("Enter")
    expect(page.locator(".ranks > .end")).to_be_focused()


def stays_under_the_pointer(page: Page, view: str) -> None:
    """What was clicked, when the details open and close: the page is narrower then, and what stands above the lists takes more
    lines."""
    name = page.locator(view).nth(1).get_attribute("aria-label")
    title, details = page.get_by_role("button", name=name, exact=True), page.locator(".st-key-item_panel")

    def top() -> float:
        return float(title.evaluate("e => e.getBoundingClientRect().top"))

    before, above = top(), page.locator(".st-key-compare_models_row")
    height = above.evaluate("e => e.offsetHeight")
    title.click()
    details.wait_for()
    settle(page)
    assert above.evaluate("e => e.offsetHeight") > height and top() == pytest.approx(before, abs=2)
    page.keyboard.press("Escape")
    details.wait_for(state="detached")
    settle(page)
    assert top() == pytest.approx(before, abs=2)


@pytest.mark.long
def test_beside_details_lists_stay_in_place_and_a_what_if_says_what_was_dropped(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=films&view=lists&h=star-wars-1977~star-wars-episode-v-the-empire-strikes-back-1980~jaws-1975")
    stays_under_the_pointer(page, ".model .title")
    page.get_by_text("Rank table").click()
    stays_under_the_pointer(page, ".ranks .title")
    page.get_by_test_id("stButtonGroup").get_by_text("Lists", exact=True).click()
    page.get_by_role("button", name="Remove last").click()
    page.locator(".model .pinned").first.wait_for()
    of_a = page.locator(".model .pinned li")
    both = of_a.count()
    assert all(row.is_visible() for row in of_a.all())
    page.locator(".model .title").first.click()
    page.locator(".st-key-item_panel").wait_for()
    settle(page, 1.5)
    shown = page.locator(".model .pinned li:visible")
    assert 0 < shown.count() < both and shown.count() == page.locator(".model .pinned li.dropped").count()
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollHeight") <= 3_500


def test_bars_have_tracks_of_one_length_and_a_model_says_what_it_can_without_a_rerun(go: Callable[[str], Page]) -> None:
    page = go("/?ds=toys&u=u3&view=lists")  # with badges, a target in the list and one beyond it
    expect(page.locator("li.truth")).to_have_count(page.locator(".model").count())
    widths = "all => all.map(bar => bar.getBoundingClientRect().width)"
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        settle(page)
        tracks, bars = (page.locator(f".model .bar{part}").evaluate_all(widths) for part in ("", " > span"))
        assert len(tracks) == 40  # four of the five models give probabilities
        assert min(tracks) > 100 and max(tracks) - min(tracks) < 1
        assert max(bars) == pytest.approx(max(tracks), abs=1) and min(bars) < max(bars) / 2
        can_and_cannot(page, width)


def can_and_cannot(page: Page, width: int) -> None:
    tall = page.locator(".model").first.evaluate("e => e.offsetHeight")
    sent = page.evaluate("window.traffic.sent")
    page.get_by_role("button", name="What Alpha can and cannot do").focus()
    page.keyboard.press("Enter")
    told = page.get_by_role("dialog", name="What Alpha can and cannot do")
    for term in ("Items it has never seen", "Ties", "Invalid codes", "Can show"):
        expect(told.get_by_text(term, exact=True)).to_be_visible()

    def within() -> bool:
        place = told.bounding_box()
        assert place is not None
        across = place["x"] >= 0 and place["x"] + place["width"] <= width
        return across and place["y"] >= 0 and place["y"] + place["height"] <= 844

    until(page, within, True, 5)  # it is placed in the frame after it has opened
    assert page.locator(".model").first.evaluate("e => e.offsetHeight") == tall
    page.keyboard.press("Escape")
    expect(told).to_have_count(0)
    assert page.evaluate("window.traffic.sent") == sent  # the server was not asked


def without_marks(text: str) -> str:
    """Without the invisible signs that keep text from being read as anything else."""
    return re.sub("[\u2060\u2068\u2069]", "", text)
