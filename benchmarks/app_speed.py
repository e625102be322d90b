"""The app as a visitor meets it, in a real browser, and under 25 visitors at once.

    python -m benchmarks.app_speed [--exports exports] [--adds 30] [--sessions 25]

Cold start: from the command to the first lists on screen, in a browser that was already open and asks for the page as soon as
it is answered. Warm: the same page for a new visitor, from the request to the frame that shows the lists, as the page itself
takes the time; beside it, taking turns, a page of Streamlit's with one line, which is what any page takes here. Adding: from
the click on a recommendation's + to the next lists on screen; beside it, taking turns, from a button of that page to its next
line; once more with a generator's beam drawn below. Map: frames while the map is dragged and zoomed, also one of 50,000 points,
and the processor time of the page's own thread per step of it (without a GPU, the points are drawn by the processor, in another
thread). Sessions: as many visitors,
each on a connection of its own as a browser opens it, build different histories at the same time; memory is the server's
resident set before, with all of them there, after they left, and with as many new ones (what was given back is not taken
again).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from benchmarks.crowd import Histories
from engine.commands.doctor import find_chromium
from engine.runtime import Zoo
from tests import clients
from tests.browser import datasets
from tests.clients import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
MANY = 50_000  # points of a second map
LEFT_AFTER = 3  # seconds until a visitor who left is forgotten; the app's own setting is longer
LISTS = ".models ol"
ONE_LINE = """
import streamlit as st
lines = st.session_state.lines = st.session_state.get("lines", 0) + 1
st.html(f"<div class=models><ol><li>a line, drawn {lines} times</li></ol></div>")
st.button("Again")
"""
_TIME_THE_LISTS = """
const there = root => root.querySelector(".models ol")
  || [...root.querySelectorAll("*")].some(element => element.shadowRoot && there(element.shadowRoot))
const look = () => {
  if (document.body && there(document)) window.firstLists = performance.now()
  else requestAnimationFrame(look)
}
requestAnimationFrame(look)
"""
_COUNT_FRAMES = """
window.frames_ = []
let last = performance.now()
const frame = now => {
  frames_.push(now - last)
  last = now
  requestAnimationFrame(frame)
}
requestAnimationFrame(frame)
"""
_TIME_A_CLICK = """list => {
  const host = list.getRootNode().host
  const key = host?.closest(".stElementContainer").className.match(/st-key-\\S+/)[0]
  const drawn = () => // a component may be made anew
    host ? [...document.querySelectorAll(`.${key} *`)].find(element => element.shadowRoot)?.shadowRoot : document
  const texts = () => [...(drawn()?.querySelectorAll(".models ol") ?? [])].map(list => list.textContent)
  const before = texts()
  window.shown = undefined
  const begin = click => {
    const look = () => {
      const now = texts()
      if (now.length === before.length && now.every((text, i) => text !== before[i]))
        return void requestAnimationFrame(() => (window.shown = performance.now() - click.timeStamp))
      requestAnimationFrame(look)
    }
    look()
  }
  addEventListener("click", begin, {capture: true, once: true})
}"""


async def crowd(server: Server, queries: list[list[str]], measure: list[float]) -> tuple[list[float], list[str]]:
    """A visitor per list of query strings, who takes one run for each, all visitors together. Returns seconds of all runs and
    errors; `measure` gets the server's MB while all are still there."""
    spent: list[float] = []
    errors: list[str] = []
    here = asyncio.Barrier(len(queries) + 1)

    async def one(visitor: clients.Visitor, which: int) -> None:
        for query in queries[which]:
            await here.wait()
            spent.append(await visitor.run(query))
        errors.extend(visitor.errors)
        await here.wait()
        await here.wait()

    async def watch() -> None:
        for _ in queries[0]:
            await here.wait()
        await here.wait()
        measure.append(server.resident)
        await here.wait()

    await asyncio.gather(watch(), clients.crowd(server.url, len(queries), one))
    return spent, errors


def histories(exports: Path, sessions: int, rounds: int) -> list[list[str]]:
    """Query strings: visitor → round → a history of its own, one item longer each time."""
    drawn = Histories(exports, 0)
    longest = [drawn.rng.choice(drawn.items, 5 + rounds) for _ in range(sessions)]
    return [[drawn.query(items[: 5 + n]) for n in range(rounds)] for items in longest]


def first_lists(page: Page, url: str) -> float:
    """Seconds from the request of the page to the frame that shows its lists."""
    page.add_init_script(_TIME_THE_LISTS)
    page.goto(url, wait_until="commit")
    page.locator(LISTS).first.wait_for(timeout=60_000)
    return float(page.evaluate("window.firstLists")) / 1e3


