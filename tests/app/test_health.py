"""The health check answers for what visitors see."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from app import door
from engine.runtime import time_limit

PATH = "/_stcore/health"
Ask = Callable[..., httpx.Response]


async def streamlit(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("ok")(scope, receive, send)


@pytest.fixture
def works() -> list[Callable[[], None]]:
    """What a page does; a test may put something else in its place."""
    return [lambda: None]


@pytest.fixture
def ask(works: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    monkeypatch.setattr(door, "PATIENCE", 0.3)

    def page() -> None:
        works[0]()

    app = door.Health(streamlit, PATH, page)
    with asyncio.Runner() as runner:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")
        yield lambda **headers: runner.run(client.get(PATH, headers=headers))


def test_what_hangs_is_said_until_it_goes_on(ask: Ask, works: list[Callable[[], None]]) -> None:
    assert ask().text == "ok"
    release = threading.Event()
    works[0] = lambda: release.wait(60) and None
    for _ in range(2):
        answer = ask()
        assert answer.status_code == 503 and "Pages are not answered" in answer.text
    assert ask(referer="http://here/").text == "ok"  # Streamlit's page, which asks before it connects
    assert sum("_try" in thread.name for thread in threading.enumerate()) == 1  # nobody piles up
    works[0] = lambda: None
    release.set()
    for _ in range(20):
        if ask().status_code == 200:
            return
    raise AssertionError("it went on, and nobody said so")


def test_a_page_that_fails_is_no_hanging_one(ask: Ask, works: list[Callable[[], None]]) -> None:
    def fails() -> None:
        raise ValueError("damaged")

    works[0] = fails
    assert ask().text == "ok"


def test_models_that_hang_are_said_although_pages_are_answered(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that come to no end, and their places: tests/runtime/test_time_limit.py."""
    monkeypatch.setattr(time_limit, "stalled", lambda: 2 * door.HANGS * time_limit.limit())
    answer = ask()
    assert answer.status_code == 503 and "Models are not answered" in answer.text
    monkeypatch.setattr(time_limit, "stalled", lambda: 0.0)
    assert ask().text == "ok"


@pytest.mark.parametrize("seconds", ["many", "-1"])
def test_a_limit_that_cannot_be_read_is_said(ask: Ask, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv(time_limit.LIMIT, seconds)
    answer = ask()
    assert answer.status_code == 503 and f"{time_limit.LIMIT} is '{seconds}'" in answer.text
