"""The page Graph on real films: the tree opens layer by layer, a list of paths on a phone, and the item can be another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

EXPORTS = Path(__file__).parents[2] / "exports"


def test_the_tree_opens_layer_by_layer(
    page: Page, serve: Callable[[Path], Any], settle: Callable[..., None], console_errors: list[str]
) -> None:
    page.goto(serve(EXPORTS).url + "/graph")
    tree = page.locator(".st-key-graph_tree .js-plotly-plot")
    expect(tree).to_be_visible()
    expect(tree).to_contain_text("people")
    names = tree.locator(".scatterlayer .textpoint").count()
    page.get_by_role("radio", name="History", exact=True).click()
    settle(page)
    assert tree.locator(".scatterlayer .textpoint").count() < names
    expect(tree).not_to_contain_text("people")
    expect(page.locator(".st-key-graph_list")).to_be_hidden()

    page.get_by_role("radio", name="NGCF").click()
    settle(page)
    expect(page.get_by_role("heading", name="What each layer adds")).to_be_visible()

    page.set_viewport_size({"width": 390, "height": 900})
    settle(page)
    expect(page.locator(".st-key-graph_list")).to_be_visible()
    expect(tree).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not console_errors
