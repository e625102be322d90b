"""How much a batch of histories may ask for where somebody else's file is read: as much as an upload may, and no longer.

    watch = Watch(path, Bounds.of_uploads())
    watch.unpacked()        # a gzip file is counted before anything is made of it
    watch.rows(100_000)     # while it is read; raises TooMuch as soon as it is too much, or takes too long
    watch.read()            # the clock stops: answers take as long as they take

Without bounds (None) it lets everything pass: the command line reads one's own files.
"""

from __future__ import annotations

import gzip
import time
import zlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from app.uploads.limits import UploadLimits
from engine.errors import SeqscopeError
from engine.tabular.reading import MB

_BLOCK = 1 << 20


class TooMuch(SeqscopeError):
    """A bound was reached. The message names it and says what to do."""


class Bounds(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    text: int
    """Bytes of a file once it is unpacked."""
    rows: int
    """Events of all histories together."""
    spill: int
    """Bytes on the disk that sorting may take."""
    seconds: int
    """To read and sort."""
    answers: int = 20_000_000
    """Histories times models times items of a list."""
    output: int = 1024 * MB
    """Bytes of what comes out."""

    @classmethod
    def of_uploads(cls) -> Bounds:
        """Raises SeqscopeError where a variable of the server is not a number."""
        return cls.of(UploadLimits.of_environment())

    @classmethod
    def of(cls, limits: UploadLimits) -> Bounds:
        return cls(text=limits.text, rows=limits.rows, spill=limits.disk, seconds=limits.seconds)


class Watch:
    """Over the reading of one file."""

    def __init__(self, path: Path, bounds: Bounds | None) -> None:
        self.name, self.path, self.bounds = path.name, path, bounds
        self._rows = self._text = 0
        self._until = None if bounds is None else time.monotonic() + bounds.seconds

    @property
    def left(self) -> float | None:
        """Seconds; None: as many as it likes."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def unpacked(self) -> None:
        """Counts what is in a gzip file, without keeping it."""
        if self.bounds is None or not self.name.lower().endswith(".gz"):
            return
        total = 0
        try:
            with gzip.open(self.path, "rb") as file:
                while block := file.read(_BLOCK):
                    total += len(block)
                    self._check_text(total)
                    self.on_time()
        except (gzip.BadGzipFile, zlib.error, EOFError):
            raise SeqscopeError(f"{self.name} is damaged or was cut off. Pack it again, or take it unpacked.") from None

    def text(self, more: int) -> None:
        self._text += more
        self._check_text(self._text)

    def rows(self, more: int) -> None:
        self._rows += more
        if self.bounds is not None and self._rows > self.bounds.rows:
            raise TooMuch(
                f"{self.name} has more than {self.bounds.rows:,} events, which is the most that is read here. {_PART}"
            )
        self.on_time()

    def on_time(self) -> None:
        if self._until is not None and time.monotonic() > self._until:
            raise self.late()

    def late(self) -> TooMuch:
        seconds = 0 if self.bounds is None else self.bounds.seconds
        return TooMuch(f"Reading {self.name} took longer than {seconds:,} seconds and was ended. {_PART}")

    def read(self) -> None:
        self._until = None

    def _check_text(self, total: int) -> None:
        if self.bounds is not None and total > self.bounds.text:
            raise TooMuch(
                f"{self.name} holds more than {self.bounds.text // MB:,} MB once it is unpacked, which is more than is read "
                f"here. {_PART}"
            )


_PART = "Divide it, and take a part at a time."


def too_many_answers(histories: int, models: int, k: int, bounds: Bounds | None) -> None:
    """Raises TooMuch."""
    if bounds is not None and histories * models * k > bounds.answers:
        raise TooMuch(
            f"{histories:,} histories, {models:,} models and {k:,} items each would be {histories * models * k:,} rows; at most "
            f"{bounds.answers:,} are made here. Choose fewer models, shorter lists or fewer histories."
        )


def too_large(size: int, bounds: Bounds | None) -> None:
    """Of what comes out. Raises TooMuch."""
    if bounds is not None and size > bounds.output:
        raise TooMuch(
            f"The lists take more than {bounds.output // MB:,} MB, which is the most that is made here. Choose Parquet, no "
            "titles, fewer models, shorter lists or fewer histories."
        )
