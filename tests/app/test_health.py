"""The health check answers for what visitors see."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from app import serve
from app.jobs.queue import Queue
from app.serve import Begun
from app.server import door
from engine.errors import SeqscopeError
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


# --- while the store is being opened


def test_a_start_waits_for_nothing_heavy_and_pages_are_read_before_a_visitor_comes(root: Path, exports: Path) -> None:
    """What the pages need is imported while the browser loads their scripts."""
    program = """
import sys, app.serve
print(sorted({'duckdb', 'onnxruntime', 'pandas', 'pyarrow'} & sys.modules.keys()))
app.serve.read_pages()
print('app.screens.map.item_map' in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root, env={**os.environ, "SEQSCOPE_EXPORTS": str(exports)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-2:] == ["[]", "True"], done.stderr


async def test_pages_are_answered_and_what_happens_on_them_waits() -> None:
    answered: list[str] = []

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        answered.append(scope["type"])

    async def _come(kind: str, begun: asyncio.Future[None]) -> None:
        await Begun(streamlit)({"type": kind, "state": {"begun": begun}}, None, None)  # type: ignore[arg-type]

    begun = asyncio.get_running_loop().create_future()
    come = [asyncio.create_task(_come(kind, begun)) for kind in ("websocket", "websocket", "http")]
    await asyncio.sleep(0.01)
    assert answered == ["http"]
    come[0].cancel()  # one who leaves takes nobody else along
    begun.set_result(None)
    await asyncio.wait(come)
    assert answered == ["http", "websocket"]


def test_the_collector_is_at_work_again_however_warming_up_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        assert not gc.isenabled()
        raise OSError

    monkeypatch.setattr(serve, "prepare", fail)
    with pytest.raises(OSError):
        serve.warm_up(threading.Event())
    gc.unfreeze()
    assert gc.isenabled()


def test_settings_that_cannot_be_read_are_in_the_log_before_a_visitor_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serve.check_settings()
    assert caplog.messages == []
    names = (
        "QUOTA_JOBS",
        "QUOTA_ROWS",
        "MAX_UPLOAD_MB",
        "UPLOAD_SECONDS",
        "UPLOADS",
        "KEEP_DAYS",
        "OPEN_MB",
        "MODEL_SECONDS",
        "JOB_HOURS",
    )
    for name in names:
        monkeypatch.setenv(f"SEQSCOPE_{name}", "many")
    serve.check_settings()
    assert sorted(message.partition(" ")[0] for message in caplog.messages) == sorted(
        f"SEQSCOPE_{name}" for name in names
    )
    monkeypatch.setenv("SEQSCOPE_JOBS", "0")
    monkeypatch.setenv("SEQSCOPE_JOBS_WAITING", "none")
    with pytest.raises(SeqscopeError, match=r"SEQSCOPE_JOBS is '0'.* SEQSCOPE_JOBS_WAITING is 'none'"):
        Queue(tmp_path)
