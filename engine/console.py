"""Progress for people, for pipes and for programs: a bar that redraws on a terminal, a plain line every few seconds elsewhere,
and a small file for whoever started this process.

The environment variable SEQSCOPE_PROGRESS names that file. It is replaced as a whole, at most once a second:

    {"words": "embed", "done": 3.5, "of": 10, "left": 42.0}

`left` is in seconds. Where the end of a step cannot be foreseen, `of` is 0 and `left` null (see `stage`). `warnings`, where there
are any: what the result lacks (see `warn`).
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import TextIO

PROGRESS = "SEQSCOPE_PROGRESS"
EVERY = 1.0
"""Seconds between two writings of the file."""
LINE = 10.0
"""Seconds between two lines in a pipe."""
_parts: list[tuple[float, int, str]] = []
"""(done, of, words) of the whole that the work in hand is a part of; see `part`."""
_warnings: list[str] = []


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

    On a terminal one line is redrawn in place; in a pipe a whole line is written at most every `LINE` seconds.
    """

    def __init__(
        self, total: int, label: str = "", *, title: str | None = None, begun: int = 0, stream: TextIO | None = None
    ) -> None:
        """title: what the file has for `label`, where that is another. begun: what was done before, in another run."""
        self.total, self.label, self.begun = max(total, 1), label, begun
        self.title = label if title is None else title
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream.isatty()
        self.started = self.shown = time.monotonic()
        self.noted = -EVERY
        self.width = 0
        self.note = self.brief = ""

    def update(self, done: float, note: str | None = None, brief: str | None = None) -> None:
        """done: of `total`, and parts of one count; note: further words, those of before where there are none; brief: what the
        file has of them, without the figures that only a log needs; None: all of it."""
        now = time.monotonic()
        if note is not None:
            self.note, self.brief = note, note if brief is None else brief
        fresh, seconds = done - self.begun, now - self.started
        # what comes first is mostly getting ready: an estimate needs a hundredth of the work, or a minute of it
        known = fresh > 0 and (fresh >= self.total / 100 or seconds >= 60)
        left = seconds * (self.total - done) / fresh if known else None
        if done >= self.total or now - self.noted >= EVERY:
            self.noted = now
            tell(f"{self.title} {self.brief}".strip(), done, self.total, left)
        if done < self.total and now - self.shown < (0.1 if self.terminal else LINE):
            return
        self.shown = now
        share, rest = done / self.total, "" if left is None else f"{duration(left)} left"
        if self.terminal:
            bar = "█" * int(share * 20)
            text = f"{self.label} {bar:<20} {share:4.0%} {self.note} {rest}".lstrip()
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
            if done >= self.total:
                self.stream.write("\r" + " " * self.width + "\r")
        else:
            self.stream.write(f"{self.label} {share:.0%} {self.note} {rest}\n".lstrip())
        self.stream.flush()


def note(words: str) -> None:
    """A line for people, where standard output is for results."""
    print(words, file=sys.stderr)


def stage(words: str) -> None:
    """What is being done now, of which nobody can say how long it takes. Into the file alone."""
    tell(words, 0, 0, None)


def warn(words: str) -> None:
    """What the result lacks though the command succeeds: a line for people, and into the file, to be shown with the result."""
    note(words)
    _warnings.append(words)
    tell("", 0, 0, None)


@contextlib.contextmanager
def part(done: int, of: int, words: str) -> Iterator[None]:
    """In the block, what the file is told is of a part after `done` of `of`, called `words`: shares become those of the whole."""
    _parts.append((done, of, words))
    try:
        yield
    finally:
        _parts.pop()


def tell(words: str, done: float, of: int, left: float | None) -> None:
    """Into the file that SEQSCOPE_PROGRESS names, if it does. left: seconds.

    By renaming, so that a reader finds a whole file. Progress is not worth failing for: what cannot be written is not."""
    path = os.environ.get(PROGRESS)
    if not path:
        return
    if _parts:
        before, parts, called = _parts[-1]
        words, done, of, left = f"{called}, {words}", before + (done / of if of else 0.0), parts, None
    state: dict[str, object] = {
        "words": words, "done": done, "of": of, "left": None if left is None else round(left, 1)
    }  # fmt: skip
    if _warnings:
        state["warnings"] = _warnings
    staged = f"{path}.{os.getpid()}.part"
    try:
        with open(staged, "w", encoding="utf-8") as file:
            json.dump(state, file, ensure_ascii=False)
        os.replace(staged, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(staged)
