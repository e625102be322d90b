"""Public data sets: where they are, on which terms, and how to get them whole; and ZIP archives from elsewhere unpacked.

No member of an archive leaves the folder, none is a link, and the sum of sizes is bounded."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from engine.data.download import PATIENT, Patience, digest, download, get_text
from engine.data.write import staging
from engine.errors import SeqscopeError
from engine.files import BROKEN_ZIP, write_json
from engine.tabular.database import connect_file, sql

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
MOVIETWEETINGS_TERMS = """\
MovieTweetings, collected by Simon Dooms at Ghent University from public tweets. MIT licence, © 2013 Simon Dooms. Please cite
S. Dooms, T. De Pessemier, L. Martens: MovieTweetings: a Movie Rating Dataset Collected From Twitter, CrowdRec at RecSys 2013.
The repository's users.dat names Twitter accounts; it is not fetched. Make no attempt to find out who somebody is."""
GOODBOOKS_TERMS = """\
goodbooks-10k, published by Zygmunt Zając (fastml.com). CC BY-SA 4.0 (creativecommons.org/licenses/by-sa/4.0): name the source,
and pass on what you make of it under the same licence."""
RETAIL_TERMS = """\
Online Retail, donated by Daqing Chen to the UCI Machine Learning Repository (doi.org/10.24432/C5BW33). CC BY 4.0
(creativecommons.org/licenses/by/4.0): name the source. D. Chen, S. L. Sain, K. Guo: Data mining for the online retail industry,
Journal of Database Marketing and Customer Strategy Management 19(3), 2012."""
MOVIELENS_PROBLEMS = """\
  - people rate a list of films in one sitting: many ratings share a second or follow within a few, in the order of the list
  - a rating's time is not the time of viewing"""
AMAZON_PROBLEMS = """\
  - times are days: the order within a day is that of the file (--ties shuffle shows what hangs on it)
  - one article can have several ids (colours, sizes), and several articles one title"""
MOVIETWEETINGS_PROBLEMS = """\
  - the newest commit is fetched, and it had empty files at times (issues 7, 8 and 10 of the repository)
  - titles follow IMDb's original ones; some films have no genres, and some in movies.dat an id without its leading zeros, so that
    their ratings have no title
  - users are self-selected, ratings are high, and new releases dominate; a rating's time is not the time of viewing"""
GOODBOOKS_PROBLEMS = """\
  - ratings have no time: the publisher says that rows are sorted by it, and nothing in the files can confirm that. Results on the
    order of events hold as far as this is true
  - a book is a work: the ratings of all its editions are one item's
  - books.csv counts ratings, held-out ones too; items.csv, which is made of it, leaves these columns out
  - the ten thousand most rated books alone: there is no long tail"""
RETAIL_PROBLEMS = """\
  - 135,080 of 541,909 lines have no customer; they are left out as bad rows
  - cancellations are invoices C… of negative quantity: --drop-negative leaves them out
  - the lines of an invoice share a minute, and their order is the till's: --ties shuffle
  - 5,268 lines are copies of others; postage, discounts and bank charges stand among the articles (POST, D, M, BANK CHARGES)
  - an article's description varies from line to line; items.csv has the most frequent one
  - customers come back to articles, and many are wholesalers"""
RAW_GITHUB = "https://raw.githubusercontent.com"
GOODBOOKS = f"{RAW_GITHUB}/zygmuntz/goodbooks-10k/6dd165b555a7b47b2dd36743a425776e641ff50c"
"""Of a commit, whose files do not change."""
RETAIL = "https://archive.ics.uci.edu/static/public/352"
GROUPLENS = "https://files.grouplens.org/datasets/movielens"
SNAP = "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles"
CHECKSUMS = "checksums.json"
ITEMS = "items.csv"


@dataclass(frozen=True)
class PublicSet:
    """A data set that `fetch` knows."""

    name: str
    base: str
    """Address of the folder that holds `files`."""
    files: tuple[str, ...]
    terms: str
    problems: str
    """What is known to be wrong with it, line by line."""
    next_step: str
    """Arguments of `seqscope data import`; {folder} is where the files are."""
    md5: bool = False
    """The publisher offers FILE.md5 beside each file."""
    checksums: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """File -> (algorithm, hex digest), where one is known; those of `digest`."""
    items: str = ""
    """SQL for items.csv, the catalogue; {data} stands for data.csv, and so on. Empty where the importer reads the publisher's."""


def _amazon(name: str, category: str) -> PublicSet:
    files = (f"reviews_{category}_5.json.gz", f"meta_{category}.json.gz")
    return PublicSet(name, SNAP, files, AMAZON_TERMS, AMAZON_PROBLEMS, f"{{folder}} --source amazon --out data/{name}")


