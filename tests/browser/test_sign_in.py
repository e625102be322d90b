"""Sign-in with accounts: a provider of our own, and everything from there on as in earnest."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from app import keys
from app.store import snapshot
from app.store.file import Held
from tests.browser.oidc import PEOPLE, Provider
from tests.runtime.bundles import make_zoo

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.close()


def snapshot_of(home: Path) -> Path:
    """A copy of the running server's store."""
    folder = home / "tmp" / "test"
    folder.mkdir()
    return snapshot._asked(folder, 30, Held("held"))


def test_what_is_saved_belongs_to_the_account(
    own_server: Callable[..., object],
    provider: Provider,
    tmp_path: Path,
    new_page: Callable[..., Page],
    settle: Callable[..., None],
    console_errors: list[str],
) -> None:
    exports, home = tmp_path / "exports", tmp_path / "home"
    exports.mkdir()
    make_zoo(exports, name="toys")
    settings = tmp_path / "secrets.toml"
    settings.write_text(provider.secrets(secrets.token_urlsafe(32)))
    server = own_server(exports, f"--secrets.files={settings}", home=home)
    url: str = server.url  # type: ignore[attr-defined]

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
    assert office.get_by_role("button", name="Yours …").count() == 0
    assert [cookie for cookie in office.context.cookies() if cookie["name"] == keys.COOKIE] == []
    assert "Sign in to save" in saved(office)

    sign_in(office, "Anna")
    office.get_by_role("button", name="Saved …").click()
    dialog = office.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Annas own")
    dialog.get_by_role("button", name="Save the history").click()
    dialog.get_by_text("Saved the history").wait_for()
    office.get_by_label("Close").click()
    with duckdb.connect(str(snapshot_of(home))) as tables:  # the account's, and neither name nor number of it is kept
        assert tables.execute("select owner from history").fetchall() == [
            (keys.account(provider.issuer, PEOPLE["Anna"]),)
        ]

    # at home, another browser: the same account has it, another one does not
    at_home = new_page()
    at_home.goto(url)
    settle(at_home)
    sign_in(at_home, "Ben")
    assert "Nothing is saved yet" in saved(at_home)
    at_home.get_by_role("button", name="Sign out").click()
    at_home.get_by_role("button", name="Sign in").wait_for()
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
