"""The child that touches what visitors upload: python -m app.uploads.child

It bounds itself before it reads a byte (address space, time on the processor, size of files), works in one folder, and speaks
in lines of JSON. A file that kills it kills nothing else.

in    one line: {"action": "guess", "check", "unpack" or "histories", "work": folder, "limits": …, what the action needs}
      the end of the input ends the child
out   {"progress": 0.2, "words": "Reading the log"}, any number; last {"result": …} or {"refused": words}
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.machine import yields

if TYPE_CHECKING:
    from pydantic import BaseModel

    from app.uploads.limits import UploadLimits

_LIBRARIES = 1 << 30  # address space that Python, DuckDB and Arrow reserve and hardly use


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is not part of the answer
    request = json.loads(_line())
    _bound(request["limits"], request["nice"])
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def say(done: float, words: str) -> None:
        print(json.dumps({"progress": done, "words": words}), file=out, flush=True)

    answer = _answer(request, say)
    print(json.dumps(answer), file=out, flush=True)
    os._exit(0)  # the thread waits for an input that may never end


def _line() -> bytes:
    """The first line of the input, without reading beyond it."""
    parts = b""
    while not parts.endswith(b"\n"):
        part = os.read(0, 65_536)
        if not part:
            os._exit(3)
        parts += part
    return parts


def _end_with_parent() -> None:
    """The parent keeps the input open as long as it wants an answer, and lives."""
    while os.read(0, 4096):
        pass
    os._exit(3)


def _bound(limits: dict[str, Any], nice: int) -> None:
    cpu = int(limits["seconds"]) * max(1, int(limits["threads"])) + 5
    for kind, most in (
        (resource.RLIMIT_AS, int(limits["memory"]) + _LIBRARIES),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, int(limits["disk"])),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        with contextlib.suppress(ValueError, OSError):  # never above what the machine allows anyway
            hard = resource.getrlimit(kind)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (least, least))
    yields(nice, oom=1000)


def _answer(request: dict[str, Any], say: Any) -> dict[str, Any]:
    import duckdb
    import pyarrow as pa

    from app.uploads.limits import UploadLimits
    from engine.errors import Refused
    from engine.tabular.database import TOO_LARGE

    limits = UploadLimits.model_validate(request["limits"])
    pa.set_cpu_count(limits.threads)
    pa.set_io_thread_count(1)
    try:
        return {"result": _result(request, limits, say).model_dump(mode="json")}
    except Refused as refused:
        return {"refused": str(refused)}
    except (MemoryError, duckdb.OutOfMemoryException):  # Arrow's is a MemoryError
        return {"refused": TOO_LARGE}
    except OSError as error:
        reason = error.strerror or "no reason given"
        return {"refused": f"The file could not be read or its parts not be written ({reason})."}


def _result(request: dict[str, Any], limits: UploadLimits, say: Any) -> BaseModel:
    from app.uploads.archive import unpack
    from app.uploads.check import UploadedFile, check
    from app.uploads.guess import guess

    work = Path(request["work"])
    if request["action"] == "guess":
        return guess(work, Path(request["path"]), request["what"], request["fixed"], limits, say)
    if request["action"] == "unpack":
        return unpack(work, Path(request["path"]), request["kinds"], limits, say)
    if request["action"] == "histories":
        from app.reports.histories import look

        return look(work, Path(request["path"]), request["columns"], limits)
    files = {kind: UploadedFile.model_validate(file) for kind, file in request["files"].items()}
    return check(work, files, limits, say, known=None if request["known"] is None else Path(request["known"]))


if __name__ == "__main__":
    main()
