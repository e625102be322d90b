"""The app and a training are killed in the middle; when the app is there again, both go on, and the model appears."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from app.jobs import spec, status
from tests.browser import messy
from tests.browser.conftest import until
from tests.jobs.conftest import gone
from tests.waiting import wait

if TYPE_CHECKING:
    from playwright.sync_api import Page

Settle = Callable[..., None]
SLOW = 300_000  # milliseconds


@pytest.mark.timeout(900)
def test_a_training_goes_on_after_the_app_and_its_runner_were_killed(
    own_server: Callable[..., Any],
    sample_exports: Path,
    new_page: Callable[..., Page],
    settle: Settle,
    tmp_path: Path,
    console_errors: list[str],
) -> None:
    home = tmp_path / "home"
    server = own_server(sample_exports, home=home)
    page = new_page()
    page.goto(f"{server.url}/your_data")
    folder = brought(page, settle, home)
    trained(page)
    job = wait(lambda: messy.jobs(home).get("train"))
    curve = next(folder / step.run / "curve.json" for step in spec.read(job).steps if step.run)
    wait(lambda: len(entries(curve)) >= 3, SLOW / 1_000)
    context = page.context
    page.close()  # nobody looks

    server.process.kill()
    server.process.wait()
    runner = status.read(job).pid
    assert runner is not None
    os.kill(runner, signal.SIGKILL)
    wait(lambda: gone(runner))
    before, left = entries(curve), status.read(job)
    assert left.state == "running" and left.words.startswith("Train SASRec")
    assert len(before) < 100 and not (folder / "exports" / "sasrec").exists()

    server = own_server(sample_exports, home=home)  # at another port, for the same browser
    page = context.new_page()
    page.goto(f"{server.url}/your_data")
    page.get_by_role("heading", name="My shop").wait_for()
    until(page, lambda: status.read(job).state, "done", SLOW / 1_000)
    expect(page.get_by_text("Trained on your log.")).to_have_count(1)
    page.get_by_role("button", name="Open in Compare").click()
    expect(page.locator(".model").filter(has_text="SASRec").locator(".title").first).to_be_visible()
    assert not console_errors

    after, end = entries(curve), status.read(job)
    assert after[: len(before)] == before and len(after) > len(before)
    assert [entry["epoch"] for entry in after] == list(range(1, len(after) + 1))  # none twice
    assert end.started == left.started and {part.state for part in end.parts} == {"done"}
    log = (job / "log.txt").read_text("utf-8")
    assert log.count("--- Train SASRec") == 2 and log.count("--- Make room") == 1


def entries(curve: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(curve.read_text("utf-8")) if curve.exists() else []
    return found


def brought(page: Page, settle: Settle, home: Path) -> Path:
    """A dataset whose log can be learned from, and nothing else is being made of it."""
    page.get_by_role("heading", name="Log (optional)").wait_for()
    settle(page)
    messy.put(page, 0, "shop.csv", messy.catalogue(15))
    page.get_by_role("heading", name="How the catalogue is read").wait_for()
    messy.put(page, 0, "orders.tsv", messy.log(300, 15))
    page.get_by_role("heading", name="How the log is read").wait_for()
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_label("Title", exact=True).fill("My shop")
    page.keyboard.press("Tab")
    settle(page)
    page.get_by_role("button", name="Use it without").click()
    page.get_by_role("heading", name="My shop").wait_for()
    (folder,) = home.glob("owners/*/datasets/*")
    wait((folder / "data" / "dataset.json").exists)
    messy.enabled(page, "Cancel").click()
    page.get_by_text("was cancelled").wait_for()
    return folder


def trained(page: Page) -> None:
    page.get_by_text("Train models on the log").click()
    for floor in ("Markov chain", "Popularity"):  # not these
        page.get_by_test_id("stButtonGroup").get_by_text(floor, exact=True).click()
    page.get_by_test_id("stButtonGroup").get_by_text("All that the recipe allows").click()
    page.get_by_role("button", name="How long would that take?").click()
    messy.enabled(page, "Train 1 model").click(timeout=SLOW)
    page.get_by_text("Step ").first.wait_for()
