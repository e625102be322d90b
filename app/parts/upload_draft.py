"""An upload that is not finished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import drafts
from app.store.server import open_store
from app.uploads import files
from app.uploads.limits import UploadLimits
from app.uploads.runner import Progress
from engine.tabular.findings import CheckResult
from engine.tabular.limits import MB
from engine.tabular.reading import KINDS, FileKind, Guess, Reading


@dataclass
class Draft:
    """What has been brought and how it is read; in the session until it is used or discarded."""

    owner: str
    limits: UploadLimits
    round: int
    """Part of the keys of all widgets: another draft begins with new ones."""
    of: str = ""
    """The dataset that it is for, where that is there already."""
    known: Path | None = None
    """The clean items of that dataset."""
    staged: Path | None = None
    names: dict[FileKind, str] = field(default_factory=dict)
    """What the visitor's files are called; shown, and used for nothing."""
    guesses: dict[FileKind, Guess] = field(default_factory=dict)
    readings: dict[FileKind, Reading] = field(default_factory=dict)
    """As guessed, and changed by the visitor."""
    fixed: dict[FileKind, dict[str, str]] = field(default_factory=dict)
    faults: dict[FileKind, str] = field(default_factory=dict)
    """Why a file could not be read, or not like that."""
    checked: CheckResult | None = None
    fault: str = ""
    """Why the check came to nothing."""
    uploads: int = 0
    todo: Callable[[Progress], None] | None = None
    doing: str = ""

    @property
    def folder(self) -> Path:
        """Where its files lie; made when the first one comes."""
        if self.staged is None:
            self.staged = drafts.begin(self.owner)
        return self.staged

    def bounded(self, more: int = 1) -> UploadLimits:
        """The limits of a step that begins now: it takes no more of the disk than its owner has left. more: bytes that it brings.

        Raises QuotaReached where they have nothing left.
        """
        quota = open_store().quota
        quota.check(self.owner, bytes=more)
        return self.limits.model_copy(update={"disk": max(MB, min(self.limits.disk, quota.left(self.owner)))})

    def key(self, *words: str) -> str:
        return "_".join(("later", self.of, *words, str(self.round)) if self.of else ("upload", *words, str(self.round)))

    @property
    def kinds(self) -> tuple[FileKind, ...]:
        """The files that it may have."""
        return ("log",) if self.of else KINDS

    def changed(self) -> None:
        """What was checked is no longer what would be used."""
        self.checked, self.fault = None, ""

    def forget(self, what: FileKind) -> None:
        for of_file in (self.names, self.guesses, self.readings, self.fixed, self.faults):
            of_file.pop(what, None)
        files.forget(self.folder, [what])
        self.uploads += 1
        self.changed()

    @property
    def stored(self) -> dict[str, Any]:
        """How the files are read, as the store keeps it."""
        return {what: reading.model_dump(mode="json") for what, reading in files.readings(self.folder).items()}
