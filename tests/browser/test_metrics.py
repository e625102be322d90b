"""Metrics in a real browser: every part is there, protocols change, and a person's history opens in Compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.bundles import make_zoo, seal

if TYPE_CHECKING:
    from playwright.sync_api import Page

PARTS = [
    "Which model is best",
    "Against a baseline",
    "Beyond accuracy",
    "For whom",
    "People on whom two models differ",
    "Training",
    "How it was made",
]


@pytest.fixture(scope="module")
def judged(serve: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An app with evaluated models of hostile names that rank people differently."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = make_zoo(tmp_path_factory.mktemp("judged"))
    ranks = pq.read_table(path / "beta" / "ranks.parquet")
    pq.write_table(ranks.set_column(4, "rank", pa.array([9.0, 1.0, 1.0, 2.0])), path / "beta" / "ranks.parquet")
    seal(path / "beta", title="<script>window.hit = 1</script> $x$")
    return serve(path.parent)


def test_every_part(
    judged: Any, page: Page, settle: Callable[..., None], console_errors: list[str], foreign_requests: list[str]
) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{judged.url}/metrics")
    page.get_by_role("heading", name="How it was made").wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    page.get_by_role("heading", name=PARTS[-1]).wait_for()
    for part in PARTS:
        assert page.get_by_role("heading", name=part).count() == 1
    assert page.evaluate("window.hit") is None
    text = page.get_by_test_id("stMain").inner_text().replace("\u2060", "")
    assert "<script>window.hit = 1</script> $x$" in text
    assert "Full ranking" in text and "seed 0" in text and "Traceback" not in text
    assert not console_errors and not foreign_requests


def test_a_persons_history_opens_in_compare(judged: Any, page: Page, settle: Callable[..., None]) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{judged.url}/metrics")
    page.get_by_role("heading", name="How it was made").wait_for(timeout=200_000)  # the first visit starts everything
    settle(page)
    page.get_by_role("button", name="Open in Compare").click()
    settle(page)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_function("location.pathname.endsWith('/compare') || location.pathname === '/'")
    page.wait_for_function("location.search.includes('u=u')")


def test_narrow_and_dark(judged: Any, new_page: Callable[..., Page], settle: Callable[..., None]) -> None:
    narrow = new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    narrow.set_default_timeout(60_000)
    narrow.goto(f"{judged.url}/metrics")
    narrow.get_by_role("heading", name="How it was made").wait_for(timeout=200_000)  # the first visit starts everything
    settle(narrow)
    assert narrow.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
