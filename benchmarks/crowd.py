"""Many visitors at one server: how long they wait, what fails, what memory does, and whether the server still answers.

    python -m benchmarks.crowd [--visitors 8 25 50] [--minutes 10] [--exports exports] [--of CHECKOUT] [--out FILE]

For each number of visitors a server of its own, without a browser: connections as browsers open them.

at once      all on Compare, each with a history of its own, all together, six times over: until the lists are there, and until
             the whole page is
over all     for --minutes each goes to a page drawn at random with a history drawn at random, and looks at it for 2 s on average,
             exponentially distributed; whoever is on Report takes the report as JSON away. Two of them are heavier: one takes the
             PDF and everything as a zip, again and again; one uploads three million rows without an id and has them checked.

Meanwhile the health check is asked five times a second, and the server's resident set is read. --of: another checkout of this
project, to be measured in the same way; downloads are counted where it has links for them.
"""

import argparse
import asyncio
import contextlib
import functools
import gzip
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.WidgetStates_pb2 import WidgetState

from engine.files import write_json
from engine.runtime import Zoo
from engine.training.compute import processor
from tests import clients
from tests.clients import Server, Visitor

PAGES = ("", "catalogue", "attention", "semantic_ids", "graph", "map", "metrics", "about", "your_data", "report")
"""By their addresses; the first is Compare."""
THINK = 2.0
"""Seconds that somebody looks at a page, on average."""
ROUNDS = 6
LEVEL_AFTER = 120.0
"""Seconds after which memory is to have stopped growing."""


