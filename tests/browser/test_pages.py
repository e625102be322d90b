"""Every page with the simulated sample: what it is, in both colour schemes, on wide screens and narrow ones, for everybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAST = {  # what a page shows last of all
    "/": ("heading", "Why this item?"),
    "/catalogue": ("link", "These items as CSV"),
    "/attention": ("heading", "Is that why?"),
    "/semantic_ids": ("heading", "Semantic IDs"),
    "/graph": ("heading", "Graph"),
    "/map": ("heading", "An item and its neighbours"),
    "/metrics": ("heading", "How it was made"),
    "/about": ("heading", "Limits"),
    "/your_data": ("heading", "Bring a catalogue"),
    "/report": ("heading", "Many histories at once"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", list(LAST))
def test_every_page(
    new_page: Callable[..., Page],
    server: Any,
    settle: Callable[..., None],
    path: str,
    scheme: str,
    console_errors: list[str],
    foreign_requests: list[str],
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = new_page(color_scheme=scheme)
    page.goto(server.url + path)
    role, name = LAST[path]
    page.get_by_role(role, name=name).first.wait_for()
    settle(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"\w"))
    assert "Traceback" not in page.content()
    found = axe.Axe().run(page, context={"exclude": [["[data-testid=stSidebarNav]"]]})  # Streamlit's own menu
    serious = [told(one) for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
    assert not serious, "\n".join(serious)

    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("e => e.clientWidth") <= 390
    assert main.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not console_errors
    assert not foreign_requests


def told(violation: dict[str, Any]) -> str:
    return f"{violation['id']}: " + "; ".join(node["html"][:200] for node in violation["nodes"][:3])