def of_new_visitors(browser: Browser, *urls: str, visits: int = 10) -> list[list[float]]:
    """Seconds to the first lists: address → visit, taking turns."""
    seconds: list[list[float]] = [[] for _ in urls]
    for _ in range(visits):
        for times, url in zip(seconds, urls, strict=True):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            times.append(first_lists(context.new_page(), url))
            context.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exports", type=Path, default=ROOT / "exports")
    parser.add_argument("--adds", type=int, default=30)
    parser.add_argument("--sessions", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    in_a_browser(args.exports, args.adds)
    at_once(args.exports, args.sessions, args.rounds)


def in_a_browser(exports: Path, adds: int) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        began = time.perf_counter()
        with clients.running(exports, wait=False) as server:
            url = server.url
            if not clients.answers(server, path=""):
                sys.exit("the app did not start")
            first_lists(page, url)
            print(f"cold start to the first lists on screen: {time.perf_counter() - began:.2f} s (at most 4)")
            with tempfile.TemporaryDirectory() as folder:
                script = Path(folder, "one_line.py")
                script.write_text(ONE_LINE, "utf-8")
                bare = clients.start(exports, Path(folder), Path(folder, "log.txt"), script=str(script))
                try:
                    of_new_visitors(browser, bare.url, visits=1)
                    warm, line = of_new_visitors(browser, url, bare.url)
                    other = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
                    first_lists(other, bare.url)
                    turns = [(add(page), add(other, "button:has-text('Again')")) for _ in range(adds)]
                    other.context.close()
                finally:
                    clients.stop(bare)
            print(
                f"first lists for a new visitor, warm: {np.median(warm):.2f} s, worst of {len(warm)} {max(warm):.2f} s "
                f"(at most 1.4); a page of Streamlit's with one line: {np.median(line):.2f} s"
            )
            tell("adding an item to new lists on screen", [lists for lists, _ in turns])
            print(
                f"  a button of Streamlit's to the next line: p50 {1e3 * np.median([line for _, line in turns]):.0f} ms"
            )
            page.context.close()
            zoo = Zoo.open(Zoo.list(exports)[0])
            writer = next((name for name, bundle in zoo.bundles.items() if bundle.manifest.generator), None)
            if writer is not None:
                page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
                first_lists(page, f"{url}/?v=1&ds={quote(zoo.path.name)}&beam={writer}")
                page.locator(".st-key-compare_beam_tree .main-svg").first.wait_for(timeout=60_000)
                tell(f"the same with the beam of {writer} drawn", [add(page) for _ in range(adds)])
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            pan(page, f"{url}/map?v=1&ds={quote(zoo.path.name)}")
        with tempfile.TemporaryDirectory() as folder:
            datasets.many(Path(folder, "exports", "many"), MANY)
            with clients.running(Path(folder, "exports")) as server:
                print(f"with {MANY:,} points:")
                pan(page, f"{server.url}/map?ds=many")
        browser.close()


def pan(page: Page, address: str, steps: int = 40) -> None:
    page.goto(address)
    page.locator(".js-plotly-plot canvas").first.wait_for(state="attached", timeout=60_000)
    page.wait_for_timeout(4_000)  # the names, and the last messages
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        return next(
            m["value"] for m in browser.send("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration"
        )

    page.evaluate(_COUNT_FRAMES)
    began = worked()
    page.mouse.move(600, 450)
    page.mouse.down()
    for step in range(steps):
        page.mouse.move(600 + 6 * step, 450 + 3 * step)
        page.wait_for_timeout(16)
    page.mouse.up()
    spent = worked() - began
    p50, p95 = np.percentile(page.evaluate("frames_"), [50, 95])
    print(
        f"map dragged: frames p50 {p50:.0f} ms, p95 {p95:.0f} ms; the page's thread {1e3 * spent / steps:.0f} ms a step"
    )
    page.evaluate("frames_.length = 0")
    for step in range(12):
        page.mouse.wheel(0, -120 if step < 6 else 120)
        page.wait_for_timeout(60)
    p50, p95 = np.percentile(page.evaluate("frames_"), [50, 95])
    print(f"  zoomed by the wheel: frames p50 {p50:.0f} ms, p95 {p95:.0f} ms (at most 50)")


def tell(what: str, spent: list[float]) -> None:
    p50, p95 = np.percentile(spent, [50, 95]) * 1e3
    print(f"{what}: p50 {p50:.0f} ms, p95 {p95:.0f} ms over {len(spent)} (at most 150)")


def at_once(exports: Path, sessions: int, rounds: int) -> None:
    with clients.running(exports, None, f"--server.disconnectedSessionTTL={LEFT_AFTER}") as server:
        queries = histories(exports, sessions + 1, rounds)
        # what the first visitor of all loads belongs to nobody
        asyncio.run(crowd(server, queries[-1:], []))
        time.sleep(LEFT_AFTER + 2)
        before = server.resident
        there: list[float] = []
        spent, errors = asyncio.run(crowd(server, queries[:-1], there))
        time.sleep(LEFT_AFTER + 4)
        after = server.resident
        asyncio.run(crowd(server, queries[:-1], there))
    p50, p95 = np.percentile(spent, [50, 95])
    print(
        f"{sessions} sessions at once: rerun p50 {p50:.2f} s, p95 {p95:.2f} s (at most 2), {len(errors)} errors (none)"
    )
    for error in errors[:3]:
        print(f"  {error}")
    print(
        f"memory: {before:.0f} MB before, {there[0]:.0f} with them, "
        f"{after:.0f} after they left, {there[1]:.0f} with as many new ones:"
    )
    growth, again = (there[0] - before) / sessions, (there[1] - there[0]) / sessions
    print(f"  {growth:.2f} MB a session (at most 4), {again:.2f} MB a session the second time (given back)")


def add(page: Page, button: str = ".models button.add") -> float:
    """Seconds from the click on the first recommendation's + until the frame that shows every list as another one, as the page
    itself takes the time: what drives the browser waits for two frames before it clicks, and takes longer to look."""
    page.bring_to_front()
    page.wait_for_timeout(500)  # what the one before leaves to do
    page.locator(button).first.scroll_into_view_if_needed()
    page.locator(LISTS).first.evaluate(_TIME_A_CLICK)
    page.locator(button).first.click()
    page.wait_for_function("window.shown !== undefined", timeout=30_000)
    return float(page.evaluate("window.shown")) / 1e3


if __name__ == "__main__":
    main()
