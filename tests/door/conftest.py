"""A small Streamlit app behind the front door, with real sockets; and the app itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import clients


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clients.Server]:
    """small_app.py, which takes files of 1 MB at most."""
    folder = tmp_path_factory.mktemp("small")
    server = clients.start(
        folder,
        folder / "home",
        folder / "log.txt",
        "--server.maxUploadSize=1",
        script="tests/door/small_app.py",
    )
    yield server
    clients.stop(server)
