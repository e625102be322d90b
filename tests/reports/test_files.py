"""CSV, zip and names of files; the zip is the same for the same report."""

import csv
import dataclasses
import errno
import io
import os
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.reports import document, files
from app.reports.build import build
from app.reports.document import Asked, Report
from app.reports.files import tables
from app.text import csv_bytes
from engine.files import replacing
from engine.runtime import Zoo


def rows(content: bytes) -> list[list[str]]:
    assert content.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_every_table_says_what_the_report_does_in_files_by_form(report: Report) -> None:
    found = tables(report)
    assert set(found) >= {
        "history", "lists", "what-ifs", "effects", "overlap", "attention", "attention-matrix", "codes", "codes-collisions",
        "codes-items", "graph", "graph-layers", "graph-without", "map-marks", "map-points", "metrics", "metrics-beyond",
        "metrics-groups", "models",
    }  # fmt: skip
    for name, table in found.items():
        read = rows(csv_bytes(table.columns, table.rows))
        assert read[0] == list(table.columns) and "people" not in read[0], name
        assert len(read) == len(table.rows) + 1 and {len(row) for row in read} == {len(table.columns)}
    lists = rows(csv_bytes(found["lists"].columns, found["lists"].rows))
    assert len(lists) == 1 + sum(len(one.items) for one in report.lists or [])
    assert float(lists[1][4]) == (report.lists or [])[0].items[0].score
    groups = rows(csv_bytes(found["metrics-groups"].columns, found["metrics-groups"].rows))
    compared = report.metrics and report.metrics.verdict
    assert compared and [float(cell) for cell in groups[1][1:]] == list(dataclasses.astuple(compared.groups[0])[2:])
    found = files.files(report, ["html", "json", "csv"])
    stem = report.stem
    assert stem == "seqscope-img-src-x-onerror-alert-1-2026-11-20"
    assert found[f"{stem}.json"] == document.write(report)
    untitled, data = report.asked.model_copy(update={"title": ""}), {"title": "七人の侍 / № 7", "name": "d41d8cd98f"}
    titled = report.model_copy(update={"asked": untitled, "dataset": report.dataset.model_copy(update=data)})
    assert titled.stem == "seqscope-七人の侍-7-2026-11-20"
    assert f"{stem}-lists.csv" in found and f"{stem}.pdf" not in found
    assert b"'=HYPERLINK" in found[f"{stem}-history.csv"]  # cells are neutralised, as those of every table


def test_the_zip_is_whole_and_the_same_again(models: Zoo) -> None:
    report = build(models, Asked(history=["toy-9"], models=["popular"], parts=["history", "lists"]))
    one = files.zipped(report)
    assert one == files.zipped(report)
    with zipfile.ZipFile(io.BytesIO(one)) as packed:
        names = {name.partition("/")[2] for name in packed.namelist()}
        assert {
            *(f"{report.stem}.{form}" for form in ("html", "pdf", "json")),
            "report.schema.json",
            "tables/lists.csv",
        } <= names
        assert all(name.startswith(f"{report.stem}/") and ".." not in name for name in packed.namelist())
        assert document.read(packed.read(f"{report.stem}/{report.stem}.json")) == report


def test_writing_leaves_nothing_half_and_brings_no_folder_back_that_was_deleted(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as staged:
        staged.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    with replacing(target) as staged:
        staged.write_text("new")
    assert target.read_text() == "new"
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "deleted" / "a.txt"):
        pass
    assert not (tmp_path / "deleted").exists()


def save(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(1_000))


@pytest.mark.parametrize("write", [save, lambda path: pq.write_table(pa.table({"a": range(1_000)}), path)])
def test_where_nothing_more_can_be_written_the_file_is_named(tmp_path: Path, write: Callable[[Path], None]) -> None:
    """numpy says how many numbers it has written, pyarrow that it failed."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        with pytest.raises(OSError) as failure, replacing(tmp_path / "a") as staged:
            write(staged)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert failure.value.filename == str(tmp_path / "a")
    assert failure.value.strerror in (os.strerror(errno.EFBIG), os.strerror(errno.ENOSPC))
