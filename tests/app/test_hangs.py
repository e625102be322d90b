"""A model that comes to no end, on a real server: what its visitors, the others and the health check see."""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from pathlib import Path

from engine.runtime import time_limit
from tests import clients
from tests.runtime.bundles import TOYS, make_endless, make_zoo


def health(url: str) -> str:
    """As a deployment asks: without cookies."""
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=clients.PATIENCE) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def test_a_model_that_comes_to_no_end(tmp_path: Path) -> None:
    """One more visitor than there are places asks it; then it is refused, and all else answers."""
    exports = make_zoo(tmp_path / "exports", TOYS[:2])
    make_endless(exports / "alpha", TOYS[0], 1)

    async def visit(server: clients.Server) -> None:
        heard: list[str] = []

        async def look(visitor: clients.Visitor, which: int) -> str:
            await visitor.run(f"v=1&ds=toys&h=toy-{which}~toy-{which + 1}", "compare")
            return str(visitor.elements)

        async def watch() -> None:
            until = time.monotonic() + 3 * clients.PATIENCE  # a graph is ended by the time that it had
            while "200" not in heard and time.monotonic() < until:
                answer = await asyncio.to_thread(health, server.url)
                heard.append("200" if answer == "ok" and any("503" in earlier for earlier in heard) else answer)
                await asyncio.sleep(0.1)

        pages, _ = await asyncio.gather(clients.crowd(server.url, time_limit.PLACES + 1, look), watch())
        assert any("did not end within 3 s" in page for page in pages)
        assert heard[0] == "ok" and any("Models are not answered" in answer for answer in heard) and heard[-1] == "200"
        async with clients.visitor(server.url) as later:
            await later.run("v=1&ds=toys&h=toy-1~toy-2", "compare")
            (alert,) = later.shown("alert")
            assert "alpha/encoder.onnx: the graph did not end" in alert.body and not later.errors

    with clients.running(exports.parent, None, **{time_limit.LIMIT: "3"}) as server:
        asyncio.run(visit(server))
