"""The process that carries a job out: python -m app.jobs.runner FOLDER

It outlives the server that started it, and dies alone: what it was doing, the next runner of the folder takes up. The lock in the
folder is held as long as it lives. `cancel` in the folder ends the job; SIGTERM ends the runner, and leaves the job to the next.
"""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app import home
from app.jobs import spec, status
from app.jobs.spec import Job, JobStep
from app.jobs.status import Part, is_short
from app.store.records import JobKind, JobState
from app.text import amount
from engine.errors import SeqscopeError
from engine.files import read_json, write_text
from engine.fork_server import Forked, ForkServer, is_worth_it
from engine.machine import dies_with, number, yields

LOCK, CANCEL, LOG, PROGRESS, MADE = "lock", "cancel", "log.txt", "progress.json", "made.json"
ALLOWED = "bytes.txt"
"""How many bytes the files of job and dataset may take; written by the queue when it starts the runner, and now and then."""
WEIGH = 2.0
"""Seconds between two looks at how many they take."""
EVERY = 1.0
"""Seconds between two writings of the status."""
TICK = 0.1
PATIENCE = 10.0
"""Seconds that a command has to end by itself."""
HOURS = 12.0
"""What a step may take, where SEQSCOPE_JOB_HOURS does not say otherwise."""
TAIL = 16_384
MESSAGE = 1_000
"""Characters."""
SHORT_SECONDS = 300.0
"""After which a job that was to be short goes on among the long ones: others wait for its place."""
NICE: dict[JobKind, int] = {"baselines": 1, "prepare": 2, "batch": 5, "train": 10}
"""The page comes before the work, and what somebody waits for before what takes hours anyway."""
ROOT = Path(__file__).resolve().parents[2]
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "TZ", "VIRTUAL_ENV", "SYSTEMROOT")
_FAMILIES = (
    "LC_", "LD_", "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_", "CUDA_", "NVIDIA_", "TORCH", "HF_", "XDG_", "SEQSCOPE_",
)  # fmt: skip


class Left(Exception):
    """The runner is to go, and the job to stay."""


class Cancelled(Exception):
    pass


