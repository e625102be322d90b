"""Every page with the simulated sample: what it is, in both colour schemes, on wide screens and narrow ones, for everybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import for_everybody, settle

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


@pytest.mark.parametrize("path", list(LAST))
def test_every_page(
    visit: Callable[[str], Page], path: str, console_errors: list[str], foreign_requests: list[str]
) -> None:
    page = visit(path)
    role, name = LAST[path]
    page.get_by_role(role, name=name).first.wait_for()
    settle(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"\w"))
    assert "Traceback" not in page.content()
    for_everybody(page)
    assert not console_errors
    assert not foreign_requests
