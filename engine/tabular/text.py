"""Bytes of any kind to plain lines of text: what a file is, which encoding it is in, and its lines in UTF-8.

UTF-8 proves itself: text in another encoding is hardly ever valid UTF-8. Nothing proves the others, so the lines that it
matters for are weighed by charset-normalizer among the few encodings that catalogues come in, and shown to be looked at.

Plain lines are UTF-8, end in line feeds alone, have no byte order mark and nothing that DuckDB would stumble over. The number of
a line is that of an editor. Bytes that are none of the encoding become �, and are remembered with their place; NUL and SOH
become their Unicode pictures, ␀ and ␁. A few kilobytes of gzip can hold gigabytes of zeros; what is unpacked is counted while it
is.
"""

import codecs
import contextlib
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from charset_normalizer import from_bytes

from engine.errors import Refused, SeqscopeError
from engine.files import expect_file
from engine.tabular.reading import ENCODINGS, MB, UNLIMITED, Limits, ReadingChoice

MAX_LINE = 1 << 20
"""Characters."""
_TO_PICTURES = {0: "␀", 1: "␁"}
_CONTROLS = bytes(code for code in range(32) if code not in b"\x01\t\n\v\f\r\x1b")
_MARK = "\ufdd0"  # no character at all: stands for bytes that are none of the encoding until their line is known
_SEPARATOR = re.compile(r'\A"?sep=[^\r\n]"?(?=[\r\n])')  # Excel's first line
_MOST_FAULTS = 1_000
_MOST_LONG = 1_000
_HEAD = 2_000  # lines that `head` looks at


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
    limits: Limits,
    *,
    gzipped: bool,
    quote: str = "",
    lines: int | None = None,
    strict: bool = False,
) -> Plain:
    """Writes `target`. lines: stop after so many; strict: bytes that are none of the encoding are refused, else remembered.

    Raises Refused where the file is not text, or too much of it.
    """
    decoding = _Pass(Plain(target), encoding, limits, quote, lines, strict)
    with target.open("wb") as file:
        file.writelines(decoding.run(source, gzipped))
    return decoding.made


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Says of which file something is refused. Raises SeqscopeError."""
    expect_file(path)
    try:
        yield
    except Refused as refused:
        raise SeqscopeError(f"{path}: {refused}")


def head(path: Path, encoding: str = "utf-8") -> list[str]:
    """The first lines of a text that are not blank, without their ends. Raises Refused as `write_plain` does."""
    decoding = _Pass(Plain(path), encoding, UNLIMITED, "", _HEAD, strict=True)
    text = b"".join(decoding.run(path, content_kind(path) == "gzip")).decode("utf-8")
    return [line for line in text.split("\n") if line.strip()]


class _Pass:
    def __init__(self, made: Plain, encoding: str, limits: Limits, quote: str, most: int | None, strict: bool) -> None:
        self.made, self.encoding, self.limits, self.quote, self.most = made, encoding, limits, quote, most
        self.strict = strict
        self.base = 0  # bytes of the file before those that the decoder holds
        self.pending: list[tuple[int, int]] = []  # (offset, byte) of faults whose line is not known yet
        self.since = 0  # characters since the last line end
        self.skipping = False  # within a line that is too long
        self.controls = self.size = 0

    def run(self, source: Path, gzipped: bool) -> Iterator[bytes]:
        try:
            yield from self._decode(source, gzipped)
        except UnicodeError as error:
            why = f"({error}). Choose another one"
            if "BOM" in str(error):
                why = (
                    "without a byte order mark at its beginning. Choose that for a given order, utf-16-le or utf-16-be"
                )
            raise Refused(f"The file cannot be read in this encoding {why}.")

    def _decode(self, source: Path, gzipped: bool) -> Iterator[bytes]:
        codecs.register_error("seqscope", self._fault)
        decoder = codecs.getincrementaldecoder(self.encoding)("seqscope")
        held, first = "", True
        for block in blocks(source, gzipped, self.limits):
            self.base += len(block)
            text = held + decoder.decode(block)
            held = ""
            if first and text:
                text, first = _SEPARATOR.sub("", text.removeprefix("\ufeff")), False
            if text.endswith("\r"):  # a line feed may follow
                text, held = text[:-1], "\r"
            yield self._lines(text)
            if self.most is not None and self.made.lines >= self.most:
                self.made.whole = False
                return
        yield self._lines(held + decoder.decode(b"", final=True))
        if self.since:  # the last line may lack its end
            self.made.lines += 1
            yield b"\n"

    def _lines(self, text: str) -> bytes:
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        content = text.encode("utf-8", "replace")
        self.size += len(content)
        self.controls += len(content) - len(content.translate(None, _CONTROLS))
        if self.controls > 100 and self.controls * 20 > self.size:
            raise Refused(
                f"The file is not text: there are {self.controls:,} control characters near its beginning. "
                "If it is text in UTF-16, save it as UTF-8."
            )
        if "\x00" in text or "\x01" in text:
            text = text.translate(_TO_PICTURES)
        if self.pending:
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
        self.pending.append((max(0, offset), error.object[error.start]))
        if not self.strict and len(self.made.faults) + len(self.pending) > _MOST_FAULTS:
            raise Refused(
                f"More than {_MOST_FAULTS:,} places of the file cannot be read in this encoding; the first is byte "
                f"{(self.made.faults[0].offset if self.made.faults else self.pending[0][0]) + 1:,}. Choose another encoding."
            )
        return _MARK, error.end

    def _place(self, text: str) -> None:
        line, at = self.made.lines + 1, 0
        for offset, byte in self.pending:
            index = text.find(_MARK, at)
            if index < 0:
                break
            line += text.count("\n", at, index)
            at = index + 1
            self.made.faults.append(Fault(line, offset, byte))
        self.pending.clear()
        if self.strict:
            line, _, byte = self.made.faults[0]
            raise Refused(
                f"Line {line}: byte 0x{byte:02X} is not {ENCODINGS.get(self.encoding, self.encoding)}. If the file is in "
                "another encoding, name it: --encoding latin-1, cp1252, utf-16, gb18030, …"
            )


def too_many_rows(rows: int, limits: Limits, *, more: bool = False) -> str:
    return (
        f"The file has {'more than ' if more else ''}{rows:,} rows; at most {limits.rows:,} are taken here. "
        "Upload a part of it: a random sample of users keeps whole histories."
    )


BLOCK = 1 << 20
HARMLESS = 32 * MB  # a file may grow to this whatever it was before
_MAGIC = {
    b"PAR1": "parquet", b"PARE": "encrypted Parquet", b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook", b"%PDF": "a PDF",
    b"\x7fELF": "a program", b"MZ\x90": "a program", b"BZh91AY": "compressed with bzip2", b"\xfd7zXZ": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd", b"SQLite format 3": "an SQLite database", b"ARROW1": "an Arrow file",
    b"\xd0\xcf\x11\xe0": "an old Office document", b"\x93NUMPY": "a NumPy array", b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle", b"\x89PNG": "an image", b"\xff\xd8\xff": "an image", b"GIF89a": "an image",
    b"Obj\x01": "an Avro file",
}  # fmt: skip


def content_kind(path: Path) -> str:
    """ "parquet", "gzip" or "text". Raises Refused for everything else, and where the name says another thing."""
    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        raise Refused("The file is empty.")
    content = next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "text")
    for ending, kind, words in ((".parquet", "parquet", "a Parquet file"), (".gz", "gzip", "packed with gzip")):
        if path.suffix == ending and content != kind:
            raise Refused(f"The file is not {words}, whatever its ending says: it is {content}. Rename or convert it.")
    if content not in ("parquet", "gzip", "text"):
        raise Refused(f"The file is {content}. Save it as CSV, TSV, JSON lines or Parquet, plain or packed with gzip.")
    return content


def blocks(path: Path, gzipped: bool, limits: Limits) -> Iterator[bytes]:
    """The file's bytes, unpacked. Raises Refused where there are too many, or where the gzip stream is damaged."""
    size, total = path.stat().st_size, 0
    try:
        with cast(BinaryIO, gzip.open(path, "rb")) if gzipped else path.open("rb") as file:
            while block := file.read(BLOCK):
                if not total and gzipped and block.startswith((b"PAR1", b"\x1f\x8b", b"PK\x03\x04")):
                    raise Refused("There is no text in the gzip file. Unpack it, and upload what is in it.")
                total += len(block)
                if total > limits.text:
                    raise Refused(
                        f"The file holds more than {limits.text // MB:,} MB of text once it is unpacked, which is more than is "
                        "taken here. Upload a part of it."
                    )
                if gzipped and total > HARMLESS and total > size * limits.ratio:
                    raise Refused(
                        f"The file grows to more than {limits.ratio} times its size when it is unpacked. That is not how "
                        "catalogues and logs are; it is not read any further."
                    )
                yield block
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise Refused("The gzip file is damaged or was cut off. Pack it again, or upload it unpacked.")
    if not total:
        raise Refused("The file is empty.")


