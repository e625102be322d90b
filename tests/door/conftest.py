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
