"""Text files as they come: what is in them is found out by one quick pass before anything is parsed."""

from __future__ import annotations

import codecs
import functools
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from engine.errors import SeqscopeError, UsageError

BLOCK = 1 << 20
MAX_LINE = 1 << 20
"""Characters; a longer line is a bad row."""
_MAGIC = {
    b"PAR1": "a Parquet file", b"\x1f\x8b": "gzip-compressed", b"PK\x03\x04": "a ZIP archive (or an Excel workbook)",
    b"%PDF": "a PDF", b"\x7fELF": "a program", b"BZh": "bzip2-compressed", b"\xfd7zXZ": "xz-compressed",
    b"\x28\xb5\x2f\xfd": "zstd-compressed", b"SQLite format 3": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"\x93NUMPY": "a NumPy array", b"\x80\x04": "a Python pickle", b"\x89PNG": "an image", b"\xff\xd8\xff": "an image",
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A text file that can be read to its end."""

    path: Path
    encoding: str
    """As Python names it; a byte order mark is not part of the text."""
    gzipped: bool
    quotes: bool
    """A double quote occurs somewhere."""
    plain: bool
    """UTF-8 with one kind of line end, no NUL or SOH byte and no very long line: DuckDB cuts the same lines as an editor."""

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """(line number from 1, text with its line end); None stands for a line longer than MAX_LINE."""
        with open_bytes(self.path, self.gzipped) as raw, io.TextIOWrapper(raw, self.encoding, newline="") as text:
            number = 0
            while line := text.readline(MAX_LINE):
                number += 1
                if len(line) < MAX_LINE or line[-1] in "\r\n":
                    yield number, line
                    continue
                while len(line) == MAX_LINE and line[-1] not in "\r\n":
                    line = text.readline(MAX_LINE)
                yield number, None


def open_bytes(path: Path, gzipped: bool) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if gzipped else path.open("rb")


def kind_by_content(path: Path) -> str:
    """ "parquet", "gzip" or "text", after the first bytes; anything else fails with what it is."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except FileNotFoundError:
        raise SeqscopeError(f"{path} does not exist.")
    except IsADirectoryError:
        raise SeqscopeError(f"{path} is a folder; name a file in it.")
    except OSError as error:
        raise SeqscopeError(f"{path} cannot be read ({error.strerror}).")
    if not head:
        raise SeqscopeError(f"{path} is empty.")
    content = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    endings = path.suffixes[-1:]
    if endings == [".parquet"] and content != "a Parquet file":
        raise SeqscopeError(
            f"{path} is not a Parquet file, whatever its ending says: it is {content or 'text'}. Rename or convert it."
        )
    if endings == [".gz"] and content != "gzip-compressed":
        raise SeqscopeError(
            f"{path} is not gzip-compressed, whatever its ending says: it is {content or 'text'}. Rename it."
        )
    if content == "a Parquet file":
        return "parquet"
    if content == "gzip-compressed":
        return "gzip"
    if content:
        raise SeqscopeError(
            f"{path} is {content}, which cannot be imported. Unpack or convert it to CSV, JSON lines or Parquet."
        )
    return "text"


def inspect(path: Path, encoding: str | None = None) -> Text:
    """What the text file `path` is. It is read to its end, but only once, however often this is asked.

    Fails where it is not text, or not in `encoding` (UTF-8 where none is given), and says at which line.
    """
    kind_by_content(path)  # says what is wrong where there is nothing to read
    status = path.stat()
    return _inspect(path, encoding, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _inspect(path: Path, encoding: str | None, changed: int, size: int) -> Text:
    """`changed` and `size` make a file that was written anew another file."""
    kind = kind_by_content(path)
    if kind == "parquet":
        raise SeqscopeError(
            f"{path} is a Parquet file, whatever its ending says. Rename it to .parquet, or import it with --source table."
        )
    gzipped = kind == "gzip"
    try:
        with open_bytes(path, gzipped) as file:
            head = file.read(8192)
            codec = _codec(path, head, encoding)
            decoder = codecs.getincrementaldecoder(codec)()
            plain, quotes, lines, feeds, returns, pairs = codec in ("utf-8", "utf-8-sig"), False, 1, 0, 0, 0
            block = head + file.read(BLOCK)
            while block:
                if block.endswith(b"\r"):  # never part a CR LF pair
                    block += file.read(1)
                try:
                    decoder.decode(block)
                except UnicodeDecodeError as error:
                    # error.object may begin with bytes kept from the block before, which hold no line end.
                    line = lines + error.object[: error.start].count(b"\n")
                    raise SeqscopeError(
                        f"{path} line {line}: byte 0x{error.object[error.start]:02X} is not {encoding or 'UTF-8'}. "
                        "If the file is in another encoding, name it: --encoding latin-1, cp1252, utf-16, gb18030, …"
                    )
                feeds_here, pairs_here = block.count(b"\n"), block.count(b"\r\n")
                quotes = quotes or b'"' in block
                plain = plain and (feeds_here > 0 or len(block) < BLOCK) and not (b"\x00" in block or b"\x01" in block)
                lines, feeds, pairs = lines + feeds_here, feeds + feeds_here, pairs + pairs_here
                returns += block.count(b"\r")
                block = file.read(BLOCK)
            try:
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                raise SeqscopeError(f"{path} line {lines}: the file ends in the middle of a character. Is it cut off?")
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise SeqscopeError(f"{path}: the gzip stream is damaged or cut off ({error}). Get the file again.")
    except OSError as error:
        raise SeqscopeError(f"{path} cannot be read ({error.strerror or error}).")
    uniform = returns == pairs and pairs in (0, feeds)
    return Text(path, codec, gzipped, quotes, plain and uniform)


def _codec(path: Path, head: bytes, encoding: str | None) -> str:
    """The codec to read with, a byte order mark taken into account."""
    try:
        name = codecs.lookup(encoding or "utf-8").name
        codecs.getincrementaldecoder(name)
    except LookupError:
        raise UsageError(
            f"--encoding {encoding}: Python knows no such encoding. Common ones: utf-8, latin-1, cp1252, utf-16."
        )
    wide = name.startswith(("utf-16", "utf-32"))
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not wide:
        raise SeqscopeError(f"{path} starts with the mark of UTF-16. Give --encoding utf-16.")
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x01\x1b" for byte in head)
    if not wide and controls > max(4, len(head) // 20):
        raise SeqscopeError(f"{path} is not text: {controls} of its first {len(head)} bytes are control characters.")
    return "utf-8-sig" if name == "utf-8" else name
