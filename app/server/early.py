"""What an edit of the history brings, asked for and drawn before the page is run.

    early.LINKS.offer("compare", answer)    the address at which the browser asks; "" where nobody answers

A run of a page takes several times as long as the models' answers. So a click that edits the history asks for these first, the
browser draws them (app/components/dom.js), and only then tells Streamlit, whose run has the answers in the cache and draws the
same. An edit that cannot be answered so, or not soon, is drawn by the run alone.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app import guard
from app.server import run_queue
from app.server.links import Links, Route, refused

Answer: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""What was clicked, which comes from outside → what is drawn, by the names of components; None where nothing changes. Called in a
thread, without a session. It holds no models: those of a dataset that was deleted leave the memory."""

_LONGEST = 2_000
"""Characters of a click."""
LINKS: Links[Answer] = Links("/early")


async def _respond(request: Request) -> Response:
    followed = LINKS.followed(request)
    if followed is None:
        return refused("There is nothing to answer here, or not for this browser.", 404)
    if request.method != "GET":
        return refused("It can only be read.", 405)
    act = _act(request.query_params.get("act", ""))
    if act is None:
        return refused("This is no click.", 400)
    try:
        drawn = await asyncio.to_thread(_drawn, followed[1].target, act)
    except Exception as error:  # the run says on the page what is wrong; the log has it whole
        return refused(guard.noted(error, "the answer to an edit")[1], 500)
    return (
        refused("Nothing changes.", 409)
        if drawn is None
        else JSONResponse(drawn, headers={"cache-control": "no-store"})
    )


def _act(text: str) -> dict[str, Any] | None:
    try:
        act = json.loads(text) if len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        return None
    return act if isinstance(act, dict) else None


def _drawn(answer: Answer, act: Mapping[str, Any]) -> dict[str, Any] | None:
    from app import zoo  # pandas and more, which a server's start need not wait for

    with run_queue.RUNS.turn(), zoo.looked_at_once():
        return answer(act)


ROUTE = Middleware(Route, path=LINKS.path, answer=_respond)
