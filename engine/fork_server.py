"""Programs that begin at once: most of a short command's time goes into its imports.

A process of its own imports modules once (python -m engine.fork_server MODULE …), and forks for every program that a line of its
standard input names; lines of its standard output say when it is ready, which process a program is, and how that ended, as JSON.
It computes nothing itself, so that no thread holds a lock that a child would inherit. It ends with its input.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.machine import dies_with, freeze, memory

HEAVY = ("torch", "torch._dynamo", "onnxscript", "umap")
"""What takes the engine's commands seconds to import. None of it computes, or looks for a GPU: a fork could not use that then."""

COMMANDS, ROOM = 3, 2 << 30
"""Imports that are shared are worth a process of their own for so many commands, and where so many bytes of memory are free."""
SHARE = 0.4
"""Of the time that a command takes to start, and an export in all: what is left of it where it is forked, about, as
`python -m benchmarks.estimates` measures it."""


def is_worth_it(commands: int) -> bool:
    """Whether so many commands, one after the other, are better forked, with the memory that is free now. Never where that is not
    known: so it is on macOS, whose libraries may not be used after a fork."""
    return commands >= COMMANDS and memory()[1] >= ROOM


class ForkServer:
    """That process, as one that ends with this one."""

    def __init__(self, environment: Mapping[str, str], modules: Sequence[str] = HEAVY) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "engine.fork_server", *modules], bufsize=0, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            process_group=0, preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509 (for processes of one thread)
        )  # fmt: skip
        self._answers = b""
        self._ready = False

    def is_ready(self) -> bool:
        """Whether it has imported the modules, and lives."""
        self._ready = self._ready or "ready" in (self.answer(0) or {})
        return self._ready and self._server.poll() is None

    def begin(
        self, program: str, words: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]
    ) -> Forked:
        """python -m `program` `words` in `folder`, with these variables beside the server's, its output at the end of the file
        `log`. One program at a time."""
        assert self._server.stdin is not None
        order = {"program": program, "words": words, "folder": str(folder), "log": str(log), "environment": environment}
        with contextlib.suppress(BrokenPipeError):  # it has ended: the answer says so
            self._server.stdin.write(json.dumps(order).encode() + b"\n")
        return Forked(self, self.answer(None) or {})

    def answer(self, timeout: float | None) -> dict[str, int] | None:
        """The next one; None after so many seconds without. A server that was killed takes its child along."""
        assert self._server.stdout is not None
        pipe = self._server.stdout.fileno()
        while b"\n" not in self._answers:
            if not select.select([pipe], [], [], timeout)[0]:
                return None
            if not (piece := os.read(pipe, 4096)):
                return {"code": -signal.SIGKILL}
            self._answers += piece
        line, _, self._answers = self._answers.partition(b"\n")
        answer: dict[str, int] = json.loads(line)
        return answer

    def close(self) -> None:
        self._server.kill()
        self._server.wait()


class Forked:
    """A program that a fork server carries out, as far as it is like a Popen."""

    def __init__(self, server: ForkServer, begun: Mapping[str, int]) -> None:
        self._server = server
        self.pid: int = begun.get("pid", 0)
        self.returncode: int | None = begun.get("code")

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            answer = self._server.answer(timeout)
            if answer is None:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = answer["code"]
        return self.returncode


def main() -> int:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    gc.collect()
    freeze()  # no collection of a child's copies the pages that it shares
    _say({"ready": 1})
    server = os.getpid()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_carry_out(server=server, **order))
        with contextlib.suppress(OSError):  # whoever is first
            os.setpgid(child, child)
        _say({"pid": child})
        _say({"code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})
    return 0


def _say(answer: Mapping[str, int]) -> None:
    print(json.dumps(answer), flush=True)


def _carry_out(program: str, words: list[str], folder: str, log: str, environment: dict[str, str], server: int) -> int:
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    dies_with(server)()
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, log, os.O_WRONLY | os.O_APPEND)):
        file = os.open(path, flags)
        os.dup2(file, descriptor)
        os.close(file)
    os.dup2(1, 2)
    os.chdir(folder)
    os.environ.update(environment)
    sys.argv = [program, *words]
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
