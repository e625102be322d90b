"""The app in a real browser: one Streamlit server per worker for all that only look, and Debian's chromium through Playwright.

    def test_front_page(visit, console_errors):
        page = visit("/?ds=toys")
        assert page.get_by_role("heading", level=1).is_visible()
        assert not console_errors

Where chromium is missing these tests are skipped, but never in CI (CI=true): there they fail.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from engine.commands.doctor import find_chromium
from tests import clients
from tests.browser import datasets
from tests.clients import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

T = TypeVar("T")

READY = '[data-testid="stApp"][data-test-connection-state="CONNECTED"][data-test-script-state="notRunning"]'
WIDE = {"width": 1440, "height": 900}
PATIENCE = 90  # seconds; a busy machine may need long, a broken app never comes to it
# Streamlit's page looks idle between a click and the server's first word about it, so settle() needs to know of both.
_TRAFFIC = """
window.traffic = {sent: 0, heard: 0}
const send = WebSocket.prototype.send
WebSocket.prototype.send = function (...data) {
  if (!this.overheard) this.addEventListener("message", () => (window.traffic.heard = performance.now()))
  this.overheard = true
  window.traffic.sent = performance.now()
  return send.apply(this, data)
}
"""
_CALM = """([ready, quiet]) => {
  const {sent, heard} = window.traffic
  const calm =
    document.querySelector(ready) && !document.querySelector('[data-testid="stSkeleton"]') &&
    heard > sent && performance.now() - heard >= quiet
  window.calm = calm ? (window.calm ?? 0) + 1 : 0
  return window.calm >= 5  // in so many frames: what had to wait for a busy thread has had its turn
}"""
# A deep link makes Streamlit's page look for its server beneath the page's own path first; the misses are no fault of the app.
_HARMLESS = re.compile(r"/[^/]+/_stcore/(health|host-config)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.browser)


def pytest_runtest_setup() -> None:
    if find_chromium() is None:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(
                "browser tests must run in CI, and chromium is missing (apt-get install chromium)", pytrace=False
            )
        # Skipped here and not in a fixture: pytest then sums all of them up in one line.
        pytest.skip("browser tests: chromium not found (apt-get install chromium, or name one in SEQSCOPE_CHROMIUM)")


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """own_server(exports, *options, home=folder, script=file) starts an app of this test's own, which ends with it."""
    running: list[Server] = []

    def start(exports: Path, *options: str, home: Path | None = None, **more: str) -> Server:
        folder = tmp_path / f"server-{len(running)}"
        folder.mkdir()
        running.append(clients.start(exports, home or folder / "home", folder / "log.txt", *options, **more))
        return running[-1]

    yield start
    clients.stop(*running)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Server]:
    """The app with the embedded datasets and those of tests/browser/datasets.py: for tests that only look, one per worker."""
    folder = tmp_path_factory.mktemp("server")
    for name in ("films", "sample"):
        (folder / "exports" / name).parent.mkdir(exist_ok=True)
        (folder / "exports" / name).symlink_to(root / "exports" / name)
    datasets.write(folder / "exports")
    running = clients.start(folder / "exports", folder / "home", folder / "log.txt")
    yield running
    clients.stop(running)


@dataclass
class Running:
    """The browser, while a worker has tests of this folder."""

    ends: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    browser: Browser | None = None
    pages: dict[str, Page] = field(default_factory=dict)
    """The one that tests share, by its options."""

    def end(self) -> None:
        self.browser = None
        self.pages.clear()
        self.ends.close()


