"""What a reader of one public format offers to the import, how it finds and reads its files, and the records of item files: CSV,
TSV, JSON lines (also Amazon's loose ones), one JSON document, Parquet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.catalogue import ItemFile, Record
from engine.data.log import LogFiles
from engine.data.options import ImportOptions
from engine.errors import SeqscopeError
from engine.files import expect_file
from engine.tabular.dialect import parse_object
from engine.tabular.findings import Findings
from engine.tabular.json_rows import load_document
from engine.tabular.reading import UNLIMITED, Reading, Role, UploadColumn
from engine.tabular.rows import load_rows
from engine.tabular.text import content_kind, head, named, write_plain


@dataclass(frozen=True)
class Workshop:
    """Where an import works."""

    con: duckdb.DuckDBPyConnection
    folder: Path
    """For intermediate files; removed in the end."""
    findings: Findings
    say: Callable[[str], None]
    """Tell the user what was guessed."""


@dataclass(frozen=True)
class Opened:
    """A source, opened: the log, and the catalogue where there is one."""

    log: LogFiles
    items: ItemFile | None = None


@dataclass(frozen=True)
class Source:
    """One public format."""

    name: str
    title: str
    """The dataset's name for people, where the user gives none."""
    about: str
    """`DatasetInfo.source`."""
    licence: str
    k_core: int
    """The convention of the papers that use the format."""
    open: Callable[[ImportOptions, Workshop], Opened]
    sets: bool = False
    """A user's items have no order; a file beside the log may hold those that the test asks for."""


def fixed_reading(
    path: Path, delimiter: str, roles: Mapping[str, Role], *, quote: str = "", encoding: str | None = None
) -> Reading:
    """How a delimited file without a header is read. roles: what its columns are called → what they are."""
    columns = tuple(UploadColumn(name=name, role=role) for name, role in roles.items())
    return Reading(
        format="delimited", gzip=packed(path), encoding=encoding or "utf-8", delimiter=delimiter, quote=quote, header=False,
        columns=columns,
    )  # fmt: skip


def packed(path: Path) -> bool:
    with named(path):
        return content_kind(path) == "gzip"


def first_lines(path: Path, encoding: str | None) -> list[str]:
    """The first lines of a text that are not blank. Raises SeqscopeError where there is none."""
    with named(path):
        if content_kind(path) == "parquet":
            raise SeqscopeError(f"{path} is a Parquet file, whatever its ending says. Rename it to .parquet.")
        lines = head(path, encoding or "utf-8")
    if not lines:
        raise SeqscopeError(f"{path} holds no rows.")
    return lines


def numbered_lines(workshop: Workshop, path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """(line from 1, text) of every line of a text that is not blank."""
    target = workshop.folder / f"{path.name}.plain"
    with named(path):
        write_plain(path, target, encoding or "utf-8", UNLIMITED, gzipped=packed(path), strict=True)
    with target.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line.rstrip("\n")


def only_file(paths: Sequence[Path], name: str, source: str) -> Path:
    """The file `name` where one folder was given, else the one file that was given, whatever it is called."""
    if len(paths) != 1:
        raise SeqscopeError(f"{source} reads one folder or one {name}, not {len(paths)} paths.")
    path = paths[0]
    if not path.is_dir():
        expect_file(path)
        return path
    if not (path / name).is_file():
        raise SeqscopeError(f"{path} holds no {name}, which {source} needs; it holds {listing(path)}.")
    return path / name


def matching_file(folder: Path, pattern: str, source: str) -> Path:
    """The one file of `folder` that matches."""
    matches = sorted(path for path in folder.glob(pattern) if path.is_file())
    if len(matches) == 1:
        return matches[0]
    description = f"no {pattern}" if not matches else f"several {pattern} ({', '.join(path.name for path in matches)})"
    raise SeqscopeError(f"{folder} holds {description}; {source} needs one. Name the file instead of the folder.")


def beside(path: Path, *names: str) -> Path | None:
    """The first of `names` that stands in the folder of `path`."""
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def listing(folder: Path, limit: int = 8) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return (", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")) or "nothing"


