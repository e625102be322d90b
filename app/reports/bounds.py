"""How much a batch of histories may ask for where somebody else's file is read: as much as an upload may, and so many answers.

Without bounds (None) everything passes: the command line reads one's own files.
"""

from __future__ import annotations

from app.uploads.limits import UploadLimits
from engine.errors import SeqscopeError
from engine.tabular.reading import MB

PART = "Divide it, and take a part at a time."


class TooMuch(SeqscopeError):
    """A bound was reached. The message names it and says what to do."""


class Bounds(UploadLimits):
    """rows: events of all histories together; disk: that sorting may take; seconds: to read and sort."""

    answers: int = 20_000_000
    """Histories times models times items of a list."""
    output: int = 1024 * MB
    """Bytes of what comes out."""


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
