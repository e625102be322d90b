"""Progress for people and for pipes: a bar that redraws on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO


def duration(seconds: float) -> str:
    """`seconds` in words short enough for a progress line: ``42s``, ``3m10s``, ``2h05m``."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


class Progress:
    """Shows how far a piece of work of known size has come.

    On a terminal one line is redrawn in place; in a pipe a whole line is written at most every `every` seconds.
    """

    def __init__(self, total: int, label: str, *, stream: TextIO | None = None, every: float = 10.0) -> None:
        self.total, self.label, self.every = max(total, 1), label, every
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream.isatty()
        self.started = self.shown = time.monotonic()
        self.width = 0

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        if done < self.total and now - self.shown < (0.1 if self.terminal else self.every):
            return
        self.shown = now
        left = (now - self.started) * (self.total - done) / max(done, 1)
        share = done / self.total
        if self.terminal:
            bar = "█" * int(share * 20)
            text = f"{self.label} {bar:<20} {share:4.0%} {note} {duration(left)} left"
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
            if done >= self.total:
                self.stream.write("\r" + " " * self.width + "\r")
        else:
            self.stream.write(f"{self.label} {share:.0%} {note} {duration(left)} left\n")
        self.stream.flush()