RUNNING = Running()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """The browser ends before a test of another folder: while Playwright runs, the thread has an event loop, which none may
    meet."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path.parent != Path(__file__).parent:
            RUNNING.end()


@pytest.fixture(scope="module")
def browser() -> Browser:
    """One for all files that a worker takes one after the other."""
    from playwright.sync_api import expect, sync_playwright

    if RUNNING.browser is None or not RUNNING.browser.is_connected():
        RUNNING.end()
        expect.set_options(timeout=PATIENCE * 1_000)
        playwright = RUNNING.ends.enter_context(sync_playwright())
        # pages are open for seconds: what V8 would make fast for later costs a quarter of the browser's time
        flags = ["--js-flags=--no-opt --no-maglev"]
        RUNNING.browser = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        RUNNING.ends.callback(RUNNING.browser.close)
    return RUNNING.browser


@dataclass
class Heard:
    """What a page's browser reported."""

    errors: list[str] = field(default_factory=list)
    """Console errors and uncaught exceptions."""
    foreign: list[str] = field(default_factory=list)
    """Requests to other machines."""


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def console_errors(heard: Heard) -> list[str]:
    """Console errors and uncaught exceptions of all pages of this test, as they come."""
    return heard.errors


@pytest.fixture
def foreign_requests(heard: Heard) -> list[str]:
    """Requests of all pages of this test that leave the server's machine, as they come. Nothing is blocked."""
    return heard.foreign


@pytest.fixture(scope="module")
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """open_page(**options) opens a page of a visitor of its own; options as for Browser.new_context, 1440 × 900 unless told,
    and without motion, which takes a fifth of what a page computes."""
    pages = []

    def make(**options: object) -> Page:
        pages.append(new_visitor(browser, options))
        return pages[-1]

    yield make
    for page in pages:
        page.context.close()


def new_visitor(browser: Browser, options: dict[str, Any]) -> Page:
    context = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
    context.add_init_script(_TRAFFIC)
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1_000)
    return page


@pytest.fixture(scope="module")
def screen() -> dict[str, Any]:
    """Of the page that tests share, as options of `open_page`: a file about telephones has its own."""
    return {"viewport": WIDE}


@pytest.fixture(scope="module")
def first_page(browser: Browser, screen: dict[str, Any]) -> Page:
    """The page that tests with the same screen share: a browser reads the app's scripts anew for every context, 2 to 10
    seconds."""
    page = RUNNING.pages.get(str(screen))
    if page is None or page.is_closed():
        page = RUNNING.pages[str(screen)] = new_visitor(browser, screen)
    return page


@pytest.fixture
def new_page(open_page: Callable[..., Page], heard: Heard) -> Iterator[Callable[..., Page]]:
    """new_page(**options) opens a page in a browser of its own, for a second visitor or a phone that is touched."""
    opened = []

    def make(**options: object) -> Page:
        opened.append(open_page(**options))
        _listen(opened[-1], heard)
        return opened[-1]

    yield make
    for page in opened:
        page.context.close()


@pytest.fixture
def page(first_page: Page, screen: dict[str, Any], heard: Heard) -> Iterator[Page]:
    """A visitor who was never here before, at 1440 × 900 unless `screen` says otherwise, in light colours."""
    first_page.context.clear_cookies()
    first_page.context.clear_permissions()
    first_page.set_viewport_size(screen["viewport"])
    first_page.emulate_media(
        media="screen", color_scheme="light", reduced_motion="reduce", forced_colors="none", contrast="no-preference"
    )
    stop = _listen(first_page, heard)
    yield first_page
    stop()
    first_page.unroute_all()
    first_page.evaluate("try { localStorage.clear() } catch {}")  # Streamlit remembers that a sidebar was opened
    first_page.goto("about:blank")


@pytest.fixture
def visit(page: Page, server: Server) -> Callable[[str], Page]:
    """visit(address) opens an address of the app and waits until its script has run."""

    def go(address: str) -> Page:
        page.goto(server.url + address)
        settle(page)
        return page

    return go


def settle(page: Page, quiet: float = 0.3) -> None:
    """Waits until the app is connected, the server has answered and said nothing for `quiet` seconds (a rerun may follow a
    rerun), and the parts of the page that the browser loads when they are first needed are there.

    What a click leads to may begin later than that on a busy machine: ask for it with `until` or Playwright's `expect`.
    """
    page.evaluate("window.calm = 0")
    page.wait_for_function(_CALM, arg=[READY, 1_000 * quiet])


