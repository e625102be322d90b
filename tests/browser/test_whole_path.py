"""From a shop's messy export to a report that holds: everything that a visitor does, once, while another one sees nothing of it.
What a report is without a network: test_report.py.

In the middle of the training the app and the job's runner are killed; when the app is there again, both go on.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from app.jobs import kinds, spec, status
from app.reports import document
from engine.cli import main
from tests.browser import messy
from tests.browser.conftest import WIDE, download, settle, until
from tests.jobs.conftest import gone
from tests.waiting import wait

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.clients import Server

SLOW = 600_000  # milliseconds: models are trained on the way
LATE = """() => {
  const now = performance.now.bind(performance)
  performance.now = () => now() + (document.querySelector("[data-test-script-state=running]") ? 60_000 : 0)
}"""
"""A run takes a minute longer."""
ITEMS, PEOPLE = 15, 160  # of so few items no map is made
TITLE = "Marie's shop"
TRAINED = ("SASRec",)
COUNTED = tuple(kinds.models()[name].title for name in kinds.baseline_names())
AT_ONCE = ("Recformer (zero-shot)", "Text neighbours", *COUNTED)


@pytest.mark.timeout(1_200)
def test_from_a_messy_export_to_a_verified_report(
    own_server: Callable[..., Server],
    sample_exports: Path,
    new_page: Callable[..., Page],
    tmp_path: Path,
    console_errors: list[str],
    foreign_requests: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))  # where the command looks, too

    def serve() -> Server:
        return own_server(sample_exports, home=tmp_path / "home", script="tests/browser/serve.py")

    server = serve()
    page = new_page(accept_downloads=True)
    page.goto(f"{server.url}/your_data")
    mended(page)
    page.get_by_label("Title", exact=True).fill(TITLE)
    page.keyboard.press("Tab")
    settle(page)
    page.get_by_role("button", name="Use it without the 6 bad rows").click()
    page.get_by_role("heading", name=TITLE).wait_for()
    (folder,) = (tmp_path / "home").glob("owners/*/datasets/*")
    kept(folder)

    # models that need no training answer first; those that read words join them on the page that is open
    messy.enabled(page, "Open in Compare").click(timeout=SLOW)
    for title in (COUNTED[-1], AT_ONCE[0]):
        first = page.locator(".model").filter(has_text=title)
        expect(first.locator(".title").first).to_contain_text(re.compile("|".join(messy.THINGS)), timeout=SLOW)

    menu(page, "Your data")
    page.get_by_text("Train models on the log").click()
    page.get_by_test_id("stButtonGroup").get_by_text("As many as the recipe allows").click()
    estimate = page.get_by_role("button", name="How long would that take?")
    page.evaluate(LATE)
    estimate.press("Enter")
    page.get_by_text("if nothing else runs here").wait_for(timeout=SLOW)
    expect(estimate).to_be_focused()
    messy.enabled(page, "Train 1 model").click(timeout=SLOW)
    page.get_by_text("Step ").first.wait_for()
    page, server = survived(page, server, serve, folder, tmp_path / "home")
    expect(page.get_by_text(f"{len(AT_ONCE) + len(TRAINED)} models answer now")).to_be_visible()
    # the page, too, knows that it is over, and says so:
    expect(page.get_by_role("status").filter(has_text=f"{TITLE}: Ready")).to_be_attached()
    expect(page.get_by_role("button", name=re.compile("^Cancel"))).to_have_count(0)
    settle(page)  # no card moves under the click

    page.get_by_role("button", name="Open in Compare").click()
    taken = looked(page, tmp_path)
    nobody_else_sees(new_page(), server, folder)
    assert not console_errors and not foreign_requests
    assert main(["report", "--verify", str(taken)]) == 0


def survived(page: Page, server: Server, again: Callable[[], Server], folder: Path, home: Path) -> tuple[Page, Server]:
    """The app and the job's runner killed in the middle of the training, which goes on to its end with the app that `again`
    starts, at another port; the page of the same browser there."""
    context = page.context
    page.close()  # nobody looks
    job = wait(lambda: messy.jobs(home).get("train"))
    curve = next(folder / step.run / "curve.json" for step in spec.read(job).steps if step.run)
    wait(lambda: len(entries(curve)) >= 3, SLOW / 1_000)
    server.process.kill()
    server.process.wait()
    runner = status.read(job).pid
    assert runner is not None
    os.kill(runner, signal.SIGKILL)
    wait(lambda: gone(runner))
    before, left = entries(curve), status.read(job)
    assert left.state == "running" and left.words.startswith("Train SASRec")
    assert len(before) < 100 and not (folder / "exports" / "sasrec").exists()

    page, server = context.new_page(), again()
    page.goto(f"{server.url}/your_data")
    page.get_by_role("heading", name=TITLE).wait_for()
    until(page, lambda: done(home), dict.fromkeys(("baselines", "prepare", "train"), "done"), SLOW / 1_000)
    after, end = entries(curve), status.read(job)
    # what was computed since its last checkpoint is computed again, and comes to the same
    assert untimed(after)[: len(before)] == untimed(before) and len(after) > len(before)
    assert [entry["epoch"] for entry in after] == list(range(1, len(after) + 1))  # none twice
    assert end.started == left.started and {part.state for part in end.parts} == {"done"}
    log = (job / "log.txt").read_text("utf-8")
    assert log.count("--- Train SASRec") == 2 and log.count("--- Remove outdated models") == 1
    manifest = (folder / "exports" / "sasrec" / "manifest.json").read_text("utf-8")
    assert str(home) not in manifest and "owners" not in manifest
    return page, server


def nobody_else_sees(ben: Page, server: Server, folder: Path) -> None:
    """His browser has another key."""
    ben.goto(f"{server.url}/your_data")
    settle(ben)
    expect(ben.get_by_role("heading", name="Your data", exact=True)).to_be_visible()
    assert TITLE not in ben.content() and folder.name not in ben.content()
    ben.goto(f"{server.url}/?ds={folder.name}")
    ben.get_by_text(f"There is no dataset “{folder.name}” here").wait_for()
    settle(ben)
    assert messy.name(0) not in ben.content() and TITLE not in ben.content()


def entries(curve: Path) -> list[dict[str, Any]]:
    return list(json.loads(curve.read_text("utf-8"))) if curve.exists() else []


def untimed(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in curve]


def looked(page: Page, folder: Path) -> Path:
    """Compared, with one item taken out of the history; and taken away as a report."""
    titles = {*AT_ONCE, *TRAINED}
    expect(page.locator(".model")).to_have_count(len(titles) - 1)  # six, and the seventh is a click away
    page.locator(".st-key-compare_models").get_by_text("Popularity").click()
    expect(page.locator(".model")).to_have_count(len(titles))
    before = page.locator(".history .title").count()
    page.locator(".history .remove").last.click()
    expect(page.locator(".history .title")).to_have_count(before - 1)

    menu(page, "Report")
    frame = page.frame_locator("iframe").first
    expect(frame.get_by_role("heading", name="What each model recommends")).to_be_visible()
    settle(page)
    taken = download(page.get_by_role("link", name="Download JSON"), folder)
    made = document.load(taken)
    assert {one.title for one in made.models} == titles
    assert made.asked.history is not None and len(made.asked.history) == before - 1
    return taken


def mended(page: Page) -> None:
    """Both files, read otherwise than was guessed, and checked."""
    page.get_by_role("heading", name="Log (optional)").wait_for()
    settle(page)
    messy.put(page, 0, "produits.csv", messy.catalogue(ITEMS))
    page.get_by_role("heading", name="How the catalogue is read").wait_for()
    messy.put(page, 0, "achats.tsv", messy.log(PEOPLE, ITEMS))
    page.get_by_role("heading", name="How the log is read").wait_for()
    settle(page)
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth") <= 390
    page.set_viewport_size(WIDE)
    settle(page)
    messy.choose(page, "Title (optional)", "label")
    messy.choose(page, "Time (optional)", "when")
    page.get_by_text("check this").first.wait_for()
    messy.choose(page, "Times", "12/09/2024 16:30 =")
    page.get_by_role("button", name="Check", exact=True).press("Enter")
    page.get_by_role("heading", name="What was found").wait_for(timeout=SLOW)  # what checks yields to everything else
    expect(page.locator("[class*=st-key-upload_findings] summary")).to_be_focused()
    for words in ("item without an id", "row with too many fields"):
        page.get_by_text(words).first.wait_for()


def kept(folder: Path) -> None:
    """What was used is what the visitor chose."""
    items = pq.read_table(folder / "clean" / "items.parquet").to_pylist()
    assert [row["title"] for row in items] == [messy.name(number) for number in range(ITEMS)]
    log = pq.read_table(folder / "clean" / "log.parquet").to_pylist()
    assert {row["user"] for row in log} == {f"u{number}" for number in range(PEOPLE)}
    first = min(row["time"] for row in log if row["user"] == "u5")
    assert datetime.fromtimestamp(first, UTC) == datetime(2024, 6, 1, 13, tzinfo=UTC)


def menu(page: Page, name: str) -> None:
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
    page.get_by_role("heading", name=name, level=1, exact=True).wait_for()


def done(home: Path) -> dict[str, str]:
    return {kind: status.read(folder).state for kind, folder in messy.jobs(home).items()}