class Runner:
    """One job, from wherever its status says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job: Job = spec.read(folder)
        self.place = self.job.place(folder)
        before = status.read(folder)
        parts = before.parts if len(before.parts) == len(self.job.steps) else (Part(),) * len(self.job.steps)
        self.status = before.model_copy(update={"parts": parts})
        self.stopping = False
        self.hours = HOURS
        with contextlib.suppress(SeqscopeError):  # the server's log says it
            self.hours = hours()
        self.allowed = _allowed(folder)
        self._began = time.monotonic()
        self._written = 0.0
        self._weighed = -WEIGH
        self.forks: ForkServer | None = None

    def run(self) -> int:
        """0: the job is over or left to another runner; 1: it failed. Raises Failed, and Gone."""
        if self.status.over:
            return 0
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        started = self.status.started or time.time()
        self._note(state="running", pid=os.getpid(), started=started, message="", durable=True)
        commands = sum(step.program == "engine" for step in self.job.steps[self.status.step :])
        self.forks = ForkServer(environment()) if is_worth_it(commands) else None
        try:
            while self.status.step < len(self.job.steps):
                self._one(self.status.step)
            return self._end()
        except Cancelled:
            self._part(self.status.step, "failed")
            self._over("cancelled", "Cancelled")
        except Left:
            self._note(state="queued", words="Interrupted; it goes on from here", left=None, pid=None, durable=True)
        finally:
            if self.forks is not None:
                self.forks.close()
        return 0

    def _stop(self, signum: int, frame: Any) -> None:
        self.stopping = True

    # --- one step

    def _one(self, number: int) -> None:
        step = self.job.steps[number]
        self._look()
        made = step.made_of(self.place)
        if self.status.parts[number].state == "done":
            pass  # of a job that is tried once more
        elif self._lost(step):
            self._part(number, "left out")
        elif made is not None and self._known(step) == made:
            self._part(number, "done")
        else:
            self._part(number, "running")
            progress = max(self.status.progress, self._share(number, 0.0))
            self._note(words=step.title, progress=progress, left=None, durable=True)
            try:
                message = self._command(number, step)
            except TooLarge:
                self._part(number, "failed")
                self._discard(step)
                raise
            if message:
                self._part(number, "failed")
                if not step.may_fail:
                    raise Failed(message)
                self._note(notes=(*self.status.notes, f"{step.title}: {message}"))
            else:
                if made is not None:
                    self._remember(step, step.made_of(self.place) or "")
                self._part(number, "done")
                self._note(notes=(*self.status.notes, *read_warnings(self.folder / PROGRESS)))
        self._note(step=number + 1, progress=self._share(number + 1, 0.0), tries=0, durable=True)

    def _command(self, number: int, step: JobStep) -> str:
        """Carries it out; why it failed, or "" where it did not."""
        progress = self.folder / PROGRESS
        progress.unlink(missing_ok=True)
        before, began = self.status.parts[number].seconds, time.monotonic()
        with (self.folder / LOG).open("ab") as log:
            log.write(f"--- {step.title}\n".encode())
            log.flush()
            from_here = log.tell()
            child: subprocess.Popen[bytes] | Forked
            if self.forks is not None and self.forks.is_ready():
                child = self.forks.begin(
                    step.program, step.words, self.place, self.folder / LOG, {"SEQSCOPE_PROGRESS": str(progress)}
                )
            else:
                child = subprocess.Popen(
                    [sys.executable, "-m", step.program, *step.words],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place, env=environment(progress),
                    process_group=0, preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509 (this process has one thread)
                )  # fmt: skip
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(TICK)
                seconds = time.monotonic() - began
                self._part(number, "running", before + seconds)
                if child.returncode is not None:
                    return "" if child.returncode == 0 else self._why(child.returncode, from_here)
                self._look()
                if seconds > 3600 * self.hours:
                    return f"It took more than {self.hours:g} {'hour' if self.hours == 1 else 'hours'} and was ended."
                self._tell(number, step, before + seconds)
        finally:
            _end(child)

    def _tell(self, number: int, step: JobStep, seconds: float) -> None:
        """The status, now and then, from what the command says of itself."""
        if time.monotonic() - self._written < EVERY:
            return
        share, words, left = read_progress(self.folder / PROGRESS)
        if share is None and self.job.timed:
            share = min(0.95, seconds / step.weight)
        rest = sum(other.weight for other in self.job.steps[number + 1 :]) if self.job.timed else None
        if left is None and self.job.timed:
            left = max(0.0, step.weight - seconds)
        whole = None if left is None or (rest is None and number + 1 < len(self.job.steps)) else left + (rest or 0.0)
        repeated = step.title.lower().startswith(words.lower())  # Evaluate SASRec: evaluate
        self._note(
            words=step.title if repeated else f"{step.title}: {words}",
            progress=max(self.status.progress, self._share(number, share or 0.0)),
            left=whole,
        )

    def _look(self) -> None:
        """Whether somebody wants something else."""
        if not (self.folder / spec.FILE).exists():
            raise Gone
        if not self.place.is_dir():
            raise Failed("Its files are not there any more: the dataset was deleted.")
        if (self.folder / CANCEL).exists():
            raise Cancelled
        if self.stopping:
            raise Left
        if is_short(self.job, self.status) and time.monotonic() - self._began > SHORT_SECONDS:
            self.status = self.status.model_copy(update={"outlasted": True})
            raise Left
        if self.allowed is not None and time.monotonic() - self._weighed >= WEIGH:
            size = sum(home.size(folder) for folder in {self.place, self.folder.resolve()})
            self._weighed, self.allowed = time.monotonic(), _allowed(self.folder)
            if self.allowed is not None and size > self.allowed:
                raise TooLarge(
                    "It was ended because its files would take more room than is left for you here: this dataset may have "
                    f"{amount(self.allowed)} with what is made of it. What was complete is there. Delete a dataset or a saved "
                    "report that you no longer need, or make less of this one."
                )

    def _discard(self, step: JobStep) -> None:
        """What a step that was ended for its size has left and nobody can use."""
        left = [*self.place.glob("exports/.*"), *self.place.glob("next/.*")]
        for folder in [self.place / step.run, *left] if step.run else left:
            shutil.rmtree(folder, ignore_errors=True)

    def _lost(self, step: JobStep) -> bool:
        """Whether something that it needs is not there."""
        states = {
            other.key: part.state for other, part in zip(self.job.steps, self.status.parts, strict=True) if other.key
        }
        return any(states.get(need) in ("failed", "left out") for need in step.needs)

    def _why(self, code: int, from_here: int) -> str:
        """What the command said last, as the engine does in one message; else how it ended."""
        with (self.folder / LOG).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(from_here, size - TAIL))
            lines = log.read().decode("utf-8", "replace").splitlines()
        starts = [index for index, line in enumerate(lines) if line.startswith("seqscope: ")]
        if starts:
            words = "\n".join(lines[starts[-1] :]).removeprefix("seqscope: ").strip()[:MESSAGE]
            return home.DISK_FULL if home.says_full(words) else words
        if code == -signal.SIGKILL:
            return "The system ended it, most likely because memory ran out. Try a smaller catalogue or fewer models."
        if code < 0:
            return f"It was ended by the signal {signal.Signals(-code).name}."
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"It ended with code {code}" + (f": {last[:MESSAGE]}" if last else ".")

    # --- steps that need not be done again

    def _known(self, step: JobStep) -> str | None:
        if not (self.place / step.output).exists():
            return None
        return self._made().get(step.output)

    def _remember(self, step: JobStep, made: str) -> None:
        memory = json.dumps(self._made() | {step.output: made}, indent=1) + "\n"
        try:
            write_text(self.place / f".{MADE}", memory, durable=False)
        except FileNotFoundError:
            self._look()  # says which folder was taken away
            raise

    def _made(self) -> dict[str, str]:
        return read_json(self.place / f".{MADE}")

    # --- the status

    def _end(self) -> int:
        parts = list(zip(self.job.steps, self.status.parts, strict=True))
        goals = [part.state for step, part in parts if step.goal]
        if goals and "done" not in goals:
            raise Failed(self.status.notes[0] if self.status.notes else "Nothing of it succeeded.")
        self._over("done", "Done", progress=1.0)
        return 0

    def fail(self, message: str) -> None:
        self._over("failed", "Failed", message=message[:MESSAGE])

    def _over(self, state: JobState, words: str, **changes: Any) -> None:
        self._note(state=state, words=words, left=None, pid=None, ended=time.time(), durable=True, **changes)

    def _share(self, number: int, share: float) -> float:
        """0 to 1 of the whole job, with the share 0 to 1 of the step in hand."""
        weights = [step.weight for step in self.job.steps]
        done = sum(weights[:number]) + (weights[number] * share if number < len(weights) else 0.0)
        return min(1.0, done / sum(weights))

    def _part(self, number: int, state: str, seconds: float | None = None) -> None:
        parts = list(self.status.parts)
        if number < len(parts):
            now = parts[number].seconds if seconds is None else round(seconds, 2)
            parts[number] = Part(state=state, seconds=now)  # type: ignore[arg-type]
        self.status = self.status.model_copy(update={"parts": tuple(parts)})

    def _note(self, *, durable: bool = False, **changes: Any) -> None:
        self.status = self.status.model_copy(update={**changes, "heartbeat": time.time()})
        self._written = time.monotonic()
        try:
            self.status.write(self.folder, durable=durable)
        except OSError:
            if not (self.folder / spec.FILE).exists():
                raise Gone from None
            if durable:  # else the next one may be written
                raise


class Failed(Exception):
    """With words for people."""


class TooLarge(Failed):
    """The files take more than they may."""


class Gone(Exception):
    """The job's folder was taken away."""


