"""Every page at its fullest, with names that try to be more: in both colour schemes, wide and narrow, for everybody."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import for_everybody, legible, settle, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.clients import Server

HEIGHT = 3_500  # pixels of a page as it is opened, at most
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "user_agent": "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36",
}
PAGES = {  # what a page shows last of all, and how many figures
    "/?ds=hostile": ("tab", "Overview", 0),
    "/?ds=writers&h=toy-11~toy-12&beam=writer": ("tab", "Beam search", 1),
    "/catalogue?ds=codes": ("link", "These items as CSV", 0),
    "/attention?ds=hostile&u=u0&section=positions": ("heading", "Layers and heads", 2),
    "/attention?ds=readers&model=recformer&h=safety-last-1923~the-kid-1921": ("heading", "Word by word", 1),
    "/semantic_ids?ds=codes&prefix=2": ("button", "Show on the map", 1),
    "/semantic_ids?ds=codes&section=codebooks": ("heading", "Codebook vectors", 5),
    "/graph?ds=films": ("heading", "What each layer adds", 2),
    "/map?ds=codes&space=codes.rqvae&beside=space.minilm&by=cluster&code=rqvae.1-2&item=toy-3&area=prefix.rqvae~1":
        ("heading", "Selected items", 2),
    "/metrics?ds=hostile": ("heading", "Difference to a baseline", 2),
    "/users?ds=hostile": ("heading", "Ranks over users", 1),
    "/about?ds=hostile&section=terms": ("heading", "Views", 0),
    "/your_data": ("heading", "Add a dataset", 0),
    "/report?ds=hostile&k=3": ("heading", "Many histories at once", 0),
}  # fmt: skip


@pytest.mark.parametrize("address", PAGES)
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
    assert not console_errors
    assert not foreign_requests


@pytest.fixture(scope="module")
def phone(open_page: Callable[..., Page]) -> Page:
    return open_page(**PHONE)


@pytest.mark.parametrize("kind", ("page", "phone"))
def test_no_page_is_long_as_it_is_opened(server: Server, request: pytest.FixtureRequest, kind: str) -> None:
    page: Page = request.getfixturevalue(kind)
    heights = {}
    for name in ("", "metrics", "semantic_ids", "users"):
        page.goto(f"{server.url}/{name}?ds=films")
        settle(page, 1.5)
        page.locator("[data-testid=stSkeleton]").wait_for(state="detached")
        heights[name] = page.get_by_test_id("stMain").evaluate("main => main.scrollHeight")
    assert {name: height for name, height in heights.items() if not 1_000 < height <= HEIGHT} == {}


def test_on_a_phone_the_list_of_a_beam_stands_before_its_tree(server: Server, phone: Page) -> None:
    page = phone
    page.goto(f"{server.url}/?ds=writers&h=toy-11~toy-12&beam=writer")
    tree = page.locator(".st-key-beam_columns .js-plotly-plot")
    tree.wait_for()
    settle(page)
    tops = page.locator(".st-key-beam_columns [data-testid=stColumn]").evaluate_all(
        "all => all.map(column => column.getBoundingClientRect().top)"
    )
    assert tops[1] < tops[0]
