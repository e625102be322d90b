"""Public data sets: where they are, on which terms, and how to get them whole."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.data.download import PATIENT, Patience, digest, download, get_text
from engine.data.unpack import unpack
from engine.errors import SeqscopeError

MOVIELENS_TERMS = """\
MovieLens, collected by the GroupLens Research Project at the University of Minnesota. For research, on these conditions:
  - state or imply no endorsement by the University of Minnesota or GroupLens
  - acknowledge the data set in publications (F. M. Harper and J. A. Konstan, 2015, The MovieLens Datasets, ACM TiiS 5(4))
  - do not redistribute the data without separate permission
  - no commercial or revenue-bearing use without permission from GroupLens first
There is no warranty. The README in the archive has the full wording, and it alone counts."""
AMAZON_TERMS = """\
Amazon product reviews of 1996 to 2014, collected by Julian McAuley's group. No licence is stated: the data are offered for
research, ask for citation (J. McAuley, C. Targett, J. Shi, A. van den Hengel, SIGIR 2015; R. He, J. McAuley, WWW 2016), and
reviews belong to their authors or to Amazon. Whether you may use them is for you to judge."""
GROUPLENS = "https://files.grouplens.org/datasets/movielens"
SNAP = "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles"
CHECKSUMS = "checksums.json"


@dataclass(frozen=True)
class PublicSet:
    """A data set that `fetch` knows."""

    name: str
    base: str
    """Address of the folder that holds `files`."""
    files: tuple[str, ...]
    terms: str
    next_step: str
    """Arguments of `seqscope data import` after the folder."""
    md5: bool = False
    """The publisher offers FILE.md5 beside each file."""


def _amazon(name: str, category: str) -> PublicSet:
    files = (f"reviews_{category}_5.json.gz", f"meta_{category}.json.gz")
    return PublicSet(name, SNAP, files, AMAZON_TERMS, f"--source amazon --out data/{name}")


PUBLIC: dict[str, PublicSet] = {
    known.name: known
    for known in (
        *(
            PublicSet(
                name, GROUPLENS, (f"{name}.zip",), MOVIELENS_TERMS, f"--source {name} --out data/{name}", md5=True
            )
            for name in ("ml-100k", "ml-1m", "ml-20m")
        ),
        _amazon("amazon-beauty", "Beauty"),
        _amazon("amazon-sports", "Sports_and_Outdoors"),
        _amazon("amazon-toys", "Toys_and_Games"),
    )
}


def fetch(
    name: str,
    to: Path,
    *,
    base_url: str | None = None,
    patience: Patience = PATIENT,
    say: Callable[[str], None] = print,
) -> Path:
    """Download the set `name` into `to`/`name` and return that folder. The caller has shown the terms and had them accepted."""
    try:
        return _fetch_set(PUBLIC[name], to, base_url, patience, say)
    except OSError as error:
        raise SeqscopeError(
            f"{error.filename or to} cannot be read or written ({error.strerror or error}). Choose another --to."
        )


def _fetch_set(
    known: PublicSet, to: Path, base_url: str | None, patience: Patience, say: Callable[[str], None]
) -> Path:
    base = (base_url or known.base).rstrip("/")
    folder = to / known.name
    to.mkdir(parents=True, exist_ok=True)
    archives = [file for file in known.files if file.endswith(".zip")]
    keep = to if archives else folder
    keep.mkdir(parents=True, exist_ok=True)
    for file in known.files:
        _fetch_file(f"{base}/{file}", keep / file, known, patience, say)
    for file in archives:
        if folder.exists() and any(folder.iterdir()):
            say(f"{folder} exists already and was left as it is; delete it to unpack {file} again")
        else:
            unpack(keep / file, folder)
            say(f"{file} unpacked to {folder}")
    return folder


def _fetch_file(url: str, target: Path, known: PublicSet, patience: Patience, say: Callable[[str], None]) -> None:
    record = Checksums(target.parent / CHECKSUMS)
    before = record.get(target.name)
    if target.exists():
        if before is None or digest(target, "sha256") == before:
            say(
                f"{target} is here already"
                + (" and unchanged" if before else ", though not by this command; delete it to fetch it")
            )
            return
        raise SeqscopeError(
            f"{target} is not as it was fetched (its sha256 differs from {CHECKSUMS}). Delete it and fetch it again."
        )
    expected = ("sha256", before) if before else None
    said = "matches the first download"
    if known.md5:
        published = re.search(r"\b[0-9a-fA-F]{32}\b", get_text(f"{url}.md5", patience=patience) or "")
        if published:
            expected, said = ("md5", published[0].lower()), "matches the published md5"
        else:
            say(f"{url}.md5 is missing or holds no checksum, so {target.name} cannot be checked against its publisher")
    sha256 = download(url, target, checksum=expected, patience=patience)
    try:
        _check_container(target)
    except SeqscopeError:
        target.unlink()
        raise
    if expected is None:
        said = f"first download, nothing published to compare with; recorded in {record.path}"
    record.put(target.name, sha256)
    say(f"{target.name}: sha256 {sha256} ({said})")


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


class Checksums:
    """checksums.json: file name -> sha256 of the first download, so that a later one can be compared."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, OSError) as error:
            raise SeqscopeError(f"{self.path} cannot be read ({error}). Delete it to start a new record.")
        return found if isinstance(found, dict) else {}

    def get(self, name: str) -> str | None:
        return self._read().get(name)

    def put(self, name: str, sha256: str) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_text(json.dumps(self._read() | {name: sha256}, indent=2) + "\n", "utf-8")
        fresh.replace(self.path)
