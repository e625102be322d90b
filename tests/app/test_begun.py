"""While the store is being opened."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app import serve
from app.jobs.queue import Queue
from app.serve import Begun
from engine.errors import SeqscopeError


def test_a_start_waits_for_nothing_heavy(root: Path) -> None:
    """What the pages need is imported while the browser loads their scripts."""
    program = (
        "import sys, app.serve; print(sorted({'duckdb', 'onnxruntime', 'pandas', 'pyarrow'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


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
        serve.warm_up()
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
