"""A small Streamlit app behind the front door, with real sockets; and the app itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import clients

LARGE = 80_000_000
"""Bytes of the file that small_page.py hands out."""


def start_small(folder: Path, *options: str) -> clients.Server:
    """small_app.py, with all that is its own in a folder."""
    folder.mkdir(exist_ok=True)
    large = folder / "large"
    with large.open("wb") as file:
        file.truncate(LARGE)
    return clients.start(
        folder, folder / "home", folder / "log.txt", *options, script="tests/server/small_app.py", LARGE=str(large)
    )


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clients.Server]:
    """It takes files of 1 MB at most."""
    server = start_small(tmp_path_factory.mktemp("small"), "--server.maxUploadSize=1")
    yield server
    clients.stop(server)


def begun_upload(who: clients.Visitor) -> bytes:
    """What a browser sends of a file of 900 kB before it stops, as it goes over the wire."""
    cookies = "; ".join(f"{name}={value}" for name, value in who.http.cookies.items())
    head = (
        f"PUT /_stcore/upload_file/{who.session}/begun HTTP/1.1\r\nHost: {who.http.base_url.netloc.decode()}\r\n"
        f"Cookie: {cookies}\r\nX-Xsrftoken: {who.http.cookies['_streamlit_xsrf'].strip(chr(34))}\r\nContent-Length: 900000\r\n"
        "Content-Type: multipart/form-data; boundary=edge\r\n\r\n"
        '--edge\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
    )
    return head.encode() + b"x" * 100_000
