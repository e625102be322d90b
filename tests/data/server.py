"""A web server that behaves as badly as it is told to, in a thread of the test."""

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Misbehaviour:
    """What goes wrong, request by request: the first entry for the first GET of a file, and so on; then all is well."""

    script: list[str] = field(default_factory=list)
    """"cut" closes after half of what is left; "stall" does so too, but stays silent; "status 503"; "corrupt" flips a bit;
    "whole" ignores the Range header; "shifted" answers another range; "endless" names no length."""
    always: str | None = None


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.plan: dict[str, Misbehaviour] = {}
        self.requests: list[tuple[str, str | None]] = []
        """(path, Range header) of every GET"""
        self.version = "1"
        self.weak = False
        self.release = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        self.release.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.lstrip("/")
        wanted = self.headers.get("Range")
        self.server.requests.append((name, wanted))
        content = self.server.files.get(name)
        plan = self.server.plan.get(name, Misbehaviour())
        fault = plan.script.pop(0) if plan.script else plan.always or ""
        if fault.startswith("status"):
            self.send_error(int(fault.split()[1]))
            return
        if content is None:
            self.send_error(404)
            return
        tag = f'"{hashlib.md5(content).hexdigest()}-{self.server.version}"'
        start = 0
        if wanted and fault != "whole" and self.headers.get("If-Range") == tag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
        body = content[start:]
        if fault == "corrupt":
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response(206 if start else 200)
        if start:
            shown = start + 3 if fault == "shifted" else start
            self.send_header("Content-Range", f"bytes {shown}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", f"W/{tag}" if self.server.weak else tag)
        if fault != "endless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = fault in ("cut", "stall")
        self.wfile.write(body[: len(body) // 2] if half else body)
        if fault == "stall":
            self.wfile.flush()
            self.server.release.wait(20)

    def log_message(self, *_: object) -> None:
        """Quiet."""
