"""The queue: a thread of the server that starts runners, at most so many at a time, and loses none.

Jobs that are over soon (`Job.short`: app/jobs/kinds.py says which) have runners of their own, so that none waits for a long one.

    queue = Queue(home.root() / "jobs", on_change=changed, allowed=allowed)
    queue.start()
    queue.submit(job)
    queue.status(job.id).progress

SEQSCOPE_JOBS           runners of long jobs at a time (default 1)
SEQSCOPE_JOBS_SHORT     runners of short ones beside them (default 1)
SEQSCOPE_JOBS_WAITING   jobs that may wait or run, of all owners together (default 50)

Owners take turns (turns.py), and have one runner of each length at a time. A job that was to be short and goes on for long
leaves its place and goes on among the long ones, so that there are never more runners than the two numbers say. Half of the
places are kept for owners who have nothing in the queue, and half for other networks than that of whoever asks: a key costs
nothing, an address costs something. Many addresses still fill the queue; behind a proxy that does not tell addresses, half of it
is all that can be had.

Of several servers with one home, one alone starts runners; when it ends, the next takes over. A server that starts again finds
the runners that live, and starts those again that do not.
"""

import contextlib
import fcntl
import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, get_args

from app.jobs import spec, status
from app.jobs.launch import Launcher, Local, OnRay
from app.jobs.runner import ALLOWED, CANCEL, LOG
from app.jobs.spec import Job
from app.jobs.status import Status, is_short
from app.jobs.turns import Ahead, in_turn
from engine.errors import SeqscopeError
from engine.files import write_text
from engine.machine import settings, whole_number
from engine.writing import count

log = logging.getLogger("seqscope.jobs")
TICK = 1.0
"""Seconds between two looks at the folders."""
PERMIT = 10.0
"""Seconds after which a runner is told anew how many bytes it may take: other jobs and uploads share what is left."""
TRIES = 3
"""How often a lost runner is replaced before a step is done."""
LEAD = "queue.lock"
WAITING = "Waiting for its turn"
_ID = re.compile(r"[a-z0-9]{1,64}")
Told = Callable[[Job, Status], None]
Pair = tuple[Job, Status]
Lane = Literal["short", "long"]
LANES: tuple[Lane, ...] = get_args(Lane)


class Full(SeqscopeError):
    """There are as many jobs as may be."""


