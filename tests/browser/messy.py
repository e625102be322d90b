"""A messy catalogue and log, as shops export them, and what a visitor does with them on the page Your data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from app.jobs import spec
from tests.browser.conftest import settle

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ADJECTIVES = ("Copper", "Linen", "Cedar", "Café")
THINGS = ("kettle", "tray", "lamp", "brush", "basket", "clock")
USES = ("kitchen", "desk", "bath")


def name(number: int) -> str:
    return f"{ADJECTIVES[number % len(ADJECTIVES)]} {THINGS[number % len(THINGS)]} {number}"


def catalogue(items: int) -> bytes:
    """Windows-1252, semicolons; what is called title is no title; two of the rows cannot be used."""
    rows = [f"A{n};{n % 4};{name(n)};{USES[n % len(USES)]};{n},50" for n in range(items)]
    wrong = [";1;without an id;desk;1,00", "A0;0;another thing of the same id;desk;2,00"]
    return "\r\n".join(["sku;title;label;category;price", *rows, *wrong]).encode("cp1252")


def log(people: int, items: int) -> bytes:
    """Everybody goes round the catalogue; days that may be months; four of the rows cannot be used."""
    rows = [
        f"u{u}\tA{(u * 5 + at) % items}\t{1 + at:02}/{1 + u % 12:02}/2024 {8 + u % 12:02}:{at:02}"
        for u in range(people)
        for at in range(6 + u % 5)
    ]
    wrong = ["\tA1\t02/02/2024 10:00", "u0\tA2\tsome day", "u1\t\t02/02/2024 10:00", "u2\tA1\t02/02/2024 10:00\tmore"]
    return "\n".join(["customer\tproduct\twhen", *rows, *wrong]).encode()


def put(page: Page, place: int, name: str, content: bytes) -> None:
    page.locator("input[type=file]").nth(place).set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    page.get_by_text(name).first.wait_for()


def choose(page: Page, label: str, option: str) -> None:
    """Takes the first option that begins like that."""
    box = page.get_by_role("combobox", name=label, exact=True)
    box.scroll_into_view_if_needed()
    settle(page)  # scrolling would close the list
    box.click()
    page.get_by_role("option").filter(has_text=re.compile(f"^{re.escape(option)}")).first.click()
    settle(page)
    expect(box).to_have_value(re.compile(f"^{re.escape(option)}"))


def enabled(page: Page, button: str) -> Locator:
    return page.get_by_role("button", name=button, exact=True).and_(page.locator(":enabled"))


def jobs(home: Path) -> dict[str, Path]:
    """The folder of the one job of each kind."""
    found = [path.parent for path in home.glob("jobs/[a-z0-9]*/job.json")]
    return {spec.read(folder).kind: folder for folder in found}