PUBLIC: dict[str, PublicSet] = {
    known.name: known
    for known in (
        *(
            PublicSet(
                name,
                GROUPLENS,
                (f"{name}.zip",),
                MOVIELENS_TERMS,
                MOVIELENS_PROBLEMS,
                f"{{folder}} --source {name} --out data/{name}",
                md5=True,
            )
            for name in ("ml-100k", "ml-1m", "ml-20m")
        ),
        PublicSet(
            "movietweetings",
            f"{RAW_GITHUB}/sidooms/MovieTweetings/master/latest",
            ("ratings.dat", "movies.dat"),
            MOVIETWEETINGS_TERMS,
            MOVIETWEETINGS_PROBLEMS,
            "{folder} --source movietweetings --out data/movietweetings",
        ),
        PublicSet(
            "goodbooks-10k",
            GOODBOOKS,
            ("ratings.csv", "books.csv"),
            GOODBOOKS_TERMS,
            GOODBOOKS_PROBLEMS,
            "{folder}/ratings.csv --source table --items {folder}/items.csv --k-core 10 --out data/goodbooks-10k "
            "--title 'goodbooks-10k' --about 'goodbooks-10k: ratings of books, github.com/zygmuntz/goodbooks-10k' "
            "--licence 'CC BY-SA 4.0, Zygmunt Zając'",
            checksums={
                "ratings.csv": ("git", "0d245a10acfe3c89b2e4004cdbc805b99771ac5d"),
                "books.csv": ("sha256", "4d21d0e0433128657c752e3a3d0405ac0ec11675d6c70c64cb0abf4ab1acb76a"),
            },
            items=(
                "SELECT book_id AS item_id, title, authors, try_cast(original_publication_year AS DOUBLE)::INTEGER AS year, "
                "language_code AS language FROM read_csv({books}, all_varchar = true)"
            ),
        ),
        PublicSet(
            "online-retail",
            RETAIL,
            ("data.csv",),
            RETAIL_TERMS,
            RETAIL_PROBLEMS,
            "{folder}/data.csv --source table --items {folder}/items.csv --drop-negative --ties shuffle --k-core 5 "
            "--out data/online-retail --title 'Online Retail' --about 'Online Retail: orders of a British shop for gifts, "
            "2010-12 to 2011-12, doi.org/10.24432/C5BW33' --licence 'CC BY 4.0, Daqing Chen'",
            items=(
                "SELECT StockCode AS item_id, mode(trim(Description) ORDER BY trim(Description)) AS title "
                "FROM read_csv({data}, all_varchar = true) WHERE StockCode <> '' GROUP BY ALL ORDER BY ALL"
            ),
        ),
        _amazon("amazon-beauty", "Beauty"),
        _amazon("amazon-sports", "Sports_and_Outdoors"),
        _amazon("amazon-toys", "Toys_and_Games"),
    )
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
    to.mkdir(parents=True, exist_ok=True)
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
    record = Checksums(target.parent / CHECKSUMS)
    before = record.get(target.name)
    if target.exists():
        if before is None or digest(target, "sha256") == before:
            state = " and unchanged" if before else ", though not by this command; delete it to fetch it"
            print(f"{target} is here already{state}")
            return
        raise SeqscopeError(
            f"{target} is not as it was fetched (its sha256 differs from {CHECKSUMS}). Delete it and fetch it again."
        )
    expected = ("sha256", before) if before else None
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
        verdict = f"first download, nothing published to compare with; recorded in {record.path}"
    record.put(target.name, sha256)
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


class Checksums:
    """checksums.json: file name -> sha256 of the first download, so that a later one can be compared."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _read(self) -> dict[str, str]:
        try:
            record = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, OSError) as error:
            raise SeqscopeError(f"{self.path} cannot be read ({error}). Delete it to start a new record.")
        return record if isinstance(record, dict) else {}

    def get(self, name: str) -> str | None:
        return self._read().get(name)

    def put(self, name: str, sha256: str) -> None:
        write_json(self.path, self._read() | {name: sha256})


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
    outside = path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in path.parts[0]
    if member.flag_bits & _ENCRYPTED:
        raise SeqscopeError(f"{archive}: the member {member.filename!r} is encrypted. Unpack it yourself.")
    if outside or kind not in (0, stat.S_IFREG):
        fault = "leaves its folder" if outside else "is no plain file"
        raise SeqscopeError(
            f"{archive}: the member {member.filename!r} {fault}. Nothing was unpacked; do not trust this archive."
        )