@dataclass
class Seen:
    """What one crowd met with."""

    at_once: list[float] = field(default_factory=list)
    """Seconds of runs of Compare, all visitors together."""
    lists: list[float] = field(default_factory=list)
    """Seconds until the lists of those runs had arrived."""
    pages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Page → seconds of its runs."""
    errors: list[str] = field(default_factory=list)
    downloads: int = 0
    failed: list[str] = field(default_factory=list)
    """Downloads that did not come, or not whole."""
    bombs: list[float] = field(default_factory=list)
    """Seconds until a bomb's check had ended."""
    silence: float = 0.0
    """The longest time in which the health check did not answer, seconds."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """(seconds since the beginning, MB of the resident set)"""


@functools.cache
def bomb() -> bytes:
    """Three million items without an id, as gzip: each row has a finding."""
    return gzip.compress(b"item_id,title\n" + b"".join(b",%x\n" % row for row in range(3_000_000)))


class Histories:
    """Query strings with histories drawn at random."""

    def __init__(self, exports: Path, seed: int) -> None:
        zoo = Zoo.open(Zoo.list(exports)[0])
        self.name, self.items, self.rng = zoo.path.name, list(zoo.item_ids), np.random.default_rng(seed)

    def draw(self) -> str:
        return self.query(self.rng.choice(self.items, self.rng.integers(5, 11), replace=False))

    def query(self, items: Iterable[str]) -> str:
        return f"v=1&ds={quote(self.name)}&h={'~'.join(quote(item, safe='') for item in items)}"


async def crowd(server: Server, visitors: int, seconds: float, histories: Histories) -> Seen:
    seen = Seen()
    watch = [asyncio.create_task(_health(server.url, seen)), asyncio.create_task(_memory(server, seen))]
    here = asyncio.Barrier(visitors)
    rngs = histories.rng.spawn(visitors)

    async def one(visitor: Visitor, which: int) -> None:
        for _ in range(ROUNDS):
            await here.wait()
            seen.at_once.append(await visitor.run(histories.draw()))
            seen.lists.append(visitor.waited("compare_lists"))
        await here.wait()
        end = time.monotonic() + seconds
        rng, act = rngs[which], {0: _heavy, 1: _bomb}.get(which, _browse)
        while time.monotonic() < end:
            await act(visitor, seen, histories, rng)
            await asyncio.sleep(rng.exponential(THINK))
        seen.errors += visitor.errors

    await clients.crowd(server.url, visitors, one)
    for task in watch:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    return seen


async def _first(url: str, histories: Histories) -> None:
    """Every page once: what the first visitor of all loads belongs to nobody."""
    async with clients.visitor(url) as visitor:
        for page in PAGES:
            await visitor.run(histories.draw(), page)


async def _browse(visitor: Visitor, seen: Seen, histories: Histories, rng: np.random.Generator) -> None:
    page = str(rng.choice(PAGES))
    seen.pages[page].append(await visitor.run(histories.draw(), page))
    if page == "report":
        await _download(visitor, seen, "report_json")


async def _heavy(visitor: Visitor, seen: Seen, histories: Histories, rng: np.random.Generator) -> None:
    seen.pages["report"].append(await visitor.run(histories.draw(), "report"))
    for form in ("report_pdf", "report_zip"):
        await _download(visitor, seen, form)


async def _download(visitor: Visitor, seen: Seen, key: str) -> None:
    try:
        address = visitor.link(key)
    except (AttributeError, ValueError):  # a checkout of before there were links
        return
    seen.downloads += 1
    try:
        answer = await visitor.http.get(address)
        whole = len(answer.content) == int(answer.headers.get("content-length", len(answer.content)))
        if answer.status_code != 200 or not answer.content or not whole:
            seen.failed.append(f"{key}: {answer.status_code}, {len(answer.content)} bytes")
    except httpx.HTTPError as error:
        seen.failed.append(f"{key}: {error!r}")


async def _bomb(visitor: Visitor, seen: Seen, histories: Histories, rng: np.random.Generator) -> None:
    """Uploads it as a browser does, and has it checked."""
    name = f"items{rng.integers(1 << 30)}.csv.gz"
    seen.pages["your_data"].append(await visitor.run(histories.draw(), "your_data"))
    await _press(visitor, "Start over")
    answer = await visitor.http.put(
        f"/_stcore/upload_file/{visitor.session}/{name}",
        files={"file": (name, bomb())},
        headers={"X-Xsrftoken": visitor.http.cookies.get("_streamlit_xsrf", "").strip('"')},
    )
    if answer.status_code >= 400:  # refused at the door: as good an end as any
        return
    file = UploadedFileInfo(file_id=name, name=name, size=len(bomb()))
    state = FileUploaderState(uploaded_file_info=[file])
    began = time.monotonic()
    place = next(widget.id for widget in visitor.shown("file_uploader") if widget.label == "Catalogue file")
    await visitor.again(WidgetState(id=place, file_uploader_state_value=state))
    await _press(visitor, "Check")
    seen.bombs.append(time.monotonic() - began)
    visitor.errors.clear()  # that the file cannot be used is said in an error box


async def _press(visitor: Visitor, label: str) -> None:
    """The button with that label, where there is one."""
    for button in visitor.shown("button"):
        if button.label == label and not button.disabled:
            await visitor.again(WidgetState(id=button.id, trigger_value=True))
            return


async def _health(url: str, seen: Seen) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=clients.PATIENCE) as http:
        while True:
            began = time.monotonic()
            try:
                (await http.get("/_stcore/health")).raise_for_status()
            except httpx.HTTPError as error:
                seen.errors.append(f"health check: {error!r}")
            seen.silence = max(seen.silence, time.monotonic() - began)
            await asyncio.sleep(0.2)


async def _memory(server: Server, seen: Seen) -> None:
    began = time.monotonic()
    while True:
        seen.memory.append((time.monotonic() - began, server.resident))
        await asyncio.sleep(1)


def summary(seen: Seen, visitors: int) -> dict[str, Any]:
    """What is printed and kept."""

    def spread(seconds: list[float]) -> dict[str, float]:
        return {"runs": len(seconds), "median": float(np.median(seconds)), "p95": float(np.percentile(seconds, 95))}

    every = [second for seconds in seen.pages.values() for second in seconds]
    end = seen.memory[-1][0]
    settled = [mb for when, mb in seen.memory if when >= min(LEVEL_AFTER, end / 2)]
    return {
        "visitors": visitors,
        "compare_at_once": spread(seen.at_once),
        "lists_at_once": spread(seen.lists),
        "all_pages": spread(every),
        "pages": {page or "compare": spread(seconds) for page, seconds in sorted(seen.pages.items())},
        "errors": len(seen.errors),
        "first_errors": seen.errors[:3],
        "downloads": seen.downloads,
        "failed_downloads": len(seen.failed),
        "first_failed": seen.failed[:3],
        "bombs": len(seen.bombs),
        "longest_silence": seen.silence,
        "memory": {"begin": seen.memory[0][1], "after_2_minutes": settled[0], "end": settled[-1], "most": max(settled)},
    }


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Markdown, a column for each number of visitors."""
    yield f"| | {' | '.join(str(row['visitors']) for row in rows)} |"
    yield f"|---|{'---|' * len(rows)}"

    def line(name: str, cells: list[str]) -> str:
        return f"| {name} | {' | '.join(cells)} |"

    def seconds(found: dict[str, float] | None) -> str:
        return "" if found is None else f"{found['median']:.2f} / {found['p95']:.2f}"

    yield line("Compare's lists, all at once", [seconds(row["lists_at_once"]) for row in rows])
    yield line("Compare, all at once", [seconds(row["compare_at_once"]) for row in rows])
    yield line("all pages", [seconds(row["all_pages"]) for row in rows])
    for page in rows[0]["pages"]:
        yield line(page.replace("_", " "), [seconds(row["pages"].get(page)) for row in rows])
    yield line("runs", [f"{row['all_pages']['runs']:,}" for row in rows])
    yield line("errors", [f"{row['errors']:,}" for row in rows])
    yield line("downloads, failed", [f"{row['downloads']:,}, {row['failed_downloads']}" for row in rows])
    yield line("bombs checked", [f"{row['bombs']:,}" for row in rows])
    yield line("longest silence of the health check, s", [f"{row['longest_silence']:.2f}" for row in rows])
    parts = ("begin", "after_2_minutes", "end")
    memory = [" · ".join(f"{row['memory'][part]:,.0f}" for part in parts) for row in rows]
    yield line("memory at first, after 2 min, at the end, MB", memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, nargs="+", default=[8, 25, 50])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--exports", type=Path, default=clients.ROOT / "exports")
    parser.add_argument("--of", type=Path, default=clients.ROOT, help="another checkout of this project")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where the figures are kept as JSON")
    args = parser.parse_args()
    if min(args.visitors) < 3:
        sys.exit("crowd: at least 3 visitors: one takes files away, one uploads bombs")
    rows = []
    for visitors in args.visitors:
        histories = Histories(args.exports, args.seed)
        with (
            tempfile.TemporaryDirectory() as home,
            clients.running(args.exports, Path(home), root=args.of.resolve()) as server,
        ):
            asyncio.run(_first(server.url, histories))
            rows.append(summary(asyncio.run(crowd(server, visitors, 60 * args.minutes, histories)), visitors))
        print(json.dumps(rows[-1]), flush=True)
    print(f"{processor()}: median / 95th percentile, seconds")
    print("\n".join(table(rows)))
    if args.out:
        write_json(args.out, rows)


if __name__ == "__main__":
    main()
