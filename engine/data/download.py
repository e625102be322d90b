"""Download one file so that it arrives whole, or not at all.

What has come so far waits in ``NAME.part`` and is continued, also by a later run; ``NAME.part.json`` remembers which version of
the file it belongs to. The name itself appears only when all bytes are there and their checksum is right.
"""

import http.client
import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from engine import __version__
from engine.console import Progress
from engine.errors import SeqscopeError
from engine.files import digest_of

_BLOCK = 1 << 16
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Patience:
    """How long a download bears with its server."""

    stall: float = 30.0
    """Seconds without a byte after which a connection is given up."""
    retries: int = 5
    """Attempts in a row that bring nothing new before the download fails."""
    pause: float = 1.0
    """Seconds before the second attempt; doubled for each further one, up to a minute."""
    sleep: Callable[[float], None] = time.sleep


PATIENT = Patience()


class Unfinished(Exception):
    """An attempt ended early; another may succeed. The message says why."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


def download(url: str, target: Path, *, checksum: Sequence[str] | None = None, patience: Patience = PATIENT) -> str:
    """Fetch `url` to `target` and return its sha256 (hex).

    checksum: (algorithm, hex digest) that the file must have. A file that has not is fetched once more from the beginning.
    """
    part = target.with_name(target.name + ".part")
    for last_chance in (False, True):
        _fetch(url, part, patience)
        actual = digest_of(part, checksum[0] if checksum else "sha256")
        if checksum is None or actual == checksum[1]:
            break
        discard(part)
        if last_chance:
            raise SeqscopeError(
                f"{url}: the {checksum[0]} checksum is {actual}, not {checksum[1]}, twice. The file is damaged at its source or "
                "on the way (a proxy?). Nothing was kept; try another day or another network."
            )
    sha256 = actual if checksum is None else digest_of(part)
    part.replace(target)
    discard(part)
    return sha256


def discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _memory(part).unlink(missing_ok=True)


def get_text(url: str, *, patience: Patience, limit: int = 10_000) -> str | None:
    """A small text, or None where the server has none."""
    attempts = 0
    while True:
        try:
            with _open(url, {}, patience) as response:
                return response.read(limit).decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            if error.code in (403, 404, 410):
                return None
            attempts = _again(url, Unfinished(f"the server answers {error.code} {error.reason}"), attempts, patience)
        except (OSError, http.client.HTTPException) as error:
            attempts = _again(url, Unfinished(_reason(error)), attempts, patience)


def _fetch(url: str, part: Path, patience: Patience) -> None:
    """Bring `part` to its full length."""
    attempts = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _attempt(url, part, patience)
            return
        except Unfinished as error:
            now = part.stat().st_size if part.exists() else 0
            attempts = _again(url, error, 0 if now > before else attempts, patience)


def _again(url: str, error: Unfinished, attempts: int, patience: Patience) -> int:
    """Wait before another attempt, or fail where there were enough; the number of attempts so far."""
    attempts += 1
    if attempts >= patience.retries:
        host = urlsplit(url).netloc
        raise SeqscopeError(
            f"{url}: {error}; given up after {attempts} attempts. Is {host} reachable from here? What has arrived is kept and "
            "continued by the next run."
        )
    patience.sleep(max(error.wait, min(60.0, patience.pause * 2 ** (attempts - 1))))
    return attempts


def _attempt(url: str, part: Path, patience: Patience) -> None:
    have = part.stat().st_size if part.exists() else 0
    version = _remembered(part)
    headers = {"Range": f"bytes={have}-", "If-Range": version} if have and version else {}
    if have and not headers:
        have = 0  # nobody knows which version of the file these bytes belong to
    try:
        with _open(url, headers, patience) as response:
            if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                part.unlink(missing_ok=True)
                raise Unfinished("the server sent another part of the file than was asked for")
            if response.status != 206:
                have = 0  # the server ignores ranges, or the file has changed
            length = response.headers.get("Content-Length")
            total = have + int(length) if length and length.isdecimal() else None
            _remember(part, response.headers.get("ETag") or response.headers.get("Last-Modified"))
            _receive(url, response, part, have, total)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            if error.headers.get("Content-Range") == f"bytes */{have}":
                return  # the part was whole already
            discard(part)
            raise Unfinished("the file at the server is shorter than what is here")
        if error.code in _TRANSIENT:
            wait = error.headers.get("Retry-After", "")
            raise Unfinished(
                f"the server answers {error.code} {error.reason}", min(60.0, float(wait)) if wait.isdecimal() else 0.0
            )
        raise SeqscopeError(
            f"{url}: the server answers {error.code} {error.reason}. The file may have moved: find it in a browser, or name "
            "another server with --base-url."
        )
    except (OSError, http.client.HTTPException) as error:
        raise Unfinished(_reason(error))


def _receive(url: str, response: http.client.HTTPResponse, part: Path, have: int, total: int | None) -> None:
    """Append what the server sends."""
    if total is not None:
        free = shutil.disk_usage(part.parent).free
        if total - have > free:
            needed = f"{total - have:,}"
            raise SeqscopeError(
                f"{part.parent} has {free:,} bytes free, and {url} still needs {needed}. Make room, then repeat."
            )
    progress = Progress(total or 1, part.name.removesuffix(".part"))
    with part.open("ab" if have else "wb") as file:
        while block := response.read1(_BLOCK):
            try:
                file.write(block)
            except OSError as error:
                raise SeqscopeError(
                    f"{part} cannot be written ({error.strerror or error}). Make room or choose another --to, then repeat."
                )
            have += len(block)
            if total is not None:
                progress.update(have, f"{have / 1e6:,.1f} of {total / 1e6:,.1f} MB,")
    if total is not None and have != total:
        raise Unfinished(f"the connection closed after {have:,} of {total:,} bytes")


def _open(url: str, headers: dict[str, str], patience: Patience) -> http.client.HTTPResponse:
    try:
        parts = urlsplit(url)
        reachable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, brackets without an end
        reachable = False
    if not reachable:
        raise SeqscopeError(f"{url}: only http and https addresses can be fetched.")
    # Identity: a compressed transfer has no byte positions to continue from.
    agent = {"User-Agent": f"seqscope/{__version__}", "Accept-Encoding": "identity"}
    return urllib.request.urlopen(urllib.request.Request(url, headers=agent | headers), timeout=patience.stall)


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return "nothing arrived for too long"
    return str(cause) or type(cause).__name__


def _memory(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _remember(part: Path, version: str | None) -> None:
    # A weak ETag promises the same meaning, not the same bytes.
    if version and not version.startswith("W/"):
        _memory(part).write_text(json.dumps({"version": version}), "utf-8")
    else:
        _memory(part).unlink(missing_ok=True)


def _remembered(part: Path) -> str | None:
    try:
        return str(json.loads(_memory(part).read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
