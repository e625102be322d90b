"""Every page at its fullest, with names that try to be more: in both colour schemes, wide and narrow, for everybody."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser import messy
from tests.browser.conftest import accessible, for_everybody, legible, settle, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

BEAM, UPLOAD = "/?ds=hostile&beam=writer", "/your_data"
WORDS = "/attention?ds=readers&model=recformer&h=safety-last-1923~the-kid-1921"
PREFIX = "/semantic_ids?ds=codes&prefix=2"
PAGES = {  # what a page shows last of all, and how many figures
    BEAM: ("tab", "Beam search", 1),
    "/catalogue?ds=codes": ("link", "These items as CSV", 0),
    "/attention?ds=hostile&u=u0&section=positions": ("heading", "Layers and heads", 2),
    WORDS: ("heading", "Word by word", 1),
    PREFIX: ("button", "Show on the map", 1),
    "/semantic_ids?ds=codes&section=codebooks": ("heading", "Codebook vectors", 5),
    "/graph?ds=films": ("heading", "What each layer adds", 2),
    "/map?ds=codes&space=codes.rqvae&beside=space.minilm&by=cluster&code=rqvae.1-2&item=toy-3&area=prefix.rqvae~1":
        ("heading", "Selected items", 2),
    "/metrics?ds=hostile": ("heading", "Difference to a baseline", 2),
    "/users?ds=hostile": ("heading", "Ranks over users", 1),
    "/about?ds=hostile&section=terms": ("heading", "Views", 0),
    UPLOAD: ("heading", "Add a dataset", 0),
    "/report?ds=hostile&k=3": ("heading", "Many histories at once", 0),
}  # fmt: skip


@pytest.mark.parametrize(
    "address", [pytest.param(page, marks=pytest.mark.long) if page in (WORDS, PREFIX) else page for page in PAGES]
)
def test_every_page(
    visit: Callable[[str], Page], address: str, console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = visit(address)
    role, name, figures = PAGES[address]
    page.get_by_role(role, name=name).first.wait_for()  # type: ignore[arg-type]
    until(page, lambda: page.locator(".js-plotly-plot .main-svg").count() >= figures, True)
    settle(page)
    main = page.get_by_test_id("stMain")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"\w"))
    levels = [int(one) for one in main.locator("h1, h2, h3").evaluate_all("all => all.map(one => one.tagName[1])")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert "Traceback" not in page.content()
    assert page.evaluate("window.hit") is None
    assert main.locator("img[src=x], a[href*='example.org'], a[href*='b.org']").count() == 0
    for figure in page.get_by_test_id("stPlotlyChart").all():
        assert figure.locator("[aria-label]").count() or figure.get_attribute("aria-label")
    written = address.startswith(("/metrics", "/semantic_ids"))
    if written:
        legible(page)
    for_everybody(page)
    if written:
        legible(page)  # in the dark
    if address == BEAM:
        beneath_each_other(page)
    if address == UPLOAD:
        a_button_that_waits_is_read(page)
    assert not console_errors
    assert not foreign_requests


def beneath_each_other(page: Page) -> None:
    """On a phone the list of a beam stands before its tree, which has room for its labels before it is drawn: Plotly widens a
    margin that is too narrow, and draws everything a second time."""
    tops = page.locator(".st-key-beam_columns [data-testid=stColumn]").evaluate_all(
        "all => all.map(column => column.getBoundingClientRect().top)"
    )
    assert tops[1] < tops[0]
    ((drawn, given),) = page.locator(".js-plotly-plot").evaluate_all(
        "all => all.map(g => [g._fullLayout._size, g.layout.margin].map(m => ['l', 'r', 't', 'b'].map(side => m[side])))"
    )
    assert drawn == given
    hidden = page.locator(".js-plotly-plot .xtick text, .js-plotly-plot .ytick text").evaluate_all(
        "all => all.filter(text => text.style.display === 'none').map(text => text.textContent)"
    )
    assert hidden == []


def a_button_that_waits_is_read(page: Page) -> None:
    messy.put(page, 1, "empty.csv", b"user,item\n")
    button = page.get_by_role("button", name="Check", exact=True)
    expect(button).to_be_disabled()
    for scheme, paper in (("dark", "rgb(17, 23, 24)"), ("light", "rgb(255, 255, 255)")):  # as written on the accent
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        settle(page)
        assert button.evaluate("button => getComputedStyle(button).color") != paper


@pytest.mark.long
def test_what_forced_colours_and_more_contrast_bring_out(visit: Callable[[str], Page]) -> None:
    page = visit("/map?ds=codes")
    key = page.locator(".key").first
    dot = key.evaluate("key => getComputedStyle(key, '::before').backgroundColor")
    ringed = "() => getComputedStyle(document.activeElement).outlineStyle"
    link = page.get_by_test_id("stSidebarNavLink").nth(1)
    page.keyboard.press("Tab")  # the ring is for a keyboard
    link.focus()
    assert page.evaluate(ringed) == "solid"
    page.emulate_media(forced_colors="active")
    assert key.evaluate("key => getComputedStyle(key, '::before').backgroundColor") == dot
    ground = "e => getComputedStyle(e).backgroundColor"
    projections = page.locator(".st-key-map_projection button[role=radio]")
    assert projections.nth(0).evaluate(ground) != projections.nth(1).evaluate(ground)
    for control in (link, page.get_by_test_id("stMainMenuButton"), page.get_by_label("Find on the map")):
        control.focus()
        assert page.evaluate(ringed) == "solid"
    page = visit("/semantic_ids?ds=codes&section=codebooks")
    switch = page.get_by_test_id("stCheckbox").locator("label > span + div")
    assert switch.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    assert switch.evaluate(ground) != page.get_by_test_id("stApp").evaluate(ground)
    caption = page.get_by_test_id("stCaptionContainer").first
    assert float(caption.evaluate("e => getComputedStyle(e).opacity")) < 1
    page.emulate_media(forced_colors="none", contrast="more")
    assert caption.evaluate("e => getComputedStyle(e).opacity") == "1"


@pytest.mark.long
def test_buttons_that_are_open_or_pointed_at_are_read_in_the_dark(visit: Callable[[str], Page]) -> None:
    page = visit("/map?ds=codes")
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Display").click()
    page.get_by_text("Next items", exact=True).wait_for()
    settle(page)
    assert page.get_by_test_id("stPopoverBody").evaluate("e => getComputedStyle(e).colorScheme") == "dark"
    accessible(page, runOnly=["color-contrast"])
    page.keyboard.press("Escape")
    chosen = page.locator(".st-key-map_projection button[aria-checked=true] p")
    for scheme, ink in (("light", "rgb(9, 90, 90)"), ("dark", "rgb(92, 200, 189)")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        chosen.hover()
        until(page, lambda ink=ink: chosen.evaluate("e => getComputedStyle(e).color"), ink)
        page.wait_for_timeout(500)  # its ground fades
        accessible(page, runOnly=["color-contrast"])
    page = visit("/attention?ds=codes&h=")
    button = page.get_by_role("button", name="Load an example")
    button.hover()
    until(page, lambda: button.evaluate("e => getComputedStyle(e).backgroundColor"), "rgb(15, 87, 82)")  # it fades
    accessible(page, runOnly=["color-contrast"])


def test_an_option_that_is_cut_ends_in_an_ellipsis(visit: Callable[[str], Page]) -> None:
    page = visit("/?ds=toys")
    page.get_by_role("combobox", name="Dataset").click()
    words = page.get_by_role("option").first.locator("div")
    until(page, lambda: words.evaluate("e => [getComputedStyle(e).display, getComputedStyle(e).textOverflow]"),
          ["block", "ellipsis"])  # fmt: skip
    page.keyboard.press("Escape")


def test_a_printed_page_has_the_whole_width_and_figures_are_as_wide(visit: Callable[[str], Page]) -> None:
    page = visit("/attention?ds=hostile&u=u0")
    figure = page.locator(".js-plotly-plot .main-svg").first
    drawn = int(figure.get_attribute("width") or 0)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.get_by_test_id("stSidebar").wait_for(state="hidden")
    main = page.get_by_test_id("stMain").bounding_box()
    assert main is not None and (main["x"], main["width"]) == (0, 1440)
    place = page.get_by_test_id("stPlotlyChart").first.bounding_box()
    box = figure.bounding_box()
    assert box is not None and place is not None and box["width"] == place["width"] > drawn
    assert str(figure.get_attribute("viewBox")).startswith(f"0 0 {drawn} ")
