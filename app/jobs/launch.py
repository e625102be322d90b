"""How runners are started, and whether they live.

On this machine: processes of their own, known by the lock that they hold. On a Ray cluster, through Ray's job interface:
SEQSCOPE_RAY_ADDRESS, such as http://ray-head:8265 (the extra `ray`).

The cluster sees SEQSCOPE_HOME under the same path (a shared file system) and has Seqscope installed; SEQSCOPE_RAY_PYTHON is its
Python (default: python). A job takes SEQSCOPE_RAY_CPUS (default 1) and SEQSCOPE_RAY_GPUS (default 0) of the cluster, which may
place it on any node that has them; a short one SEQSCOPE_RAY_SHORT_CPUS and SEQSCOPE_RAY_SHORT_GPUS (default 1 and 0), so that it
waits for no GPU that a training has. How many of either are submitted at a time the queue says, as on this machine. Which
submission a job has is kept in its folder, so that a server that starts again knows it.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from app.jobs import spec, status
from app.jobs.runner import LOCK, LOG, ROOT, environment, is_running
from app.jobs.status import is_short
from engine.errors import SeqscopeError, first_line
from engine.files import read_json, write_text
from engine.machine import number


class Launcher(Protocol):
    def start(self, folder: Path) -> None:
        """A runner for the job in `folder`; nothing where it has one. Raises OSError or SeqscopeError where none can be had."""

    def alive(self, folder: Path) -> bool:
        """Whether the job has a runner, whoever started it."""

    def stop(self, folder: Path) -> None:
        """Ends what will not end by itself; a runner looks for `cancel` on its own."""


class Local:
    """Processes of this machine, in sessions of their own: they live on when the server ends."""

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, folder: Path) -> None:
        self._reap()
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            with (folder / LOG).open("ab") as log:
                # the lock goes along: there is no moment at which nobody holds it
                child = subprocess.Popen(
                    [sys.executable, "-m", "app.jobs.runner", str(folder), "--lock", str(handle)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=environment(), start_new_session=True,
                    pass_fds=(handle,),
                )  # fmt: skip
            self._children.append(child)
        finally:
            os.close(handle)

    def alive(self, folder: Path) -> bool:
        self._reap()
        return is_running(folder)

    def stop(self, folder: Path) -> None:
        """It looks for itself."""

    def _reap(self) -> None:
        self._children = [child for child in self._children if child.poll() is None]


# --- on a Ray cluster

SUBMISSION = "ray.json"
_LIVES = ("PENDING", "RUNNING")
KNOWN = 2.0
"""Seconds for which an answer of the cluster is believed."""
ANSWER = 10.0
"""Seconds that it has for one."""
UNASKED = 60.0
"""Seconds for which it is not asked how a job is where it did not answer: pages wait for a queue that waits."""
SILENCE = 120.0
"""Seconds of silence after which a runner is given up that the cluster cannot be asked about."""


class OnRay:
    """See `Launcher`."""

    def __init__(self, address: str, client: Any = None) -> None:
        """client: in place of Ray's own."""
        self.address = address
        self._client = client
        self._answers: dict[str, tuple[float, bool]] = {}
        """Submission → until when, by time.monotonic, and whether it lives."""
        self._lock = threading.Lock()

    def start(self, folder: Path) -> None:
        if self.alive(folder):
            return
        name = f"seqscope-{folder.name}-{secrets.token_hex(4)}"
        python = os.environ.get("SEQSCOPE_RAY_PYTHON") or "python"
        words = [*shlex.split(python), "-m", "app.jobs.runner", str(folder)]
        variables = {
            key: value for key, value in os.environ.items() if key.startswith("SEQSCOPE_") and "RAY" not in key
        }
        kind = "SEQSCOPE_RAY_SHORT" if is_short(spec.read(folder), status.read(folder)) else "SEQSCOPE_RAY"
        try:
            self._ray().submit_job(
                entrypoint=shlex.join(words),
                submission_id=name,
                runtime_env={"env_vars": variables | {"PYTHONPATH": str(ROOT)}},
                metadata={"seqscope": folder.name},
                entrypoint_num_cpus=number(f"{kind}_CPUS", 1.0, least=0.0, most=1_000),
                entrypoint_num_gpus=number(f"{kind}_GPUS", 0.0, least=0.0, most=1_000),
            )
        except SeqscopeError:
            raise
        except Exception as error:  # Ray has many, and the cluster's answers come as RuntimeError
            reason = first_line(error)[:200]
            raise SeqscopeError(f"The Ray cluster at {self.address} did not take the job ({reason}).") from error
        write_text(folder / SUBMISSION, json.dumps({"submission": name, "address": self.address}) + "\n")
        now = status.read(folder)
        now.model_copy(update={"words": "Handed to the Ray cluster", "heartbeat": time.time()}).write(folder)

    def alive(self, folder: Path) -> bool:
        name = _submission(folder)
        if name is None:
            return False
        with self._lock:
            until, answer = self._answers.get(name, (0.0, False))
            if time.monotonic() < until:
                return answer
        believed = KNOWN
        try:
            answer = str(getattr(answered := self._ray().get_job_status(name), "value", answered)) in _LIVES
        except Exception:  # it cannot be asked now: what the runner itself wrote says whether it lives
            answer, believed = time.time() - status.read(folder).heartbeat < SILENCE, UNASKED
        with self._lock:
            self._answers[name] = (time.monotonic() + believed, answer)
        return answer

    def stop(self, folder: Path) -> None:
        """A runner that has begun looks for itself; one that waits in the cluster does not."""
        name = _submission(folder)
        if name is not None and status.read(folder).state == "queued":
            with contextlib.suppress(Exception):
                self._ray().stop_job(name)
            with self._lock:
                self._answers.pop(name, None)

    def _ray(self) -> Any:
        if self._client is None:
            try:
                from ray.job_submission import JobSubmissionClient
            except ImportError:
                raise SeqscopeError(
                    "SEQSCOPE_RAY_ADDRESS is set, but Ray is not installed: pip install 'seqscope[ray]'."
                ) from None

            class Client(JobSubmissionClient):
                """Ray's own waits for ever."""

                def _do_request(self, *words: Any, **named: Any) -> Any:
                    return super()._do_request(*words, timeout=ANSWER, **named)

            try:
                self._client = Client(self.address)
            except Exception as error:  # as above
                reason = first_line(error)[:200]
                raise SeqscopeError(f"The Ray cluster at {self.address} cannot be reached ({reason}).") from error
        return self._client


def _submission(folder: Path) -> str | None:
    said = read_json(folder / SUBMISSION).get("submission")
    return None if said is None else str(said)
