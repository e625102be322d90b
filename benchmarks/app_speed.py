"""The app as a visitor meets it, in a real browser, and under 25 visitors at once.

    python -m benchmarks.app_speed [--exports exports] [--adds 30] [--sessions 25]

Cold start: from the command to the first lists on screen, in a browser that was already open. Warm: the same page for a new
visitor. Adding: from the click on a recommendation's + to the next lists on screen; once more with a generator's beam drawn
below. Sessions: as many visitors, each on a connection of its own as a browser opens it, build different histories at the same
time; memory is the server's resident set before, with all of them there, after they left, and with as many new ones (what was
given back is not taken again).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from engine.doctor import find_chromium
from engine.runtime import Zoo

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
LEFT_AFTER = 3  # seconds until a visitor who left is forgotten; the app's own setting is longer
LISTS = ".models ol"


@contextmanager
def server(exports: Path, kept: Path | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """kept: the app's SEQSCOPE_HOME, where that is to be looked at afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app/serve.py",
        f"--server.port={port}",
        "--server.address=127.0.0.1",
    ]
    words += [f"--server.disconnectedSessionTTL={LEFT_AFTER}"]
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"SEQSCOPE_EXPORTS": str(exports.resolve()), "SEQSCOPE_HOME": str(kept or home)}
        process = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.terminate()
            process.wait(20)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
            return
        except OSError:
            if process.poll() is not None:
                sys.exit("the app did not start")
            time.sleep(0.05)
    sys.exit("the app did not answer within 30 s")


def resident(process: subprocess.Popen[bytes]) -> float:
    """MB of the server's resident set."""
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found.group(1)) / 1e3 if found else float("nan")


async def visitor(url: str, queries: list[str], spent: list[float], errors: list[str], here: asyncio.Barrier) -> None:
    """One visitor: a run per query string, all visitors together; seconds of each run go to `spent`."""
    address = url.replace("http", "ws") + "/_stcore/stream"
    async with websockets.connect(address, subprotocols=["streamlit"], max_size=None, origin=url) as connection:  # type: ignore[list-item,arg-type]
        for query in queries:
            await here.wait()
            message = BackMsg()
            message.rerun_script.query_string = query
            began = time.perf_counter()
            await connection.send(message.SerializeToString())
            while True:
                data = await asyncio.wait_for(connection.recv(), 60)
                answer = ForwardMsg()
                answer.ParseFromString(data if isinstance(data, bytes) else data.encode())
                kind = answer.WhichOneof("type")
                if kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
                    errors.append(answer.delta.new_element.exception.message)
                if kind == "script_finished":
                    break
            spent.append(time.perf_counter() - began)
        await here.wait()


async def crowd(
    url: str, sessions: int, queries: list[list[str]], measure: list[float], process: subprocess.Popen[bytes]
) -> tuple[list[float], list[str]]:
    spent: list[float] = []
    errors: list[str] = []
    here = asyncio.Barrier(sessions + 1)

    async def watch() -> None:
        for _ in queries[0]:
            await here.wait()
        # the last wait lets everybody leave; memory is read while all are still there
        while len(spent) < sessions * len(queries[0]) and not errors:
            await asyncio.sleep(0.05)
        measure.append(resident(process))
        await here.wait()

    await asyncio.gather(watch(), *(visitor(url, own, spent, errors, here) for own in queries))
    return spent, errors


def histories(exports: Path, sessions: int, rounds: int) -> list[list[str]]:
    """Query strings: visitor → round → a history of its own, one item longer each time."""
    zoo = Zoo.open(Zoo.list(exports)[0])
    rng = np.random.default_rng(0)
    found = []
    for _ in range(sessions):
        items = [zoo.item_ids[i] for i in rng.integers(0, len(zoo), 5 + rounds)]
        own = [
            f"v=1&ds={zoo.path.name}&h={'~'.join(quote(item, safe='') for item in items[: 5 + n])}"
            for n in range(rounds)
        ]
        found.append(own)
    return found


def first_lists(page: Page, url: str) -> float:
    began = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(LISTS).first.wait_for(timeout=60_000)
    return time.perf_counter() - began


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
        with server(exports) as (url, process):
            wait_for(url, process)
            first_lists(page, url)
            print(f"cold start to the first lists on screen: {time.perf_counter() - began:.2f} s (at most 8)")
            warm = []
            for _ in range(5):
                context = browser.new_context(viewport={"width": 1440, "height": 900})
                warm.append(first_lists(context.new_page(), url))
                context.close()
            print(
                f"first lists for a new visitor, warm: {np.median(warm):.2f} s, worst of 5 {max(warm):.2f} s (at most 3)"
            )
            tell("adding an item to new lists on screen", [add(page) for _ in range(adds)])
            page.context.close()
            zoo = Zoo.open(Zoo.list(exports)[0])
            writer = next((name for name, bundle in zoo.bundles.items() if bundle.manifest.generator), None)
            if writer is not None:
                page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
                first_lists(page, f"{url}/?v=1&ds={quote(zoo.path.name)}&beam={writer}")
                page.locator(".st-key-compare_beam_tree .main-svg").first.wait_for(timeout=60_000)
                tell(f"the same with the beam of {writer} drawn", [add(page) for _ in range(adds)])
            browser.close()


def tell(what: str, spent: list[float]) -> None:
    p50, p95 = np.percentile(spent, [50, 95]) * 1e3
    print(f"{what}: p50 {p50:.0f} ms, p95 {p95:.0f} ms over {len(spent)} (at most 700)")


def at_once(exports: Path, sessions: int, rounds: int) -> None:
    with server(exports) as (url, process):
        wait_for(url, process)
        queries = histories(exports, sessions + 1, rounds)
        # what the first visitor of all loads belongs to nobody
        asyncio.run(crowd(url, 1, queries[-1:], [], process))
        time.sleep(LEFT_AFTER + 2)
        before = resident(process)
        there: list[float] = []
        spent, errors = asyncio.run(crowd(url, sessions, queries[:-1], there, process))
        time.sleep(LEFT_AFTER + 4)
        after = resident(process)
        asyncio.run(crowd(url, sessions, queries[:-1], there, process))
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


def add(page: Page) -> float:
    """Seconds from the click on the first recommendation's + until every list on screen is another one."""
    lists = page.locator(LISTS)
    before = lists.all_inner_texts()
    button = page.locator(".models button.add").first
    button.scroll_into_view_if_needed()
    began = time.perf_counter()
    button.click()
    while True:
        now = lists.all_inner_texts()
        if len(now) == len(before) and all(new != old for new, old in zip(now, before, strict=True)):
            return time.perf_counter() - began
        if time.perf_counter() - began > 30:
            sys.exit("the lists did not change within 30 s of adding an item")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
