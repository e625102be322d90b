"""A ZIP archive of data files: which of them is the catalogue and which the log, and these two unpacked, within bounds, with
the semantic IDs of the catalogue's items where they lie beside it.

Nothing of an archive is trusted: names are read for words and shown, never used as paths; what it says of sizes is checked
before, and counted while it is unpacked; an archive within it is not opened.
"""

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

from app.uploads import OnProgress
from app.uploads.guess import guess
from app.uploads.limits import UploadLimits
from engine.errors import Refused
from engine.files import BROKEN_ZIP
from engine.tabular.reading import MB, FileKind, Record
from engine.tabular.text import BLOCK, HARMLESS

MAGIC, EMPTY = b"PK\x03\x04", b"PK\x05\x06"
"""What an archive begins with, and one that holds nothing."""
MAX_MEMBERS = 1_000
_LOOKED_AT = 8
"""Files that are looked into where no name says what they are."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOG = re.compile(
    r"inter|rating|event|(?<![a-z])logs?(?![a-z])|transaction|order|purchase|review|click|session|u\.data"
)
_ITEMS = re.compile(r"item|catalog|meta")
_THINGS = re.compile(r"movie|film|product|article|book|track|song|game")
"""Parts of names; those of things say less, as reviews_books.json is a log."""
INDEX = "index.json"
"""What semantic IDs are called, and how the names of such files end."""
_OTHERS = (
    f".{INDEX}", ".user", ".kg", ".link", ".npy", ".pdf", ".md", ".html", ".png", ".jpg", ".emb", ".pt", ".pth",
)  # fmt: skip
_OTHER_NAMES = ("readme", "license", "licence", "users.", "user.")


class Unpacked(Record):
    """What was taken of an archive."""

    names: dict[FileKind, str]
    """What the files that were unpacked are called in the archive; shown, and used for nothing."""
    index: str = ""
    """What the semantic IDs are called that were unpacked; empty where there are none, or more than one such file."""
    left_out: tuple[str, ...]
    """What the others are called, the first ten."""


def is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) in (MAGIC, EMPTY)


def unpack(work: Path, path: Path, kinds: Sequence[FileKind], limits: UploadLimits, say: OnProgress) -> Unpacked:
    """Writes `work`/catalogue and `work`/log, those that there are, and beside a catalogue `work`/index.json. kinds: that are
    wanted; a single file is of the first, until its columns say otherwise. Raises Refused where the archive is damaged or too
    large, or where nothing tells what is what."""
    say(0.05, "Looking into the archive")
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path, limits)
            chosen = _chosen(archive, members, kinds, work, limits, say)
            for kind, member in chosen.items():
                say(0.5, f"Unpacking the {kind}")
                _extract(archive, member, work / kind, limits)
            indices = [member for member in members if _base(member).lower().endswith(INDEX)]
            used = indices if len(indices) == 1 and "catalogue" in chosen else []
            for member in used:
                _extract(archive, member, work / INDEX, limits)
    except BROKEN_ZIP:
        raise Refused("The ZIP archive is damaged or was cut off. Pack it again, or upload what is in it.")
    taken = {member.filename for member in (*chosen.values(), *used)}
    left_out = tuple(member.filename for member in members if member.filename not in taken)
    names = {kind: _base(member) for kind, member in chosen.items()}
    return Unpacked(names=names, index=_base(used[0]) if used else "", left_out=left_out[:10])


def _members(archive: zipfile.ZipFile, path: Path, limits: UploadLimits) -> list[zipfile.ZipInfo]:
    """The data files in it."""
    every = archive.infolist()
    if len(every) > MAX_MEMBERS:
        raise Refused(f"The ZIP archive has {len(every):,} files; at most {MAX_MEMBERS:,} are looked at here.")
    if any(member.header_offset < 0 for member in every):  # `zipfile` would look for it there
        raise zipfile.BadZipFile
    if any(member.filename == "[Content_Types].xml" for member in every):
        raise Refused("The file is an Excel workbook or another Office document. Save it as CSV.")
    members = [member for member in every if not member.is_dir() and member.file_size and not _is_hidden(member)]
    if any(member.flag_bits & 1 for member in members):
        raise Refused("The ZIP archive is locked with a password. Pack it without one.")
    if any(member.compress_type not in _METHODS for member in members):
        raise Refused(
            "The ZIP archive is packed in a way that is not read here. Pack it with the usual method (deflate)."
        )
    total = sum(member.file_size for member in members)
    if total > limits.text or (total > HARMLESS and total > limits.ratio * path.stat().st_size):
        raise Refused(
            f"The ZIP archive grows to {total // MB:,} MB when it is unpacked, from {path.stat().st_size:,} bytes. "
            f"At most {limits.text // MB:,} MB and {limits.ratio} times its size are taken here. Upload the two files alone."
        )
    if not members:
        raise Refused("The ZIP archive is empty.")
    return members


def _chosen(
    archive: zipfile.ZipFile,
    members: list[zipfile.ZipInfo],
    kinds: Sequence[FileKind],
    work: Path,
    limits: UploadLimits,
    say: OnProgress,
) -> dict[FileKind, zipfile.ZipInfo]:
    data = [member for member in members if not _base(member).lower().endswith(_OTHERS)]
    data = [member for member in data if not _base(member).lower().startswith((INDEX, *_OTHER_NAMES))]
    if not data:
        names = ", ".join(_base(member)[:40] for member in members[:5])
        raise Refused(f"The ZIP archive holds no catalogue and no log, but {names}.")
    if len(data) == 1:
        return {kinds[0]: data[0]}
    by_name: dict[FileKind, list[zipfile.ZipInfo]] = {"catalogue": [], "log": []}
    unsaid: list[zipfile.ZipInfo] = []
    for member in data:
        kind = _named(_base(member).lower())
        (unsaid if kind is None else by_name[kind]).append(member)
    if not any(by_name[kind] for kind in kinds):
        for member in unsaid[:_LOOKED_AT]:
            say(0.2, "Looking into the archive")
            content = _by_content(archive, member, work, limits)
            if content is not None:
                by_name[content].append(member)
    for kind in kinds:
        if len(by_name[kind]) > 1:
            names = ", ".join(_base(member)[:40] for member in by_name[kind][:5])
            raise Refused(
                f"The ZIP archive has several files that may be the {kind}: {names}. "
                "Put their rows into one file, or pack one of them alone."
            )
    chosen = {kind: by_name[kind][0] for kind in kinds if by_name[kind]}
    if not chosen:
        names = ", ".join(_base(member)[:40] for member in data[:5])
        raise Refused(f"None of the files in the ZIP archive is a catalogue or a log: {names}.")
    return chosen


def _named(name: str) -> FileKind | None:
    """Of the two kinds the one whose word comes last in the name: items_log.csv is a log."""
    log, items = (max((word.start() for word in words.finditer(name)), default=-1) for words in (_LOG, _ITEMS))
    if log < 0 and items < 0:
        return "catalogue" if _THINGS.search(name) else None
    return "log" if log > items else "catalogue"


def _by_content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, work: Path, limits: UploadLimits) -> FileKind | None:
    target = work / "looked-at"
    try:
        _extract(archive, member, target, limits)
        as_catalogue = guess(work, target, "catalogue", {}, limits, lambda done, words: None)
    except Refused:
        return None
    finally:
        target.unlink(missing_ok=True)
    if as_catalogue.seems == "log":
        return "log"
    return None if as_catalogue.stop or as_catalogue.reading.faults("catalogue") else "catalogue"


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, limits: UploadLimits) -> None:
    """Counts what comes: what the archive says of its sizes may be wrong."""
    total = 0
    with archive.open(member) as source, target.open("wb") as file:
        while block := source.read(BLOCK):
            if not total and block.startswith(MAGIC):
                raise Refused(
                    f"There is an archive in the archive: {_base(member)[:40]}. Unpack it, and upload what is in it."
                )
            total += len(block)
            if total > limits.text or (total > HARMLESS and total > limits.ratio * member.compress_size):
                raise Refused(
                    f"{_base(member)[:40]} grows to more than {limits.text // MB:,} MB or {limits.ratio} times its size when it "
                    "is unpacked. That is not how catalogues and logs are; it is not read any further."
                )
            file.write(block)


def _is_hidden(member: zipfile.ZipInfo) -> bool:
    """What systems put beside files."""
    return member.filename.startswith("__MACOSX/") or _base(member).startswith(".")


def _base(member: zipfile.ZipInfo) -> str:
    return member.filename.rpartition("/")[2]
