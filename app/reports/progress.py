"""How far a long piece of work is, for people and for the program that started it.

SEQSCOPE_PROGRESS names a file that is replaced as a whole, at most once a second, as the engine's commands do it:

    {"words": "SASRec", "done": 4096, "of": 100000, "left": 42.0}
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from engine.console import tell

_EVERY = 1.0  # seconds between two writings of the file
_SAID = 10.0  # seconds between two lines where nobody watches


class Progress:
    """update(done) as often as one likes."""

    def __init__(self, of: int, *, begun: int = 0, stream: TextIO | None = None) -> None:
        """begun: what was done before, in another run."""
        self.of, self.begun = of, begun
        self.stream = sys.stderr if stream is None else stream
        self.started = time.monotonic()
        self._noted = self._said = -_SAID

    def update(self, done: int, words: str) -> None:
        now = time.monotonic()
        fresh = done - self.begun
        left = (now - self.started) * (self.of - done) / fresh if fresh > 0 else None
        if done >= self.of or now - self._noted >= _EVERY:
            self._noted = now
            tell(words, done, self.of, left)
        watched = self.stream.isatty()
        if done < self.of and now - self._said < (0.2 if watched else _SAID):
            return
        self._said = now
        text = f"{words} {done:,} of {self.of:,}" + ("" if left is None else f", {left:,.0f} s left")
        self.stream.write(f"\r{text:<78}" if watched else f"{text}\n")
        if watched and done >= self.of:
            self.stream.write("\r" + " " * 78 + "\r")
        self.stream.flush()
