"""Reports in a real browser: the exported page without a network, in light and dark, on a phone and on paper; and the page
Report, from choosing to downloads and a batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from app.reports import document, html
from app.reports.build import build
from app.reports.document import Asked, Report
from engine.cli import main
from engine.runtime import Zoo
from tests.app.conftest import ODD_IDS
from tests.browser.conftest import PATIENCE, accessible, download, settle, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from tests.clients import Server


@pytest.fixture(scope="module")
def report(server: Server) -> Report:
    asked = Asked(history=[*ODD_IDS, "toy-9"], edited=ODD_IDS[:3], k=5, rows=True, title="<svg onload='window.hit=1'>")
    return build(Zoo.open(server.exports / "hostile"), asked, address="https://app.example.org/report?v=1")


@pytest.fixture
def offline(browser: Browser, report: Report, tmp_path: Path) -> Iterator[Callable[..., tuple[Page, list[str]]]]:
    """offline(kind, **options): (the exported file, opened where there is no network; every request and every error)."""
    contexts = []

    def go(kind: html.Kind, content: bytes | None = None, **options: Any) -> tuple[Page, list[str]]:
        file = tmp_path / f"{kind}.html"
        file.write_bytes(content or html.render(report, kind))
        context = browser.new_context(offline=True, **options)
        context.set_default_timeout(PATIENCE * 1_000)
        contexts.append(context)
        heard: list[str] = []

        def intercept(route: Route) -> None:
            if route.request.url == file.as_uri():
                route.continue_()
            else:
                heard.append(f"request: {route.request.url}")
                route.abort()

        context.route("**/*", intercept)
        page = context.new_page()
        page.on("request", lambda request: heard.append(request.url) if request.url != file.as_uri() else None)
        page.on("console", lambda message: heard.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.goto(file.as_uri())
        if kind == "interactive":
            figures = page.locator("[data-figure]").count()
            until(page, lambda: page.locator("[data-figure]:has(.main-svg)").count(), figures)
        return page, heard

    yield go
    for context in contexts:
        context.close()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["interactive", "static"])
def test_it_opens_without_a_network_and_asks_for_nothing(
    offline: Callable[..., tuple[Page, list[str]]], report: Report, kind: html.Kind, tmp_path: Path
) -> None:
    page, heard = offline(kind, color_scheme="light")
    expect(page.get_by_role("heading", level=1)).to_have_text("<svg onload='window.hit=1'>")
    for heading in ("What each model recommends", "Attention weights", "Item map (UMAP)", "Provenance"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    assert page.evaluate("[...document.fonts].map((font) => [font.family, font.status])") == [["Source Sans", "loaded"]]
    for folded in page.locator("summary").all():
        folded.click()
    if kind == "interactive":  # what stands in hover texts is foreign, too
        for name in ("attention-alpha", "map", "metrics"):
            page.locator(f"[data-figure={name}] .plotly").first.hover()
            page.mouse.move(*middle(page, name))
        page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, lambda: page.evaluate("document.documentElement.scrollWidth") <= 390, True)
    for svg in page.locator(".static:not(.wide) > svg").all():
        box = svg.bounding_box()
        assert box is None or box["x"] + box["width"] <= 391
    if kind == "interactive":
        drawn_again(page)
        printed(page, tmp_path)
    assert not heard, heard
    # rows are alike: three of each table are looked at
    page.evaluate("document.querySelectorAll('tbody tr:nth-child(n + 4)').forEach(row => row.remove())")
    for scheme, paper in (("light", "rgb(252, 252, 251)"), ("dark", "rgb(17, 23, 24)")):
        page.emulate_media(media="screen", color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == paper
        if scheme == "light":
            accessible(page)
        elif kind == "interactive":  # names, roles and order are the same in both schemes, and colours in both kinds
            accessible(page, runOnly=["color-contrast"])


def drawn_again(page: Page) -> None:
    """Figures follow the scheme."""
    ink = page.locator("[data-figure=metrics] .ytick text").first
    for scheme, colour in (("light", "rgb(15, 24, 26)"), ("dark", "rgb(230, 236, 234)")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        until(page, lambda: ink.evaluate("e => getComputedStyle(e).fill"), colour)


def printed(page: Page, folder: Path) -> None:
    """Printed from a dark screen it is dark on white, with drawn figures, no wider than the sheet."""
    page.set_viewport_size({"width": 688, "height": 900})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(252, 252, 251)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 688
    assert page.locator(".static svg").first.is_visible()
    assert all(not plot.is_visible() for plot in page.locator(".plot").all())
    assert not page.get_by_role("navigation").is_visible()
    page.pdf(path=str(folder / "p.pdf"), format="A4")
    text = " ".join(sheet.extract_text() for sheet in PdfReader(folder / "p.pdf").pages)
    assert "Provenance" in text


def middle(page: Page, name: str) -> tuple[float, float]:
    box = page.locator(f"[data-figure={name}]").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_on_a_phone_the_rules_stop_what_was_not_put_there_and_no_bar_lies_on_figures(
    offline: Callable[..., tuple[Page, list[str]]], report: Report
) -> None:
    """A script, a picture from elsewhere and a frame are put into the file by hand; none of them does anything. Where no script
    of its own may run, the rules allow less: tests/reports/test_html.py."""
    smuggled = (
        b"<script>window.hit = 1</script><img src='https://example.org/x.png' onerror='window.hit = 1'>"
        b"<iframe src='https://example.org/'></iframe><link rel='stylesheet' href='https://example.org/x.css'></main>"
    )
    content = html.render(report, "interactive").replace(b"</main>", smuggled)
    phone = {"has_touch": True, "is_mobile": True, "viewport": {"width": 390, "height": 844}}
    page, heard = offline("interactive", content, **phone)
    until(page, lambda: any("Content Security Policy" in one for one in heard), True)
    page.wait_for_timeout(100)
    assert page.evaluate("window.hit") is None
    assert not [one for one in heard if one.startswith("request")], heard  # none came as far as the network
    page.locator(".modebar").first.wait_for(state="attached")
    assert not any(bar.is_visible() for bar in page.locator(".modebar").all())


# --- the page of the app


def choice(page: Page, name: str) -> Any:
    """One of a few that lie side by side."""
    return page.get_by_test_id("stMain").get_by_test_id("stButtonGroup").get_by_text(name, exact=True)


def taken(page: Page, name: str | re.Pattern[str], folder: Path) -> Path:
    return download(page.get_by_role("link", name=name), folder)


@pytest.mark.long
def test_from_choosing_to_a_verified_file(
    visit: Callable[[str], Page],
    server: Server,
    tmp_path: Path,
    console_errors: list[str],
    foreign_requests: list[str],
) -> None:
    page = visit("/report?ds=hostile&h=toy-9~toy-12~a.b&k=4")
    frame = page.frame_locator("iframe").first
    expect(frame.get_by_role("heading", name="What each model recommends")).to_be_visible()
    page.get_by_label("Title", exact=True).fill("For a colleague")
    page.get_by_label("Title", exact=True).press("Enter")
    expect(frame.get_by_role("heading", level=1)).to_have_text("For a colleague")
    choice(page, "Map").click()
    expect(frame.get_by_role("heading", name="Item map (UMAP)")).to_have_count(0)
    assert "parts=" in page.url and "title=For" in page.url
    frame.get_by_role("link", name="Provenance").click()  # stays within the preview
    expect(frame.get_by_role("heading", name="Provenance")).to_be_in_viewport()

    file = taken(page, "JSON", tmp_path)
    assert re.fullmatch(r"seqscope-for-a-colleague-\d{4}-\d\d-\d\d\.json", file.name)
    made = document.load(file)
    assert made.asked.k == 4 and made.map is None and made.asked.history == ["toy-9", "toy-12", "a.b"]
    assert made.address is not None and "title=For" in made.address
    assert main(["report", "--verify", str(file), str(server.exports / "hostile")]) == 0

    choice(page, "Interactive").click()
    settle(page)
    assert b"plotly.js v" in taken(page, "HTML", tmp_path).read_bytes()
    page.get_by_role("button", name="CSV").first.click()
    table = taken(page, re.compile(r"^Download Lists \("), tmp_path)
    assert table.read_text("utf-8-sig").startswith("model,place,item_id,title")
    frame.locator("[data-item]").first.click()
    expect(page.get_by_role("complementary", name="Details: ")).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert not console_errors and not foreign_requests

    page.context.clear_cookies()  # another browser's page, so to say
    page.get_by_role("link", name="JSON").click()
    expect(page.get_by_text("not for this browser")).to_be_visible()