def read_progress(path: Path) -> tuple[float | None, str, float | None]:
    """(share 0 to 1, words, seconds left) as a command wrote them; None where it does not say."""
    try:
        progress = json.loads(path.read_text("utf-8"))
        done, of, left = float(progress["done"]), float(progress["of"]), progress["left"]
        return (
            min(1.0, max(0.0, done / of)) if of > 0 else None,
            str(progress["words"])[:300],
            None if left is None else max(0.0, float(left)),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None, "", None


def read_warnings(path: Path) -> list[str]:
    """What a command that succeeded says its result lacks."""
    try:
        return [str(words)[:MESSAGE] for words in json.loads(path.read_text("utf-8"))["warnings"]][:100]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def environment(progress: Path | None = None) -> dict[str, str]:
    """For a command: no secret of the server among it."""
    variables = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_FAMILIES)}
    path = [str(ROOT), *filter(None, [variables.get("PYTHONPATH")])]
    variables |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
    variables.pop("SEQSCOPE_PROGRESS", None)
    return variables | ({"SEQSCOPE_PROGRESS": str(progress)} if progress is not None else {})


def _end(child: subprocess.Popen[bytes] | Forked) -> None:
    """By asking first; with all that it started."""
    if child.returncode is not None:
        return
    for order, wait in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS, where all have ended
            os.killpg(child.pid, order)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(wait)
            return


def _allowed(folder: Path) -> int | None:
    try:
        return int((folder / ALLOWED).read_text("ascii"))
    except (OSError, ValueError):
        return None


def hours() -> float:
    """What one step may take. Raises SeqscopeError."""
    return number("SEQSCOPE_JOB_HOURS", HOURS)


@contextlib.contextmanager
def held(folder: Path, handed: int | None) -> Iterator[bool]:
    """Whether the lock of the folder is ours while the block runs. handed: an open file that holds it already."""
    if handed is not None:
        os.set_inheritable(handed, False)
        yield True
        return
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def is_running(folder: Path) -> bool:
    """Whether a runner lives that has the job in `folder`: it holds the lock as long as it does."""
    try:
        with (folder / LOCK).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lock", type=int, help="an open file that holds the lock of the folder")
    args = parser.parse_args()
    folder = args.folder.absolute()
    try:
        with held(folder, args.lock) as ours:
            if not ours:
                return 0  # another runner has it
            runner = Runner(folder)
            yields(NICE[runner.job.kind])
            try:
                return runner.run()
            except Failed as error:
                runner.fail(str(error))
            except Exception as error:
                runner.fail(f"The job could not be carried out ({type(error).__name__}: {error}).")
                raise
            return 1
    except Gone:
        return 0
    except (SeqscopeError, FileNotFoundError) as error:
        print(f"seqscope: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