_CANDIDATES = ("cp949", "cp932", "gb18030", "euc-jp", "big5", "cp1251", "cp1252")
_SAMPLE = 200_000  # bytes of lines with other characters than ASCII that are weighed
_SHOWN = 4  # lines for people to look at
_WIDTH = 100
_CLEAR = 0.04  # of charset-normalizer's chaos, between the best and the next
_OWN_LETTERS = {
    "cp949": ("가", "힣", 1),
    "cp932": ("ぁ", "ヿ", 5),
    "euc-jp": ("ぁ", "ヿ", 5),
}  # a fifth of them is enough
_NO_CP1252 = b"\x81\x8d\x8f\x90\x9d"


@dataclass
class Scan:
    """What one pass over the bytes has found."""

    head: bytes = b""
    """The first megabyte."""
    size: int = 0
    lines: int = 0
    utf8: bool = True
    ascii: bool = True
    sample: bytearray = field(default_factory=bytearray)
    """Lines with other bytes than ASCII."""


def scan(parts: Iterable[bytes]) -> Scan:
    scanned, decoder, rest, ended = Scan(), codecs.getincrementaldecoder("utf-8")(), b"", True
    for block in parts:
        ended = block.endswith((b"\n", b"\r"))
        if not scanned.size:
            scanned.head = block[: 1 << 20]
        scanned.size += len(block)
        scanned.lines += block.count(b"\n") or block.count(b"\r")
        if scanned.utf8:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                scanned.utf8 = False
        if not block.isascii():
            scanned.ascii = False
            if len(scanned.sample) < _SAMPLE:
                for line in (rest + block).split(b"\n"):
                    if not line.isascii() and len(scanned.sample) < _SAMPLE:
                        scanned.sample += line[:10_000] + b"\n"
        rest = block[block.rfind(b"\n") + 1 :][-10_000:]
    if scanned.utf8:
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            scanned.utf8 = False
    scanned.lines += scanned.size > 0 and not ended
    return scanned