class Queue:
    """All methods may be called from any thread."""

    def __init__(
        self,
        root: Path,
        *,
        runners: int | None = None,
        short: int | None = None,
        waiting: int | None = None,
        launcher: Launcher | None = None,
        on_change: Told | None = None,
        allowed: Callable[[Job], int | None] | None = None,
        tick: float = TICK,
    ) -> None:
        """runners, short, waiting: in place of the variables.

        on_change: is told of every job whose state is another than when it was last told of, all once at the start.

        allowed: how many bytes a job's files may take, those that are there included; None: as many as they like.
        """
        self.root = root
        at_once = settings(
            {
                "short": lambda: whole_number("SEQSCOPE_JOBS_SHORT", 1, least=1) if short is None else short,
                "long": lambda: whole_number("SEQSCOPE_JOBS", 1, least=1) if runners is None else runners,
                "waiting": lambda: whole_number("SEQSCOPE_JOBS_WAITING", 50, least=1) if waiting is None else waiting,
            }
        )
        self.waiting = at_once.pop("waiting")
        self.runners: dict[Lane, int] = {lane: at_once[lane] for lane in LANES}
        address = os.environ.get("SEQSCOPE_RAY_ADDRESS")
        self.launcher = launcher or (OnRay(address) if address else Local())
        self._on_change = on_change or (lambda job, now: None)
        self._allowed = allowed or (lambda job: None)
        self._tick = tick
        self._ended: dict[Lane, dict[str, float]] = {lane: {} for lane in LANES}
        """Owner → when a runner of theirs last ended, in unix seconds; from folders, and of those that were deleted since."""
        self._networks: dict[str, str] = {}
        """Job → where it was asked from. Forgotten when the server ends."""
        self._known: dict[str, str] = {}
        self._permitted = 0.0
        """When runners were last told how much they may take, by time.monotonic."""
        self._cache: dict[str, tuple[tuple[int, int, int] | None, Job, Status]] = {}
        self._wake, self._stop = threading.Event(), threading.Event()
        self._lock = threading.RLock()
        self._lead: IO[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Nothing where it has begun."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._stop.clear()
                self._thread = threading.Thread(target=self._loop, name="seqscope-jobs", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Ends the thread. Runners live on."""
        self._stop.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(10)
        self._release()

    # --- what pages ask

    def submit(self, job: Job, given: Path | None = None, network: str = "") -> None:
        """Takes the job; it begins when it is its turn. given: a folder that becomes its FILES; network: where it is asked from,
        "" where nobody knows.

        Raises Full, or SeqscopeError where the job's folder cannot be written.
        """
        with self._lock:
            self._check_room(job, network)
            staged = self.root / f".{job.id}.{secrets.token_hex(4)}"
            try:
                with _put_into_words():
                    staged.mkdir(mode=0o700, parents=True)
                    if given is not None:
                        os.rename(given, staged / spec.FILES)
                    job.write(staged)
                    Status(words=WAITING).write(staged, durable=True)
                    target = self.folder(job.id)
                    if target.exists():
                        raise SeqscopeError(f"There is a job {job.id} already.")
                    os.rename(staged, target)
                self._networks[job.id] = network
            finally:
                shutil.rmtree(staged, ignore_errors=True)
        self._wake.set()

    def job(self, id: str) -> Job:
        """Raises SeqscopeError where there is none."""
        return spec.read(self.folder(id))

    def status(self, id: str) -> Status:
        """That of a job nobody has begun, where there is no such job."""
        return status.read(self.folder(id))

    def cancel(self, id: str) -> None:
        """The job is to end; one that waits ends at once. Nothing where it is over."""
        folder = self.folder(id)
        if self.status(id).over or not folder.is_dir():
            return
        with contextlib.suppress(FileNotFoundError):
            (folder / CANCEL).touch()
        self._wake.set()

    def cancelling(self, id: str) -> bool:
        return (self.folder(id) / CANCEL).exists() and not self.status(id).over

    def retry(self, id: str, network: str = "") -> None:
        """Once more, from the step that failed. Raises SeqscopeError where there is none, or where it is not over or
        cannot be written, and Full."""
        with self._lock:
            job, now, folder = self.job(id), self.status(id), self.folder(id)
            if not now.over:
                raise SeqscopeError("The job is waiting or running already.")
            self._check_room(job, network)
            self._networks[id] = network
            first = next((n for n, part in enumerate(now.parts) if part.state in ("failed", "left out")), now.step)
            parts = tuple(
                part if part.state == "done" else part.model_copy(update={"state": "waiting"}) for part in now.parts
            )
            changes = {
                "state": "queued", "step": first, "parts": parts, "message": "", "notes": (), "tries": 0, "ended": None,
                "words": WAITING, "progress": 0.0,
            }  # fmt: skip
            with _put_into_words():
                (folder / CANCEL).unlink(missing_ok=True)
                now.model_copy(update=changes).write(folder, durable=True)
            self._known.pop(id, None)  # cancelled at once, it ends as it had ended before: that is news, too
        self._wake.set()

    def ahead(self, id: str) -> Ahead:
        """The jobs that come before this one; none where it is running or the next, or over."""
        if self.status(id).state != "queued":  # as of nearly all: no need to look at everybody's
            return Ahead(0, 0)
        unfinished = [(job, now) for job, now in self._all() if not now.over]
        this = next((pair for pair in unfinished if pair[0].id == id and pair[1].state == "queued"), None)
        if this is None:
            return Ahead(0, 0)
        lane, place = _lane(*this), self._place(this[0])
        ordered = self._ordered([pair for pair in unfinished if _lane(*pair) == lane], lane)
        before = ordered[: ordered.index(this[0])]
        for job, now in unfinished:
            if now.state == "running" and (_lane(job, now) == lane or self._place(job) == place):
                before.append(job)
        same_owner = sum(_owner(job) == _owner(this[0]) for job in before)
        return Ahead(same_owner, len(before) - same_owner)

    def log(self, id: str, most: int = 65_536) -> str:
        """What the commands said, the last of it."""
        try:
            with (self.folder(id) / LOG).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - most))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def folder(self, id: str) -> Path:
        if not _ID.fullmatch(id):
            raise ValueError(f"not an id: {id!r}")
        return self.root / id

    # --- the thread

    def _loop(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
            except Exception:  # the next look may be luckier; a thread that ended would leave every job waiting
                log.exception("the queue of jobs")
            self._wake.wait(self._tick)
            self._wake.clear()

    def look(self) -> None:
        """One look at all folders; what the thread does again and again."""
        with self._lock:
            leads = self._leads()
            jobs = self._all()
            if leads:
                self._carry_on(jobs)
                jobs = self._all()
        for job, now in jobs:
            if self._known.get(job.id) != now.state:
                self._known[job.id] = now.state
                try:
                    self._on_change(job, now)
                except Exception:
                    self._known.pop(job.id, None)  # to be told again
                    log.exception("who is told of job %s", job.id)

    def _carry_on(self, jobs: Sequence[Pair]) -> None:
        """Stops what was cancelled, takes up what lost its runner, and begins what may begin."""
        running: Counter[Lane] = Counter()
        candidates: dict[Lane, list[Pair]] = {lane: [] for lane in LANES}
        busy: dict[Lane, set[str]] = {lane: set() for lane in LANES}
        busy_folders: set[Path] = set()
        anew = time.monotonic() - self._permitted >= PERMIT
        self._permitted = time.monotonic() if anew else self._permitted
        for job, now in jobs:
            lane = _lane(job, now)
            if now.ended is not None:
                ended = self._ended[lane]
                ended[_owner(job)] = max(now.ended, ended.get(_owner(job), 0.0))
            if now.over:
                continue
            folder = self.folder(job.id)
            if self.launcher.alive(folder):
                running[lane] += 1
                busy_folders.add(job.place(folder))
                busy[lane].add(_owner(job))
                if anew:
                    with contextlib.suppress(OSError):  # deleted, or the disk is full: what it was told stays
                        self._permit(job)
                if (folder / CANCEL).exists():
                    self.launcher.stop(folder)
            else:
                # its runner may have ended between the two looks
                after = self._without(folder, job, status.read(folder))
                if after is not None and not after.over:
                    candidates[_lane(job, after)].append((job, after))
        for lane in LANES:
            for job in self._ordered(candidates[lane], lane, busy[lane]):
                workplace = self._place(job)
                # two jobs of one dataset would be in each other's way; one owner has one runner of each length
                free = workplace not in busy_folders and _owner(job) not in busy[lane]
                if free and running[lane] < self.runners[lane]:
                    busy[lane].add(_owner(job))
                    running[lane] += self._begin(job)
                if lane == "short" or free:  # no long job begins in a dataset where a short one waits
                    busy_folders.add(workplace)

    def _without(self, folder: Path, job: Job, now: Status) -> Status | None:
        """What becomes of a job without a runner that is not over; None where that cannot be noted."""
        if (folder / CANCEL).exists():
            return self._write(
                folder, now, state="cancelled", words="Cancelled", pid=None, left=None, ended=time.time()
            )
        if now.state == "running":  # it died
            tries = now.tries + 1
            if tries > TRIES:
                step = job.steps[min(now.step, len(job.steps) - 1)].title
                message = f"{step}: the process was lost {tries} times, most likely because memory ran out."
                return self._failed(folder, now, message, tries=tries)
            log.warning("job %s lost its runner (%d of %d)", job.id, tries, TRIES)
            return self._write(
                folder, now, state="queued", words="Interrupted; it goes on from here", tries=tries, pid=None
            )
        return now

    def _check_room(self, job: Job, network: str) -> None:
        """Raises Full."""
        unfinished = [other for other, now in self._all() if not now.over]
        again = "Try again when some have ended."
        if len(unfinished) >= self.waiting:
            raise Full(f"No more than {count(self.waiting, 'job')} may wait or run here. {again}")
        same_owner = sum(_owner(other) == _owner(job) for other in unfinished)
        if same_owner and len(unfinished) >= self.waiting - self.waiting // 2:
            raise Full(
                f"{count(len(unfinished), 'job is', 'jobs are')} waiting or running here, {same_owner} of them yours; the places "
                "that are left are for visitors who have none. Try again when one of yours has ended."
            )
        near = sum(self._networks.get(other.id) == network for other in unfinished) if network else 0
        if near >= max(1, self.waiting // 2):
            raise Full(f"Half of the places for jobs are taken from the network that you come from. {again}")

    def _place(self, job: Job) -> Path:
        return job.place(self.folder(job.id))

    def _ordered(self, jobs: Sequence[Pair], lane: Lane, busy: Collection[str] | None = None) -> list[Job]:
        """Those of a lane that wait, in the order of their turns. busy: owners with a runner; None: as their states say."""
        if busy is None:
            busy = {_owner(job) for job, now in jobs if now.state == "running"}
        waiting = [(_owner(job), job.created.timestamp(), job) for job, now in jobs if now.state == "queued"]
        return in_turn(waiting, self._ended[lane], busy)

    def _begin(self, job: Job) -> int:
        """1 where a runner was started, else 0."""
        folder = self.folder(job.id)
        try:
            self._permit(job)
            self.launcher.start(folder)
        except (OSError, SeqscopeError) as error:
            now = status.read(folder)
            if folder.is_dir():
                self._failed(folder, now, f"No process could be started for it ({error}).")
            return 0
        return 1

    def _permit(self, job: Job) -> None:
        if (most := self._allowed(job)) is not None:
            write_text(self.folder(job.id) / ALLOWED, f"{most}\n", durable=False)

    def _failed(self, folder: Path, now: Status, message: str, **changes: object) -> Status | None:
        ended = {"state": "failed", "words": "Failed", "pid": None, "left": None, "ended": time.time()}
        return self._write(folder, now, message=message, **ended, **changes)

    def _write(self, folder: Path, now: Status, **changes: object) -> Status | None:
        """None where that cannot be had, since the folder went or is damaged, or the disk is full: the others go on."""
        after = now.model_copy(update=changes)
        try:
            after.write(folder, durable=True)
        except OSError as error:
            if folder.is_dir():
                log.warning("how far job %s is cannot be written (%s)", folder.name, error)
            return None
        return after

    def _all(self) -> list[tuple[Job, Status]]:
        """All jobs that can be read, in the order in which they came."""
        jobs = []
        if self.root.is_dir():
            for name in os.listdir(self.root):
                if _ID.fullmatch(name) and (entry := self._one(name)) is not None:
                    jobs.append(entry)
        there = {job.id for job, _ in jobs}
        for id in list(self._cache):
            if id not in there:
                self._cache.pop(id, None)  # its folder is gone
                self._networks.pop(id, None)
                self._known.pop(id, None)
        return sorted(jobs, key=lambda pair: (pair[0].created, pair[0].id))

    def _one(self, id: str) -> tuple[Job, Status] | None:
        """Read again only where its status was replaced: a job itself never changes. No Path for each: they are many."""
        try:
            stat = os.stat(os.path.join(self.root, id, status.FILE))
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        except OSError:
            stamp = None
        cached = self._cache.get(id)
        if cached is not None and cached[0] == stamp and stamp is not None:
            return cached[1], cached[2]
        folder = self.folder(id)
        try:
            job = cached[1] if cached is not None and stamp is not None else spec.read(folder)
        except SeqscopeError:
            self._cache.pop(id, None)
            return None
        now = status.read(folder)
        self._cache[id] = (stamp, job, now)
        return job, now

    # --- one of several servers

    def _leads(self) -> bool:
        if self._lead is not None:
            return True
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = (self.root / LEAD).open("ab")
        except OSError as error:
            log.warning("jobs cannot be started: %s", error)
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._lead = file
        return True

    def _release(self) -> None:
        if self._lead is not None:
            self._lead.close()
            self._lead = None


@contextlib.contextmanager
def _put_into_words() -> Iterator[None]:
    """What the system says while a job is written, as SeqscopeError."""
    try:
        yield
    except OSError as error:
        raise SeqscopeError(f"The job cannot be written ({error.strerror or error}).") from None


def _lane(job: Job, now: Status) -> Lane:
    return "short" if is_short(job, now) else "long"


def _owner(job: Job) -> str:
    """A job of nobody waits for no other of nobody's."""
    return job.owner or job.id
