"""A small app behind the front door, served by `streamlit run`: one page, and what it tells the tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from streamlit import runtime
from streamlit.starlette import App

from app.server import door, downloads, keys, received


async def begin(request: Request) -> Response:
    """Forgets all files; those to come wait so many seconds for a page to take them, and so long may their senders be silent."""
    uploads = runtime.get_instance().uploaded_file_mgr
    for session in list(uploads.file_storage):
        uploads.remove_session_files(session)
    received.UNTAKEN_SECONDS = received.SILENT_SECONDS = float(request.path_params["seconds"])
    return Response()


async def held(request: Request) -> Response:
    """Bytes of all files that lie in Streamlit's memory: session → id → bytes."""
    stored = runtime.get_instance().uploaded_file_mgr.file_storage
    return JSONResponse(
        {session: {id: len(file.data) for id, file in files.items()} for session, files in stored.items()}
    )


async def says_much(request: Request) -> Response:
    """As a provider of sign-in whose words fill three cookies."""
    answer = Response()
    for number in range(3):
        answer.set_cookie(f"part_{number}", "x" * 4_000)
    return answer


@asynccontextmanager
async def life(served: App) -> AsyncGenerator[dict[str, Any]]:
    async with downloads.DOWNLOADS.serving():
        yield {}


app = App(
    Path(__file__).parent / "small_page.py",
    lifespan=life,
    routes=[
        Route("/begin/{seconds}", begin),
        Route("/held", held),
        Route("/says-much", says_much),
        Route("/key", keys.page, methods=["GET", "POST"]),
    ],
    middleware=[Middleware(door.Door), downloads.ROUTE, Middleware(keys.KeyCookie)],
)