def guess_encoding(scanned: Scan) -> ReadingChoice:
    marked = _marked(scanned.head)
    if marked:
        return ReadingChoice(
            about="encoding", value=marked, sure="certain", why="The file begins with its byte order mark."
        )
    wide = _wide(scanned.head)
    if wide:
        why = "Every other byte is zero, as in UTF-16 without a byte order mark."
        return ReadingChoice(about="encoding", value=wide, sure="likely", why=why, others=("utf-8",))
    if scanned.utf8:
        why = "All characters are ASCII: most encodings agree." if scanned.ascii else "All of it is valid UTF-8."
        return ReadingChoice(about="encoding", value="utf-8", sure="certain", why=why)
    return _weighed(bytes(scanned.sample))


def read_as(sample: bytes, encodings: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Encoding → some of the lines that it decides on, as it reads them; those alone that tell most."""
    lines = [line.strip(b"\r") for line in sample.split(b"\n") if not line.isascii()][:_SHOWN]
    return {encoding: tuple(_around(line, encoding) for line in lines) for encoding in encodings}


def _marked(head: bytes) -> str | None:
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return None


def _wide(head: bytes) -> str | None:
    part = head[:4096]
    even, odd = part[0::2].count(0), part[1::2].count(0)
    if len(part) >= 8 and max(even, odd) > 0.3 * len(part) / 2 and min(even, odd) < 0.02 * len(part) / 2 + 1:
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _weighed(sample: bytes) -> ReadingChoice:
    """The likeliest of the candidates for lines that are not UTF-8."""
    latin = "latin-1" if any(byte in sample for byte in _NO_CP1252) else "cp1252"
    matches = from_bytes(
        sample,
        cp_isolation=[*(name.replace("-", "_") for name in _CANDIDATES), "latin_1"],
        threshold=0.5,
        preemptive_behaviour=False,
        enable_fallback=False,
    )
    best: dict[str, float] = {}
    for match in matches:
        name = latin if match.encoding in ("latin_1", "cp1252") else match.encoding.replace("_", "-")
        strange = 0.0 if name == latin else _mixed(sample, name)
        best[name] = min(best.get(name, 1.0), match.chaos + strange)
    # Of equals, the one whose script is pure; then the one that charset-normalizer puts first.
    order = sorted(best, key=lambda name: (round(best[name], 2), -_pure(sample, name)))
    ranked = list(dict.fromkeys((*order, latin, *_CANDIDATES)))
    if not order:
        why = "It is not UTF-8, and no encoding that is known here reads it well."
        return ReadingChoice(about="encoding", value=latin, sure="unsure", why=why, others=_but(ranked, latin))
    value = order[0]
    clear = len(order) == 1 or best[order[1]] - best[order[0]] > _CLEAR
    why = f"It is not UTF-8; of the other encodings {ENCODINGS[value]} reads its special characters best."
    if not clear:
        why = f"It is not UTF-8; {ENCODINGS[value]} and {ENCODINGS[order[1]]} read it about equally well."
    return ReadingChoice(
        about="encoding", value=value, sure="likely" if clear else "unsure", why=why, others=_but(ranked, value)
    )


def _mixed(sample: bytes, encoding: str) -> float:
    """Share of the words with foreign letters that have plain ones, too: many in Misérables, few in any other script."""
    words = [word for word in re.findall(r"[^\W\d_]+", sample.decode(encoding, "replace")) if not word.isascii()]
    return sum(any(c.isascii() for c in word) for word in words) / max(1, len(words))


def _pure(sample: bytes, encoding: str) -> float:
    """Share of the foreign letters that only texts in this encoding's own language have."""
    first, last, times = _OWN_LETTERS.get(encoding, ("", "", 0))
    letters = [c for c in sample.decode(encoding, "replace") if c > "\x7f"]
    return min(1.0, times * sum(first <= c <= last for c in letters) / max(1, len(letters)))


def _but(names: list[str], value: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != value)


def _around(line: bytes, encoding: str) -> str:
    """The part of a line around its first special character."""
    text = line.decode(encoding, "replace")
    start = max(0, next((index for index, c in enumerate(text) if ord(c) > 127), 0) - 30)
    return ("…" if start else "") + text[start : start + _WIDTH] + ("…" if len(text) > start + _WIDTH else "")
