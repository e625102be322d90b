"""Pictures of all pages, taken of the running app, and docs/pages.md that shows them: `make screenshot`."""

import io

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from app.screens import PAGES
from engine.commands.doctor import find_chromium
from tests import clients
from tests.clients import ROOT

READY = '[data-testid="stApp"][data-test-connection-state="CONNECTED"][data-test-script-state="notRunning"]'
FOLDER = ROOT / "docs" / "screens"
SIZES = {"1440": (1440, 900), "390": (390, 844)}
SCHEMES = ("light", "dark")
PHONE = "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Mobile Safari/537.36"


def take(browser: Browser, url: str, size: str, scheme: str) -> bytes:
    """A PNG of what a visitor sees first."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        user_agent=PHONE if size == "390" else None,
    )
    page = context.new_page()
    page.goto(url)
    page.locator(READY).wait_for(timeout=60_000)
    # parts of the page are loaded when they are first needed, and figures draw last of all
    page.locator('[data-testid="stSkeleton"]').first.wait_for(state="hidden", timeout=60_000)
    page.wait_for_timeout(3000)
    picture = page.screenshot(timeout=120_000)
    context.close()
    return picture


def gallery() -> str:
    """docs/pages.md: what there is to see on each page, as the page declares it, and its pictures."""
    lines = ["# The pages", "", "Taken by `make screenshot` of the films, as they open.", ""]
    for name, page in PAGES.items():
        lines += [f"## {page.title}", "", page.help, ""]
        pictures = [f"screens/{name}-1440-light.webp", f"screens/{name}-390-dark.webp"]
        others = [f"screens/{name}-1440-dark.webp", f"screens/{name}-390-light.webp"]
        lines += [f"![{page.title}, on a laptop]({pictures[0]}) ![{page.title}, on a phone, dark]({pictures[1]})", ""]
        lines += [f"[dark]({others[0]}) · [on a phone, light]({others[1]})", ""]
    return "\n".join(lines)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    first = next(iter(PAGES))
    with clients.running(ROOT / "exports") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        for name in PAGES:
            for size in SIZES:
                for scheme in SCHEMES:
                    picture = take(browser, f"{server.url}/{'' if name == first else name}", size, scheme)
                    path = FOLDER / f"{name}-{size}-{scheme}.webp"
                    Image.open(io.BytesIO(picture)).convert("RGB").save(path, quality=82, method=6)
                    print(path.relative_to(ROOT))
        browser.close()
    (ROOT / "docs" / "pages.md").write_text(gallery(), "utf-8")


if __name__ == "__main__":
    main()
