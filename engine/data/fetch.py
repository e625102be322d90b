"""Public data sets: where they are, on which terms, and how to get them whole; and ZIP archives from elsewhere unpacked.

No member of an archive leaves the folder, none is a link, and the sum of sizes is bounded."""

import gzip
import json
import re
import shutil
import stat
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from engine.data.download import PATIENT, Patience, download, get_text
from engine.data.write import staging
from engine.errors import SeqscopeError
from engine.files import BROKEN_ZIP, digest_of, expect_no_file, write_json
from engine.tabular.database import connect_file, sql

CHECKSUMS = "checksums.json"
ITEMS = "items.csv"


@dataclass(frozen=True)
class PublicSet:
    """A data set that `fetch` knows."""

    name: str
    base: str
    """Address of the folder that holds `files`."""
    files: Sequence[str]
    terms: str
    problems: str
    """What is known to be wrong with it, line by line."""
    next_step: str
    """Arguments of `seqscope data import`; {folder} is where the files are."""
    md5: bool = False
    """The publisher offers FILE.md5 beside each file."""
    checksums: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """File -> (algorithm, hex digest), where one is known; those of `digest_of`."""
    items: str = ""
    """SQL for items.csv, the catalogue; {data} stands for data.csv, and so on. Empty where the importer reads the publisher's."""


PUBLIC: dict[str, PublicSet] = {
    known["name"]: PublicSet(**known, terms=group["terms"], problems=group["problems"])
    for group in tomllib.loads(Path(__file__).with_name("public.toml").read_text("utf-8"))["groups"]
    for known in group["sets"]
}


def fetch(name: str, to: Path, *, base_url: str | None = None, patience: Patience = PATIENT) -> Path:
    """Download the set `name` into `to`/`name` and return that folder. The caller has shown the terms and had them accepted."""
    try:
        return _fetch_set(PUBLIC[name], to, base_url, patience)
    except OSError as error:
        raise SeqscopeError(
            f"{error.filename or to} cannot be read or written ({error.strerror or error}). Choose another --to."
        )


def _fetch_set(known: PublicSet, to: Path, base_url: str | None, patience: Patience) -> Path:
    base = (base_url or known.base).rstrip("/")
    folder = to / known.name
    expect_no_file(folder)
    archives = [file for file in known.files if file.endswith(".zip")]
    keep = to if archives else folder
    keep.mkdir(parents=True, exist_ok=True)
    for file in known.files:
        _fetch_file(f"{base}/{file}", keep / file, known, patience)
    for file in archives:
        if folder.exists() and any(folder.iterdir()):
            print(f"{folder} exists already and was left as it is; delete it to unpack {file} again")
        else:
            unpack(keep / file, folder)
            print(f"{file} unpacked to {folder}")
    if known.items:
        _write_items(
            known.items.format(**{Path(file).stem: sql(str(folder / file)) for file in known.files}), folder / ITEMS
        )
    return folder


def _write_items(query: str, path: Path) -> None:
    try:
        with (
            tempfile.TemporaryDirectory(dir=path.parent) as work,
            connect_file(Path(work), memory="1GB", threads=2) as con,
        ):
            con.execute(f"COPY ({query}) TO {sql(str(path))} (FORMAT csv, HEADER)")
    except SeqscopeError as error:
        raise SeqscopeError(
            f"{path} cannot be made of the files beside it ({error}). Delete them and fetch them again."
        )


def _fetch_file(url: str, target: Path, known: PublicSet, patience: Patience) -> None:
    checksums = target.parent / CHECKSUMS
    before = _recorded(checksums).get(target.name)
    if target.exists():
        if before is None or digest_of(target) == before:
            state = " and unchanged" if before else ", though not by this command; delete it to fetch it"
            print(f"{target} is here already{state}")
            return
        raise SeqscopeError(
            f"{target} is not as it was fetched (its sha256 differs from {CHECKSUMS}). Delete it and fetch it again."
        )
    expected: Sequence[str] | None = ("sha256", before) if before else None
    verdict = "matches the first download"
    if target.name in known.checksums:
        expected, verdict = known.checksums[target.name], "matches the known checksum"
    if known.md5:
        published = re.search(r"\b[0-9a-fA-F]{32}\b", get_text(f"{url}.md5", patience=patience) or "")
        if published:
            expected, verdict = ("md5", published[0].lower()), "matches the published md5"
        else:
            print(
                f"{url}.md5 is missing or holds no checksum, so {target.name} cannot be checked against its publisher"
            )
    sha256 = download(url, target, checksum=expected, patience=patience)
    try:
        _check_container(target)
    except SeqscopeError:
        target.unlink()
        raise
    if expected is None:
        verdict = f"first download, nothing published to compare with; recorded in {checksums}"
    write_json(checksums, _recorded(checksums) | {target.name: sha256})
    print(f"{target.name}: sha256 {sha256} ({verdict})")


def _check_container(path: Path) -> None:
    """gzip and ZIP carry checksums of their own, which catch an error page or a cut-off file where nothing is published."""
    if path.suffix != ".gz":
        return
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise SeqscopeError(
            f"{path.name}: what the server sent is not a whole gzip file ({error}). Nothing was kept; fetch it again."
        )


def _recorded(path: Path) -> dict[str, str]:
    """checksums.json: file name → sha256 of the first download, so that a later one can be compared."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise SeqscopeError(f"{path} cannot be read ({error}). Delete it to start a new record.")
    return record if isinstance(record, dict) else {}


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
    except BROKEN_ZIP as error:
        raise SeqscopeError(f"{archive} is damaged or no ZIP archive ({error}). Delete it and fetch it again.")


def _refuse(archive: Path, member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    strange = path.is_absolute() or ".." in path.parts or "\\" in member.filename
    outside = strange or not path.name or ":" in path.parts[0]
    if member.flag_bits & _ENCRYPTED:
        raise SeqscopeError(f"{archive}: the member {member.filename!r} is encrypted. Unpack it yourself.")
    if outside or kind not in (0, stat.S_IFREG):
        fault = "leaves its folder" if outside else "is no plain file"
        raise SeqscopeError(
            f"{archive}: the member {member.filename!r} {fault}. Nothing was unpacked; do not trust this archive."
        )
