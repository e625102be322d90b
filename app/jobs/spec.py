"""What a job is to do: job.json, written once.

A job is a list of steps, each a command line in the dataset's own folder, so that no file names where that lies. A step that is
carried out again goes on where it was: the engine's commands do.
"""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.store.records import JobKind
from engine.errors import SeqscopeError
from engine.files import write_text

FILE = "job.json"
FILES = "files"
"""A folder in the job's own: what it was given, and what it makes."""
_PROGRAM = r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*$"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JobStep(Strict):
    """One command: python -m `program` `words`, in the job's folder of files."""

    title: str = Field(min_length=1, max_length=200)
    """What it does, for people: Train SASRec."""
    words: tuple[str, ...]
    program: str = Field(default="engine", pattern=_PROGRAM)
    key: str = ""
    """A name by which later steps may need it."""
    needs: tuple[str, ...] = ()
    """Steps without which this one has nothing to do: it is left out where one of them failed."""
    may_fail: bool = False
    """The others go on where it fails; why is noted."""
    goal: bool = False
    """What the job is for: where all of these failed, so did the job."""
    weight: float = Field(default=1.0, gt=0)
    """Its share of the work; seconds, where all steps of a job have them (`Job.timed`)."""
    inputs: tuple[str, ...] = ()
    output: str = ""
    """Files that it reads and the one that it writes: where that was made of the very same, the step is not done again."""
    run: str = ""
    """The folder of a training, which has curve.json as it grows."""

    @model_validator(mode="after")
    def _whole(self) -> JobStep:
        if any("\0" in word for word in self.words):
            raise ValueError("a word with a NUL cannot be passed to a program")
        return self

    def made_of(self, folder: Path) -> str | None:
        """What its output depends on, in a digest; None where an input is missing, or where it is always done anew."""
        if not self.output:
            return None
        digest = hashlib.sha256(json.dumps([self.program, self.words]).encode())
        for name in self.inputs:
            try:
                with (folder / name).open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError:
                return None
        return digest.hexdigest()


class Job(Strict):
    version: Literal[1] = 1
    id: str = Field(pattern=r"^[a-z0-9]{1,64}$")
    kind: JobKind
    title: str = Field(min_length=1, max_length=200)
    owner: str = ""
    dataset: str = ""
    """Whose it is, and of what: for the store. Nothing here reads them."""
    folder: str = ""
    """Where the steps work; relative to the job's own folder, so that all may be moved together. "": the job's folder."""
    created: AwareDatetime
    steps: tuple[JobStep, ...] = Field(min_length=1, max_length=1_000)
    timed: bool = False
    """The weights of the steps are seconds."""
    short: bool = False
    """It is over soon, so that it has runners of its own and waits for no long one (app/jobs/queue.py)."""

    @model_validator(mode="after")
    def _ordered(self) -> Job:
        known: set[str] = set()
        for step in self.steps:
            if missing := [need for need in step.needs if need not in known]:
                raise ValueError(f"{step.title} needs {missing[0]}, which no step before it is called")
            known.add(step.key)
        return self

    def place(self, folder: Path) -> Path:
        """Where the steps work. folder: the job's own."""
        return (folder / self.folder).resolve()

    def write(self, folder: Path) -> None:
        write_text(folder / FILE, self.model_dump_json(indent=1) + "\n")


def is_passing(error: Exception) -> bool:
    """Whether a file cannot be opened for what the system says of itself, and not of the file: too many are open, say."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def read(folder: Path) -> Job:
    """Raises SeqscopeError where there is no job, or one that this version does not know, and OSError where that `is_passing`."""
    try:
        return Job.model_validate_json((folder / FILE).read_bytes())
    except FileNotFoundError:
        raise SeqscopeError(f"There is no job in {folder.name}.") from None
    except (OSError, ValidationError) as error:
        if is_passing(error):
            raise
        raise SeqscopeError(f"The job {folder.name} cannot be read ({str(error).splitlines()[0]}).") from None
