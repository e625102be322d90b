"""What lies in a file, after its first bytes, and its bytes unpacked: never more of them than may be.

A few kilobytes of gzip can hold gigabytes of zeros; what is unpacked is counted while it is.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from app.uploads.limits import MB, UploadLimits
from app.uploads.refusal import Refused

BLOCK = 1 << 20
_HARMLESS = 32 * MB  # a file may grow to this whatever it was before
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
    """ "parquet", "gzip" or "text". Raises Refused for everything else, with what it is."""
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        raise Refused("The file is empty.")
    content = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "text")
    if content not in ("parquet", "gzip", "text"):
        raise Refused(f"The file is {content}. Save it as CSV, TSV, JSON lines or Parquet, plain or packed with gzip.")
    return content


def blocks(path: Path, gzipped: bool, limits: UploadLimits) -> Iterator[bytes]:
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
                if gzipped and total > _HARMLESS and total > size * limits.ratio:
                    raise Refused(
                        f"The file grows to more than {limits.ratio} times its size when it is unpacked. That is not how "
                        "catalogues and logs are; it is not read any further."
                    )
                yield block
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise Refused("The gzip file is damaged or was cut off. Pack it again, or upload it unpacked.")
    if not total:
        raise Refused("The file is empty.")
