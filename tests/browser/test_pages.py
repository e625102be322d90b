"""Every page opens in a browser with the embedded sample and says what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.parametrize("path", ["/", "/catalogue", "/attention", "/map", "/metrics", "/about"])
def test_every_page_opens(visit: Callable[[str], Page], path: str, foreign_requests: list[str]) -> None:
    page = visit(path)
    heading = page.get_by_role("heading", level=1).first
    heading.wait_for(timeout=60_000)
    assert heading.inner_text().strip()
    assert "Traceback" not in page.content()
    assert not foreign_requests
