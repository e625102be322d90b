"""Whose things are whose: the browser's cookie and key, and what two people see of each other's; accounts."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.server import keys
from tests.browser.conftest import settle
from tests.browser.oidc import Provider
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

    from tests.clients import Server

NAME = "Anna’s secret choice"


def key_of(context: BrowserContext) -> str:
    (cookie,) = [one for one in context.cookies() if one["name"] == keys.COOKIE]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax"
    return str(cookie["value"])


def save_history(page: Page, name: str) -> None:
    page.get_by_role("button", name="Saved …").click()
    settle(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_role("button", name="Save the history").click()
    dialog.get_by_text(f"Saved the history “{name}”.").wait_for()


def test_two_people_one_of_them_twice_and_a_site_that_plants_a_key(
    server: Server, new_page: Callable[..., Page], console_errors: list[str], foreign_requests: list[str]
) -> None:
    url = server.url
    anna, ben = new_page(), new_page()
    for page in (anna, ben):
        page.goto(f"{url}/?ds=toys")
        settle(page)
    key = key_of(anna.context)
    assert keys.read(key) == key != key_of(ben.context)

    # Anna saves a history and takes a link to it
    heading = anna.get_by_role("heading", level=1).inner_text()
    save_history(anna, NAME)
    dialog = anna.get_by_role("dialog")
    dialog.get_by_role("button", name="More").click()
    anna.get_by_role("menuitem", name="Copy link").click()
    address = dialog.get_by_label("Address").input_value()
    assert address.startswith(f"{url}/?saved=")

    # Ben sees none of it, in his list or by her link
    ben.get_by_role("button", name="Saved …").click()
    ben.get_by_text("Nothing is saved yet").wait_for()
    ben.goto(address)
    settle(ben)
    ben.get_by_text("something saved that was not found").wait_for()
    assert NAME not in ben.content()

    # Anna's own link opens it, in a new tab of hers
    anna.get_by_label("Close").click()
    anna.get_by_role("button", name="Clear").click()
    settle(anna)
    assert anna.get_by_role("heading", level=1).inner_text() != heading
    anna.goto(address)
    settle(anna)
    assert anna.get_by_role("heading", level=1).inner_text() == heading
    assert "saved=" not in anna.url

    # the key is nowhere in her page before she asks for it
    assert key not in anna.content()
    anna.get_by_role("button", name="Access key").click()
    anna.get_by_role("button", name="Show the key").wait_for()
    assert key not in anna.content()
    anna.get_by_role("button", name="Show the key").click()
    anna.get_by_role("dialog").get_by_text(key).wait_for()

    # she brings it to Ben's browser: mistyped it is refused, rightly typed it shows her things
    bens = key_of(ben.context)
    ben.goto(f"{url}/key")
    ben.get_by_label("Key").fill(("y" if key[0] == "z" else "z") + key[1:])
    ben.get_by_role("button", name="Use this key").click()
    assert "not a key" in ben.get_by_role("alert").inner_text()
    ben.get_by_label("Key").fill(key.replace("-", " ").upper())
    ben.get_by_role("button", name="Use this key").click()
    ben.wait_for_url(f"{url}/")
    settle(ben)
    assert key_of(ben.context) == key
    ben.goto(address)
    settle(ben)
    assert ben.locator('[data-testid="stAlert"]').count() == 0

    # and takes it away again
    ben.goto(f"{url}/key")
    ben.get_by_role("button", name="Forget the key").click()
    ben.wait_for_url(f"{url}/")
    assert key_of(ben.context) not in (key, bens)
    ben.goto(address)
    settle(ben)
    ben.get_by_text("something saved that was not found").wait_for()

    assert key not in server.log
    assert [error for error in console_errors if "400" not in error] == []
    assert foreign_requests == []
    another_site_cannot_plant_its_key(ben, url)


def another_site_cannot_plant_its_key(page: Page, url: str) -> None:
    own, planted = key_of(page.context), keys.make()
    page.goto("data:text/html,<title>elsewhere</title>")
    page.set_content(
        f'<form method="post" action="{url}/key"><input name="key" value="{planted}"><button>go</button></form>'
    )
    page.get_by_role("button").click()
    page.get_by_role("alert").wait_for()
    assert "not sent from this server" in page.get_by_role("alert").inner_text()
    assert key_of(page.context) == own


# --- sign-in with accounts: a provider of our own, and everything from there on as in earnest


@pytest.fixture
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.close()


@pytest.mark.long
def test_what_is_saved_belongs_to_the_account(
    own_server: Callable[..., Server],
    provider: Provider,
    tmp_path: Path,
    new_page: Callable[..., Page],
    console_errors: list[str],
) -> None:
    exports = tmp_path / "exports"
    exports.mkdir()
    make_zoo(exports, name="toys")
    settings = tmp_path / "secrets.toml"
    settings.write_text(provider.secrets(secrets.token_urlsafe(32)))
    server = own_server(exports, f"--secrets.files={settings}")
    url: str = server.url

    def sign_in(page: Page, name: str) -> None:
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name=name).click()
        page.wait_for_url(f"{url}/")
        settle(page)
        page.get_by_text(f"Signed in as {name}").wait_for()

    def saved(page: Page) -> str:
        page.get_by_role("button", name="Saved …").click()
        settle(page)
        words = page.get_by_role("dialog").inner_text()
        page.get_by_label("Close").click()
        return words

    office = new_page()
    office.goto(url)
    settle(office)
    # the embedded datasets can be looked at without signing in; nothing can be saved, and no key is given
    assert office.get_by_role("heading", level=1).is_visible()
    assert office.get_by_role("button", name="Access key").count() == 0
    assert [cookie for cookie in office.context.cookies() if cookie["name"] == keys.COOKIE] == []
    assert "Sign in to save" in saved(office)

    # who cancels there, and whom the provider does not know after all, read why they are nobody
    for way, words in (("Cancel", "it was cancelled"), ("Nobody", "it failed between this server and the provider")):
        office.get_by_role("button", name="Sign in").click()
        office.get_by_role("link", name=way).click()
        office.get_by_text(f"You are not signed in: {words}").wait_for()
        settle(office)
        assert office.url == f"{url}/"

    sign_in(office, "Anna")
    save_history(office, "Annas own")
    office.get_by_label("Close").click()

    # at home, another browser: the same account has it, another one does not
    at_home = new_page()
    at_home.goto(url)
    settle(at_home)
    sign_in(at_home, "Ben")
    assert "Nothing is saved yet" in saved(at_home)
    other_tab = at_home.context.new_page()
    other_tab.goto(url)
    other_tab.get_by_text("Signed in as Ben").wait_for()
    at_home.get_by_role("button", name="Sign out").click()
    for tab in (at_home, other_tab):
        tab.get_by_role("button", name="Sign in").wait_for()
    settle(at_home)
    assert "Sign in to save" in saved(at_home)
    sign_in(at_home, "Anna")
    assert "Annas own" in saved(at_home)

    # a cookie that was made up is nobody's
    at_home.context.add_cookies([{"name": "_streamlit_user", "value": "made-up", "url": url}])
    at_home.goto(url)
    settle(at_home)
    at_home.get_by_role("button", name="Sign in").wait_for()
    assert console_errors == []
