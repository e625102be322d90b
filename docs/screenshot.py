"""The README's pictures, taken of the running app: `make screenshot`."""

from __future__ import annotations

from playwright.sync_api import sync_playwright

from engine.doctor import find_chromium
from tests import clients
from tests.clients import ROOT

READY = '[data-testid="stApp"][data-test-connection-state="CONNECTED"][data-test-script-state="notRunning"]'
SHOTS = [
    ("compare-light.png", "/", ".models ol", "light", (1440, 1000)),
    ("compare-dark.png", "/", ".models ol", "dark", (1440, 1000)),
    ("graph-light.png", "/graph", ".js-plotly-plot .main-svg", "light", (1440, 1000)),
    ("map-light.png", "/map", ".js-plotly-plot .main-svg", "light", (1440, 1000)),
]


def main() -> None:
    with clients.running(ROOT / "exports") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        for name, path, shown, scheme, (width, height) in SHOTS:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            page.goto(server.url + path)
            page.locator(READY).wait_for(timeout=60_000)
            # parts of the page are loaded when they are first needed, and figures draw last of all
            page.locator(shown).first.wait_for(timeout=60_000)
            page.locator('[data-testid="stSkeleton"]').first.wait_for(state="hidden", timeout=60_000)
            page.wait_for_timeout(2000)
            page.screenshot(path=str(ROOT / "docs" / name), timeout=120_000)
            print(f"docs/{name}")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