def for_everybody(page: Page) -> None:
    """Light and then dark, axe finds no serious violation of WCAG, whatever opens is open; on a phone nothing reaches beyond the
    screen."""
    closed = page.locator("[data-testid=stMain] details:not([open]) > summary:visible")
    while closed.count():
        closed.evaluate_all("all => all.forEach(summary => summary.click())")
        settle(page)
    assert not page.get_by_text("could not be shown").count()
    accessible(page)
    paper = _paper(page)
    page.emulate_media(color_scheme="dark")
    until(page, lambda: _paper(page) != paper, True)
    settle(page)
    accessible(page, runOnly=["color-contrast"])  # names, roles and order are the same in both
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("e => e.clientWidth") <= 390
    assert main.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def accessible(page: Page, **options: object) -> None:
    """Apart from Streamlit's own menu. options: axe's; without preload it fetches no style sheets for rules that are off."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    options = {"resultTypes": ["violations"], "preload": False, **options}
    found = axe.Axe().run(page, context={"exclude": [["[data-testid=stSidebarNav]"]]}, options=options)
    serious = [_told(one) for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
    assert not serious, "\n".join(serious)


def legible(page: Page) -> None:
    """Texts of figures have 4.5 : 1 at least: axe does not look into SVG. Of figures that write on the page and on bars alone."""
    assert page.evaluate(_PALE) == []


_PALE = """() => {
  const parts = colour => (colour.match(/[\\d.]+/g) ?? []).map(Number)
  const light = colour => {
    const linear = v => (v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
  }
  const paper = parts(getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor)
  const pale = []
  for (const text of document.querySelectorAll(".js-plotly-plot text")) {
    const style = getComputedStyle(text)
    if (!text.textContent.trim() || !text.getBoundingClientRect().width || style.visibility === "hidden") continue
    const box = text.closest(".point, .slice")?.querySelector("path")
    const ground = box && text.matches(".bartext-inside, .slicetext") ? parts(getComputedStyle(box).fill) : paper
    let opacity = Number(style.fillOpacity)
    for (let at = text; at && !at.matches(".js-plotly-plot"); at = at.parentElement) opacity *= getComputedStyle(at).opacity
    const ink = parts(style.fill).slice(0, 3).map((value, at) => value * opacity + ground[at] * (1 - opacity))
    const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b)
    if ((high + 0.05) / (low + 0.05) < 4.5) pale.push(`${text.textContent.slice(0, 30)}: ${style.fill} on ${ground}`)
  }
  return pale.slice(0, 5)
}"""


def _paper(page: Page) -> str:
    return str(page.get_by_test_id("stApp").evaluate("e => getComputedStyle(e).backgroundColor"))


def _told(violation: dict[str, Any]) -> str:
    return f"{violation['id']}: " + "; ".join(node["html"][:300] for node in violation["nodes"][:3])


def until(page: Page, read: Callable[[], T], wanted: T, patience: float = PATIENCE) -> None:
    """Waits until read() gives what is wanted; `patience` in seconds."""
    deadline = time.monotonic() + patience
    while (found := read()) != wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"after {patience:.0f} s still {found!r}, not {wanted!r}, at {page.url}")
        page.wait_for_timeout(50)


def download(link: Locator, folder: Path) -> Path:
    """Clicks on a link that downloads; the file in `folder`, under the name that it came with."""
    with link.page.expect_download() as waiting:
        link.click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def _listen(page: Page, heard: Heard) -> Callable[[], None]:
    """Notes what the page's browser reports, until what is returned is called."""
    listeners: dict[Any, Callable[..., None]] = {
        "console": lambda message: _note_console(heard, message),
        "pageerror": lambda error: heard.errors.append(f"uncaught: {error}"),
        "request": lambda request: _note_request(heard, request.url),
    }
    for event, listener in listeners.items():
        page.on(event, listener)

    def stop() -> None:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)

    return stop


def _note_console(heard: Heard, message: ConsoleMessage) -> None:
    if message.type == "error" and not _HARMLESS.search(message.location.get("url", "")):
        heard.errors.append(f"{message.text} ({message.location.get('url', '')})")


def _note_request(heard: Heard, url: str) -> None:
    if not re.match(r"(data|blob|about):|(https?|wss?)://(localhost|127\.0\.0\.1)[:/]", url):
        heard.foreign.append(url)
