"""How far a job is: status.json, written by whoever has the job in hand and read by everybody.

It is replaced by renaming, so that a reader finds the one before or this one, never half of either.
"""

import shutil
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from app.jobs.spec import Job, Strict, is_passing
from app.store.records import ENDED, JobState
from engine.files import write_text

FILE = "status.json"


class Part(Strict):
    """How far a step is."""

    state: Literal["waiting", "running", "done", "failed", "left out"] = "waiting"
    seconds: float = Field(default=0.0, ge=0)
    """What it took, over all its beginnings."""


class Status(Strict):
    version: Literal[1] = 1
    state: JobState = "queued"
    step: int = Field(default=0, ge=0)
    """The one in hand, from 0; as many as there are when all is done."""
    parts: tuple[Part, ...] = ()
    progress: float = Field(default=0.0, ge=0, le=1)
    words: str = ""
    """What is being done, in words."""
    left: float | None = None
    """Seconds, where that can be said."""
    message: str = ""
    """Why it failed."""
    notes: tuple[str, ...] = ()
    """What failed without the rest."""
    pid: int | None = None
    heartbeat: float = 0.0
    """When the runner last wrote, in unix seconds."""
    tries: int = Field(default=0, ge=0)
    """How often a runner was lost since a step was last done."""
    outlasted: bool = False
    """It was to be short and was not: it goes on among the long ones."""
    started: float | None = None
    ended: float | None = None

    @property
    def over(self) -> bool:
        return self.state in ENDED

    def write(self, folder: Path, *, durable: bool = False) -> None:
        if (folder / FILE).is_dir():  # nothing could take its place, and a runner would be begun again and again
            shutil.rmtree(folder / FILE)
        write_text(folder / FILE, self.model_dump_json() + "\n", durable=durable)


def is_short(job: Job, now: Status) -> bool:
    """Whether it counts among the short ones: it was to be short, and has not gone on for long."""
    return job.short and not now.outlasted


def read(folder: Path) -> Status:
    """That of a job nobody has begun, where there is none or where it cannot be read: a runner then begins, and every step that
    was done says so quickly. Raises OSError where that `is_passing`."""
    try:
        return Status.model_validate_json((folder / FILE).read_bytes())
    except (OSError, ValidationError) as error:
        if is_passing(error):
            raise
        return Status()
