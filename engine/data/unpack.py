"""Unpack ZIP archives from elsewhere: no member leaves the folder, none is a link, and the sum of sizes is bounded."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from engine.data.staging import staging
from engine.errors import SeqscopeError

MAX_RATIO = 100
"""Text compresses tenfold; an archive that promises a hundredfold wants to fill the disk."""
MAX_SMALL = 100_000_000
"""Bytes that are fine whatever the ratio."""
_ENCRYPTED = 1  # the first bit of a member's flags


def unpack(archive: Path, folder: Path) -> None:
    """The files of `archive` in `folder`, which must not exist; a single top folder of the archive is left away."""
    try:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if not member.is_dir()]
            for member in members:
                _refuse(archive, member)
            total, packed = sum(m.file_size for m in members), archive.stat().st_size
            if total > max(MAX_SMALL, MAX_RATIO * packed):
                raise SeqscopeError(
                    f"{archive}: {packed:,} bytes that unpack to {total:,} are not a data set. Delete it."
                )
            tops = {PurePosixPath(member.filename).parts[0] for member in members}
            nested = len(tops) == 1 and all("/" in member.filename for member in members)
            with staging(folder) as target:
                for member in members:
                    path = target.joinpath(*PurePosixPath(member.filename).parts[nested:])
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with file.open(member) as source, path.open("xb") as copy:
                        shutil.copyfileobj(source, copy)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:  # the last: an unknown compression
        raise SeqscopeError(f"{archive} is damaged or no ZIP archive ({error}). Delete it and fetch it again.")


def _refuse(archive: Path, member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    outside = path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]
    if member.flag_bits & _ENCRYPTED:
        raise SeqscopeError(f"{archive}: the member {member.filename!r} is encrypted. Unpack it yourself.")
    if outside or kind not in (0, stat.S_IFREG):
        fault = "leaves its folder" if outside else "is no plain file"
        raise SeqscopeError(
            f"{archive}: the member {member.filename!r} {fault}. Nothing was unpacked; do not trust this archive."
        )
