"""Any text to plain lines: UTF-8, line feeds alone, no byte order mark, nothing that DuckDB would stumble over.

One pass. The number of a line is that of an editor. Bytes that are none of the encoding become �, and are remembered with their
place; NUL (and SOH, at which nothing else ever is cut) becomes its Unicode picture, ␀.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from app.uploads.limits import UploadLimits
from app.uploads.refusal import Refused
from app.uploads.source import blocks

MAX_LINE = 1 << 20
"""Characters."""
PICTURES = "␀␁"
_TO_PICTURES = {0: "␀", 1: "␁"}
_CONTROLS = [chr(code) for code in range(32) if chr(code) not in "\t\n\v\f\r\x1b"]
_MARK = "\ufdd0"  # no character at all: stands for bytes that are none of the encoding until their line is known
_MOST_FAULTS = 1_000
_MOST_LONG = 1_000


class Fault(NamedTuple):
    """Bytes that are none of the encoding."""

    line: int
    offset: int
    """From 0, in the unpacked file."""
    byte: int
    """The first of them."""


@dataclass
class Plain:
    """What was written."""

    path: Path
    lines: int = 0
    quoted: bool = False
    """The quote occurs somewhere."""
    blank: bool = False
    """A line is empty."""
    faults: list[Fault] = field(default_factory=list)
    long_lines: list[int] = field(default_factory=list)
    """Lines much longer than MAX_LINE; only their beginnings were written."""
    whole: bool = True
    """False where the reading ended before the file did."""


def write_plain(
    source: Path,
    target: Path,
    encoding: str,
    limits: UploadLimits,
    *,
    gzipped: bool,
    quote: str = "",
    lines: int | None = None,
) -> Plain:
    """Writes `target`. lines: stop after so many. Raises Refused where the file is not text, or too much of it."""
    try:
        return _Pass(source, target, encoding, limits, quote, lines).run(gzipped)
    except UnicodeError as error:  # UTF-16 without the mark that tells which of two it is
        raise Refused(f"The file cannot be read in this encoding ({error}). Choose another one.")


class _Pass:
    def __init__(
        self, source: Path, target: Path, encoding: str, limits: UploadLimits, quote: str, most: int | None
    ) -> None:
        self.source, self.encoding, self.limits, self.quote, self.most = source, encoding, limits, quote, most
        self.made = Plain(target)
        self.base = 0  # bytes of the file before those that the decoder holds
        self.found: list[tuple[int, int]] = []  # (offset, byte) of faults whose line is not known yet
        self.since = 0  # characters since the last line end
        self.skipping = False  # within a line that is too long
        self.controls = self.characters = 0

    def run(self, gzipped: bool) -> Plain:
        codecs.register_error("seqscope", self._fault)
        decoder = codecs.getincrementaldecoder(self.encoding)("seqscope")
        held, first = "", True
        with self.made.path.open("wb") as file:
            for block in blocks(self.source, gzipped, self.limits):
                self.base += len(block)
                text = held + decoder.decode(block)
                held = ""
                if first and text:
                    text, first = text.removeprefix("\ufeff"), False
                if text.endswith("\r"):  # a line feed may follow
                    text, held = text[:-1], "\r"
                file.write(self._lines(text))
                if self.most is not None and self.made.lines >= self.most:
                    self.made.whole = False
                    return self.made
            last = self._lines(held + decoder.decode(b"", final=True))
            file.write(last)
            if self.since:  # the last line may lack its end
                self.made.lines += 1
                file.write(b"\n")
        return self.made

    def _lines(self, text: str) -> bytes:
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.characters += len(text)
        self.controls += sum(map(text.count, _CONTROLS))
        if self.controls > 100 and self.controls * 20 > self.characters:
            raise Refused(
                f"The file is not text: {self.controls:,} of its first {self.characters:,} characters are control characters. "
                "If it is text in UTF-16, choose that encoding."
            )
        if "\x00" in text or "\x01" in text:
            text = text.translate(_TO_PICTURES)
        if self.found:
            self._place(text)
            text = text.replace(_MARK, "\ufffd")
        self.made.quoted = self.made.quoted or (self.quote != "" and self.quote in text)
        text = self._cut(text)
        self.made.blank = self.made.blank or "\n\n" in text
        before, self.made.lines = self.made.lines, self.made.lines + text.count("\n")
        if self.most is not None and self.made.lines > self.most:
            text = "\n".join(text.split("\n", self.most - before)[:-1]) + "\n"
            self.made.lines = self.most
        if self.made.lines > 10 * self.limits.rows:  # quoted texts may have lines of their own, but not so many
            raise Refused(too_many_rows(self.made.lines, self.limits, more=True))
        return text.encode("utf-8", "replace")

    def _cut(self, text: str) -> str:
        """The text without lines that are too long; it keeps their line ends."""
        if self.skipping:
            rest = text.find("\n")
            if rest < 0:
                return ""
            text, self.skipping, self.since = text[rest:], False, 0
        end = text.rfind("\n")
        if end < 0 or self.since:
            begun = len(text) if end < 0 else text.find("\n")
            if self.since + begun > MAX_LINE:
                # Its beginning is written already: what is left of it is not.
                self._too_long(self.made.lines + 1)
                if end < 0:
                    self.skipping = True
                    return ""
                text = text[begun:]
        self.since = self.since + len(text) if end < 0 else len(text) - 1 - text.rfind("\n")
        return text

    def _too_long(self, line: int) -> None:
        self.made.long_lines.append(line)
        if len(self.made.long_lines) > _MOST_LONG:
            raise Refused("Many lines have more than a million characters. Does the file have line ends at all?")

    # --- bytes that are none of the encoding

    def _fault(self, error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        # The decoder saw what it kept of the block before, then this block; `base` is where this block ends.
        offset = self.base - len(error.object) + error.start
        self.found.append((max(0, offset), error.object[error.start]))
        if len(self.made.faults) + len(self.found) > _MOST_FAULTS:
            raise Refused(
                f"More than {_MOST_FAULTS:,} places of the file cannot be read in this encoding; the first is byte "
                f"{(self.made.faults[0].offset if self.made.faults else self.found[0][0]) + 1:,}. Choose another encoding."
            )
        return _MARK, error.end

    def _place(self, text: str) -> None:
        line, at = self.made.lines + 1, 0
        for offset, byte in self.found:
            index = text.find(_MARK, at)
            if index < 0:
                break
            line += text.count("\n", at, index)
            at = index + 1
            self.made.faults.append(Fault(line, offset, byte))
        self.found.clear()


def too_many_rows(rows: int, limits: UploadLimits, *, more: bool = False) -> str:
    return (
        f"The file has {'more than ' if more else ''}{rows:,} rows; at most {limits.rows:,} are taken here. "
        "Upload a part of it: a random sample of users keeps whole histories."
    )
