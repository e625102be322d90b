"""Runs the child, and turns every way in which it may end into an answer or one message.

The calling thread waits; `on_progress` is called in it, and whatever that raises (a page that is drawn anew, say) ends the child.
"""

import contextlib
import json
import logging
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app import home
from app.jobs.turns import Ahead, Turns
from app.uploads import OnProgress
from app.uploads.limits import UploadLimits, children
from engine.errors import SeqscopeError
from engine.machine import memory
from engine.writing import count

log = logging.getLogger("seqscope.uploads")

_ROOT = Path(__file__).resolve().parents[2]
_MOST_OUTPUT = 16 << 20
_TAIL = 4_000
_TICK = 0.1
_KEPT = ("PATH", "LANG", "LC_ALL", "HOME", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")
QUICK = 2
"""Steps at a time that must be done in moments, beside the others; each may take as much memory as any."""
SMALL = 2 << 20
"""Bytes of files that are tried so; a step that takes more of the processor than `MOMENTS` begins anew among the others."""
MOMENTS = 1.5
NICE = {"quick": 2, "slow": 10}
"""Pages come before steps, and steps that somebody will not wait for at all before those that take a while."""
LONG, LAST = 5.0, 19
"""Seconds of the processor after which a step comes after all others, and its priority from then on."""
BESIDE = 4
"""Times as many slow steps as the operator says may run where memory is free for them: nobody waits for another's long check."""


def _slow_slots() -> int:
    """Of slow steps: as many as the operator says, and more as long as each finds twice the memory that it may take."""
    least = children()
    return min(BESIDE * least, least + memory()[1] // (2 * UploadLimits.of_environment().memory))


_turns = Turns(quick=lambda: QUICK, slow=_slow_slots)
_slow: OrderedDict[str, float] = OrderedDict()
"""Owner → when a small file of theirs turned out to be no quick one; they are not believed again for `WARY` seconds."""
WARY = 600.0


class UploadFailed(SeqscopeError):
    """The file was not read. The message is for the page."""


class _Long(Exception):
    """The step is no quick one."""


def run(
    action: str,
    request: dict[str, Any],
    folder: Path,
    limits: UploadLimits,
    *,
    owner: str = "",
    on_progress: OnProgress | None = None,
    keep: Callable[[Path], None] | None = None,
) -> dict[str, Any]:
    """The child's result. Raises UploadFailed.

    folder: where the step's own folder is made; it is gone afterwards. keep: is given it first, where the step succeeded.
    owner: whose turn it is (app/jobs/turns.py).
    """
    furthest = 0.0

    def say(done: float, words: str) -> None:
        nonlocal furthest
        furthest = max(furthest, done)  # a step that begins anew among the slow ones does not go back
        if on_progress is not None:
            on_progress(furthest, words)

    def wait(ahead: Ahead) -> None:
        say(0.0, ahead.words("upload", "uploads"))

    def step(lane: str) -> dict[str, Any]:
        with _turns.place(owner, lane, wait):
            work = Path(tempfile.mkdtemp(prefix=".step-", dir=folder))
            try:
                about = {"action": action, "work": str(work), "limits": limits.model_dump(), "nice": NICE[lane]}
                result = _run(about | request, work, limits, say, MOMENTS if lane == "quick" else None)
                if keep is not None:
                    keep(work)
                return result
            finally:
                shutil.rmtree(work, ignore_errors=True)

    if _seems_quick(request, owner):
        try:
            return step("quick")
        except _Long:
            if owner:
                _slow[owner] = time.monotonic()
            while len(_slow) > 1_000:
                _slow.popitem(last=False)
    return step("slow")


def _seems_quick(request: dict[str, Any], owner: str) -> bool:
    paths = [request.get("path"), request.get("known"), *(file["path"] for file in request.get("files", {}).values())]
    with contextlib.suppress(OSError):  # the step says what is wrong with it
        size = sum(os.stat(path).st_size for path in paths if path)
        return size <= SMALL and time.monotonic() - _slow.get(owner, -WARY) >= WARY
    return True


def _run(
    request: dict[str, Any], work: Path, limits: UploadLimits, say: OnProgress, moments: float | None
) -> dict[str, Any]:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}  # no secret of the app among them
    environment |= {
        "PYTHONPATH": str(_ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(work),
        "OMP_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "4",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "app.uploads.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=work,
        env=environment,
        start_new_session=True,
    ) as child:
        try:
            return _converse(child, request, limits, say, moments)
        finally:
            _end(child)


def _converse(
    child: subprocess.Popen[bytes],
    request: dict[str, Any],
    limits: UploadLimits,
    say: OnProgress,
    moments: float | None,
) -> dict[str, Any]:
    """The result that the child ends with."""
    assert child.stdin
    started = time.monotonic()
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.flush()
    tail = bytearray()
    done, words = 0.0, "Starting"
    for message in _messages(child, tail):
        if message is None:
            say(done, words)
            _bound(child.pid, Path(request["work"]), limits, time.monotonic() - started, moments)
        elif "result" in message:
            return dict(message["result"])
        elif "refused" in message:
            raise UploadFailed(home.shown(str(message["refused"])))
        else:
            done, words = float(message.get("progress", done)), str(message.get("words", words))
            say(done, words)
    raise UploadFailed(_died(child, bytes(tail)))


def _messages(child: subprocess.Popen[bytes], tail: bytearray) -> Iterator[dict[str, Any] | None]:
    """What the child says until it ends, and None after every look. tail: is given the last of its errors."""
    assert child.stdout and child.stderr
    out, heard = bytearray(), 0
    with selectors.DefaultSelector() as waiting:
        for stream in (child.stdout, child.stderr):
            os.set_blocking(stream.fileno(), False)
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select(_TICK):
                part = os.read(key.fd, 65_536)
                if not part:
                    waiting.unregister(key.fileobj)
                elif key.fileobj is child.stderr:
                    tail += part
                    del tail[:-_TAIL]
                else:
                    out += part
                    heard += len(part)
            if heard > _MOST_OUTPUT:
                raise UploadFailed("Reading the file gave more than can be shown. Upload a part of it.")
            while (end := out.find(b"\n")) >= 0:
                line = bytes(out[:end])
                del out[: end + 1]
                yield _parsed(line)
            yield None


def _bound(pid: int, work: Path, limits: UploadLimits, seconds: float, moments: float | None) -> None:
    """Raises UploadFailed where a step took too much of the disk or of time, _Long where it is no quick one."""
    computed = _computed(pid)
    if moments is not None and (computed > moments or seconds > 8 * moments):
        raise _Long
    if computed > LONG:
        with contextlib.suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PGRP, pid, LAST)  # all its threads
    if home.size(work) > limits.disk:
        raise UploadFailed(
            f"Reading the file takes more than {limits.disk >> 20:,} MB of this server's disk, which is the most that "
            "one upload may have. Upload a part of it, or leave out long texts."
        )
    if seconds > limits.seconds:
        raise UploadFailed(
            f"Reading the file took longer than {count(limits.seconds, 'second')} and was ended. Upload a part of it."
        )


def _computed(pid: int) -> float:
    """Seconds of the processor that it has had; 0 where that cannot be known."""
    with contextlib.suppress(OSError, ValueError, IndexError):  # no Linux
        spent = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
        return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise UploadFailed("Reading the file ended without an answer that makes sense. Save it anew, and try again.")
    return message


def _died(child: subprocess.Popen[bytes], tail: bytes) -> str:
    """Why there is no answer, in words; the log has the rest."""
    try:
        code = child.wait(10)
    except subprocess.TimeoutExpired:
        return "Reading the file came to no end. Save it anew, and try again."
    log.warning("upload child ended with %s: %s", code, tail.decode("utf-8", "replace"))
    if code == -signal.SIGXCPU:
        return "Reading the file took more computing time than one upload may have. Upload a part of it."
    if b"MemoryError" in tail or b"bad_alloc" in tail or code == -signal.SIGKILL:
        return (
            "Reading the file took more memory than one upload may have here, or was ended by the system. "
            "Upload a part of it."
        )
    if code < 0:
        return (
            f"The file made its reader fail (signal {-code}). Nothing else was touched. "
            "Save it anew as CSV in UTF-8, and try again."
        )
    return "Reading the file failed in a way that was not foreseen. Save it anew as CSV in UTF-8, and try again."


def _end(child: subprocess.Popen[bytes]) -> None:
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
