"""A desk for uploads: put files on it, look at the guess, check them, read what came out. In this process, without the child."""

import io
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.uploads import files
from app.uploads.check import UploadedFile, check
from app.uploads.guess import guess
from app.uploads.limits import UploadLimits
from engine.tabular.findings import CheckResult
from engine.tabular.reading import MB, FileKind, Guess, Reading

LIMITS = UploadLimits(memory=700 * MB, threads=1, seconds=120)


@dataclass
class Desk:
    folder: Path
    limits: UploadLimits = LIMITS
    number: int = 0
    readings: dict[FileKind, Reading] = field(default_factory=dict)

    def work(self) -> Path:
        self.number += 1
        path = self.folder / f"work{self.number}"
        path.mkdir()
        return path

    def guess(
        self, content: str | bytes | Path, what: FileKind = "catalogue", fixed: Mapping[str, str] | None = None
    ) -> Guess:
        """The guess for this content, which the next check uses."""
        if isinstance(content, Path):
            content = content.read_bytes()
        data = content if isinstance(content, bytes) else content.encode()
        path = files.keep(self.folder, what, data, self.limits)
        found = guess(self.work(), path, what, fixed or {}, self.limits, lambda done, words: None)
        self.readings[what] = found.reading
        return found

    def check(self, catalogue: str | bytes | None = None, log: str | bytes | None = None, **fixed: str) -> CheckResult:
        """Guesses what is given anew, and checks all that is on the desk."""
        if catalogue is not None:
            self.guess(catalogue, "catalogue", fixed)
        if log is not None:
            self.guess(log, "log", fixed)
        given: dict[FileKind, UploadedFile] = {}
        for what, reading in self.readings.items():
            path = files.find(self.folder, what)
            assert path is not None
            given[what] = UploadedFile(path=path, reading=reading)
        self.last = self.work()
        return check(self.last, given, self.limits, lambda done, words: None)

    def items(self) -> list[dict[str, Any]]:
        return pq.read_table(self.last / "clean" / "items.parquet").to_pylist()  # type: ignore[no-any-return]

    def log(self) -> list[dict[str, Any]]:
        return pq.read_table(self.last / "clean" / "log.parquet").to_pylist()  # type: ignore[no-any-return]

    def findings(self) -> list[dict[str, Any]]:
        return pq.read_table(self.last / "findings.parquet").to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def counts(checked: CheckResult) -> dict[str, int]:
    return {count.problem: count.number for count in checked.counts}


def places(checked: CheckResult, problem: str) -> list[tuple[int | None, str, str]]:
    """(line, column, value) of each finding of one kind."""
    return [(f.line, f.column, f.value) for f in checked.first if f.problem == problem]


def adds_up(checked: CheckResult) -> None:
    """Rows read = rows kept + rows left out, for each file."""
    left = Counter[str]()
    for entry in checked.left_out:
        left[entry.file] += entry.rows
    for what, read in checked.read.items():
        assert read == checked.kept[what] + left[what], (what, checked)


LOG = "user,item,time\n" + "".join(f"u{u},i{i},{1_700_000_000 + 100 * u + i}\n" for u in range(3) for i in range(1, 5))
ITEMS = "item_id,title,genres\n" + "".join(f"i{i},Film {i},Drama|Comedy\n" for i in range(1, 5))
TRANSACTIONS = "bill,buyer,sku,what it is,kind,moment\n" + "".join(
    f"b{u}-{n // 2},u{u},s{(u + n) % 5},Thing number {(u + n) % 5},{'abc'[(u + n) % 5 % 3]},2024-03-{1 + u + n // 2:02d}\n"
    for u in range(4)
    for n in range(5)
)
"""Of four buyers five lines each, two on a bill; five things."""
RECBOLE_LOG = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + "".join(
    f"{u}\t{i}\t{1 + (u + i) % 5}\t{881250900 + 100 * u + i}\n" for u in range(1, 5) for i in range(1, 6)
)
RECBOLE_ITEMS = "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n" + "".join(
    f"{i}\tFilm number {i}\t199{i}\tComedy Drama\n" for i in range(1, 6)
)


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()