Records = Callable[[], Iterator[tuple[int | None, Record]]]


def table_records(workshop: Workshop, path: Path, reading: Reading, lists: set[str]) -> Records:
    """The rows of a delimited file. It is read when its records are first asked for."""
    table = f"items_{abs(hash(path))}"
    loaded = False

    def records() -> Iterator[tuple[int | None, Record]]:
        nonlocal loaded
        con = workshop.con.cursor()  # the findings go another way meanwhile
        if not loaded:
            with named(path):
                load_rows(
                    workshop.con, workshop.folder, path, reading, path.name, workshop.findings, UNLIMITED, strict=True
                )
            workshop.con.execute(f"ALTER TABLE rows RENAME TO {table}")
            loaded = True
        cells = ", ".join(f"coalesce(c{index}, '')" for index in range(len(reading.columns)))
        con.execute(f"SELECT line, {cells} FROM {table} ORDER BY line")
        while batch := con.fetchmany(10_000):
            for line, *fields in batch:
                row: Record = {column.name: field for column, field in zip(reading.columns, fields, strict=True)}
                for name in lists:
                    row[name] = [part for part in row[name].split("|") if part]
                yield line, row

    return records


def json_records(workshop: Workshop, path: Path, encoding: str | None) -> Records:
    """Objects of JSON lines. Amazon's metadata of 2014 are Python literals instead; they are read as such."""
    reported = False

    def records() -> Iterator[tuple[int | None, Record]]:
        nonlocal reported
        for line, text in numbered_lines(workshop, path, encoding):
            record = parse_object(text)
            if record is not None:
                yield line, flat(record)
            elif not reported:
                workshop.findings.add_row(path.name, "not_json", line, "", text.strip())
        reported = True

    return records


def document_records(path: Path, encoding: str | None) -> Iterator[tuple[None, Record]]:
    """One JSON document: a list of objects, or an object by id, whose keys become the column "id" (LETTER's item files)."""
    document = read_document(path, encoding)
    rows = document if isinstance(document, list) else []
    if isinstance(document, dict):
        rows = [_keyed(key, value) for key, value in document.items()]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise SeqscopeError(
            f"{path}: an item file in JSON is one object per line, a list of objects, or an object of objects by id."
        )
    for row in rows:
        yield None, flat(row)


def read_document(path: Path, encoding: str | None) -> Any:
    with named(path):
        return load_document(path, encoding or "utf-8", UNLIMITED, gzipped=packed(path))


def _keyed(key: str, value: Any) -> Record | None:
    """The row of an entry; a text is its title."""
    if isinstance(value, str):
        return {"id": key, "title": value}
    return {"id": key, **value} if isinstance(value, dict) else None


def parquet_records(path: Path) -> Iterator[tuple[int, Record]]:
    try:
        row = 0
        for batch in pq.ParquetFile(path).iter_batches(batch_size=10_000):
            for record in batch.to_pylist():
                row += 1
                yield row, flat(record)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # bytes that are no text, far dates
        raise SeqscopeError(f"{path} cannot be read as Parquet ({error}). Is it cut off? Get it again.")


def flat(record: Record) -> Record:
    """Lists of lists, as in Amazon's category paths, become one list without repetitions; what MongoDB wraps, as {"$oid": "65…"},
    stands bare."""
    for key, value in record.items():
        while isinstance(value, dict) and len(value) == 1 and str(*value).startswith("$"):
            (value,) = value.values()
            record[key] = value
        if isinstance(value, list) and any(isinstance(part, list) for part in value):
            parts = [part for inner in value for part in (inner if isinstance(inner, list) else [inner])]
            record[key] = list(dict.fromkeys(part for part in parts if isinstance(part, (str, int, float))))
    return record
