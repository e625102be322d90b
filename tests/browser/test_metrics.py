"""Metrics in a real browser: every part is there, protocols change, and a person's history opens in Compare."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import until
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
    "What each piece adds",
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


@pytest.fixture
def go(judged: Any, new_page: Callable[..., Page], settle: Callable[..., None]) -> Callable[..., Page]:
    def open_(**options: Any) -> Page:
        page = new_page(**options)
        page.goto(f"{judged.url}/metrics")
        page.get_by_role("heading", name=PARTS[-1]).wait_for()
        settle(page)
        return page

    return open_


def test_every_part(go: Callable[..., Page], console_errors: list[str], foreign_requests: list[str]) -> None:
    page = go()
    for part in PARTS:
        expect(page.get_by_role("heading", name=part)).to_have_count(1)
    assert page.evaluate("window.hit") is None
    main = page.get_by_test_id("stMain")
    for text in ("<script>window.hit = 1</script> $x$", "Full ranking", "seed 0"):
        until(page, lambda text=text: text in main.inner_text().replace("\u2060", ""), True)
    assert "Traceback" not in main.inner_text()
    assert not console_errors and not foreign_requests


def test_a_persons_history_opens_in_compare(go: Callable[..., Page]) -> None:
    page = go()
    page.get_by_role("button", name="Open in Compare").click()
    page.wait_for_url(re.compile(r"://[^/]+/(compare)?\?(.*&)?u=u"))
    page.get_by_role("heading", level=1, name=re.compile("^What did u. choose next")).wait_for()


def test_choices_are_in_the_link_and_survive_a_reload(
    judged: Any, new_page: Callable[..., Page], settle: Callable[..., None], console_errors: list[str]
) -> None:
    page = new_page()
    page.goto(f"{judged.url}/metrics?metric=HR&at=5&baseline=beta&by=length&first=beta&second=alpha")
    page.get_by_role("heading", name=PARTS[-1]).wait_for()
    settle(page)
    for key, shown in (("metrics_slice", "Length of the history"), ("metrics_first", "<script>")):
        until(page, lambda key=key, shown=shown: shown in page.locator(f"[class*='st-key-{key}']").first.inner_text()
              + (page.locator(f"[class*='st-key-{key}'] input").first.get_attribute("value") or ""), True)  # fmt: skip
    page.get_by_text("NDCG", exact=True).first.click()
    page.wait_for_url(re.compile(r"[?&]metric=NDCG(&|$)"))
    settle(page)
    address = page.url
    page.reload()
    page.get_by_role("heading", name=PARTS[-1]).wait_for()
    settle(page)
    assert page.url == address and "baseline=beta" in address and "at=5" in address
    expect(page.get_by_role("figure", name=re.compile(r"^NDCG@5 of \d"))).to_have_count(1)
    page.goto(f"{judged.url}/metrics?metric=luck&baseline=nobody")
    page.get_by_text("metric “luck”; possible is NDCG, HR or MRR").wait_for()
    page.get_by_text("was not evaluated under this protocol").wait_for()
    page.get_by_role("heading", name=PARTS[-1]).wait_for()
    assert not console_errors


def test_narrow_and_dark(go: Callable[..., Page]) -> None:
    narrow = go(viewport={"width": 390, "height": 844}, color_scheme="dark")
    assert narrow.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
