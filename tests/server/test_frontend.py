"""Streamlit's page and scripts as the app hands them out."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from streamlit.file_util import get_static_dir

from app.server import frontend


async def behind(scope, receive, send):  # type: ignore[no-untyped-def]
    """What Streamlit would answer."""
    page = Path(get_static_dir(), "index.html").read_text("utf-8")
    answers = {**dict.fromkeys(("/", "/metrics/more"), HTMLResponse(page)), "/key": HTMLResponse("<head></head>")}
    answer: Response = answers.get(Request(scope).url.path, PlainTextResponse("Streamlit's", 404))
    await answer(scope, receive, send)


async def ask(path: str, root: str = "", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(frontend.Frontend(behind, root))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        return await client.get(path, headers={"accept": "text/html", **headers})


def get(path: str, root: str = "", **headers: str) -> httpx.Response:
    return asyncio.run(ask(path, root, **headers))


def test_streamlits_page_names_the_modules_of_widgets_tables_and_figures_and_no_other_page_does() -> None:
    folder = Path(get_static_dir(), "static", "js")
    page = get("/").text
    named = set(re.findall(r'modulepreload" crossorigin href="./static/js/([^"]+)"', page))
    assert {name.split(".")[0] for name in named} >= set(frontend.WIDGETS)
    later = re.search(r"for \(const name of (.+)\) {", page)
    assert later and {name.split(".")[0] for name in json.loads(later[1])} >= set(frontend.LATER)
    named |= set(json.loads(later[1]))
    page = Path(get_static_dir(), "index.html").read_text("utf-8")
    for name in named:
        for other in re.findall(r'from"./([^"]+[.]js)"', (folder / name).read_text("utf-8")):
            assert other in named or other in page, f"{name} imports {other}"
    assert get("/key").text == "<head></head>"
    missing = get("/metrics/more")  # Streamlit's scripts would be looked for in /metrics/: a blank page
    assert missing.status_code == 404 and '<a href="/">' in missing.text


def test_streamlits_page_says_that_it_is_loading_until_its_scripts_are_there() -> None:
    page = get("/").text
    assert (
        re.search(r'<div id="root">.*<p>Seqscope is loading &hellip;</p></div>', page)
        and "<title>Seqscope</title>" in page
    )


@pytest.mark.parametrize("root", ["", "/seqscope"])
def test_a_file_is_handed_out_as_it_is_and_nothing_beside_the_folder(root: str) -> None:
    name = frontend.modules_of(*frontend.WIDGETS)[0]
    answer = get(f"{root}/static/js/{name}", root)
    assert answer.content == Path(get_static_dir(), "static", "js", name).read_bytes()
    plain = get(f"{root}/static/js/{name}", root, **{"accept-encoding": "identity"})
    assert plain.content == answer.content  # the other one came packed, and httpx unpacked it
    assert [each.headers.get("content-encoding") for each in (answer, plain)] == ["gzip", None]
    assert "immutable" in answer.headers["cache-control"] and "javascript" in answer.headers["content-type"]
    for other in ("/static/js/none.js", "/static/../index.html", "/static/%2e%2e/index.html", "/static/"):
        assert get(root + other, root).text == "Streamlit's", other
