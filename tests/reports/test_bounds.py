"""What somebody else uploads may not take the disk or the day: each bound ends in one message, and nothing is left."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.reports import batch, histories
from app.reports.command import configure, run
from app.reports.histories import Bounds, TooMuch
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from engine.tabular.reading import MB

WIDE = Bounds()
EVENTS = "user,item\n" + "ann,toy-9\n" * 3_000


def csv(path: Path) -> Path:
    path.write_text(EVENTS)
    return path


def bomb(path: Path) -> Path:
    """40 kB that are 40 MB of valid rows."""
    row = b"ann,toy-9\n" * 100_000
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"user,item\n")
        for _ in range(40):
            file.write(row)
    assert path.stat().st_size < MB
    return path


def jsonl(path: Path) -> Path:
    path.write_text("\n".join(json.dumps({"user": str(n), "items": ["toy-9"] * 30}) for n in range(100)))
    return path


def lists(path: Path) -> Path:
    pq.write_table(pa.table({"user": ["a", "b"], "items": [["toy-9"] * 2_000, ["toy-8"] * 1_000]}), path)
    return path


def long_texts(path: Path) -> Path:
    """A long text that a Parquet file stores once, and its own description does not count."""
    pq.write_table(
        pa.table({"user": pa.array(["x" * 10_000] * 500).dictionary_encode(), "item": ["toy-9"] * 500}), path
    )
    return path


@pytest.mark.parametrize(
    ("name", "make", "change", "words"),
    [
        ("h.csv.gz", bomb, {}, "grows to more than 200 times"),
        ("h.csv", csv, {"text": 20_000}, r"h\.csv: The file holds more than 0 MB.*Upload a part"),
        ("h.csv", csv, {"rows": 2_999}, r"h\.csv: The file has 3,000 rows; at most 2,999.*Upload a part"),
        ("h.txt", lambda path: path.write_text("toy-9 " * 3_000) and path, {"rows": 2_999}, "more than 2,999 events"),
        ("h.jsonl", jsonl, {"rows": 2_999}, "more than 2,999 events.*take a part"),
        ("h.parquet", lists, {"rows": 2_999}, "more than 2,999 events"),
        ("h.parquet", long_texts, {"text": 4 * MB}, "5 MB of text once it is unpacked; at most 4 MB"),
        ("h.csv", csv, {"seconds": 0}, r"Reading h\.csv took longer than 0 seconds.*take a part"),
        ("h.jsonl", jsonl, {"answers": 599}, "100 histories, 2 models and 3 items each would be 600 rows; at most 599"),
        ("h.jsonl", jsonl, {"output": 100}, "The lists take more than 0 MB.*Choose Parquet"),
    ],
)
def test_a_bound_is_named_and_nothing_is_left(
    models: Zoo, tmp_path: Path, name: str, make: Callable[[Path], Path], change: dict[str, int], words: str
) -> None:
    source, out = make(tmp_path / name), tmp_path / "out" / "lists.csv"
    asked = {"names": ["alpha", "popular"], "k": 3}
    with pytest.raises(SeqscopeError, match=words):
        batch.run(models, source, out, **asked, bounds=WIDE.model_copy(update=change))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_just_within_the_bounds_which_are_those_of_uploads(
    models: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, enough = csv(tmp_path / "h.csv"), WIDE.model_copy(update={"rows": 3_000, "answers": 3})
    found = batch.run(models, source, tmp_path / "o.csv", names=["alpha"], k=3, bounds=enough)
    assert found.histories == 1 and found.rows == 3
    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "1234")
    monkeypatch.setenv("SEQSCOPE_UPLOAD_SECONDS", "56")
    bounds = Bounds.of_environment()
    assert (bounds.rows, bounds.seconds, bounds.text) == (1_234, 56, 512 * MB)


def test_sorting_has_so_much_of_the_disk(models: Zoo, tmp_path: Path) -> None:
    source, name = tmp_path / "h.csv", "somebody with a long name" * 7
    with source.open("w") as file:
        file.write("user,item\n")
        file.writelines(f"{name}{n},toy-9\n" for n in range(400_000))
    out = tmp_path / "out" / "lists.csv"
    with pytest.raises(SeqscopeError, match=r"h\.csv: Reading the file takes more memory or disk"):
        small = {"memory": 200 * MB, "disk": 8 * MB}
        batch.run(models, source, out, names=["popular"], k=1, bounds=WIDE.model_copy(update=small))
    assert not (tmp_path / "out").exists()


def test_a_statement_that_takes_too_long_is_ended(models: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the statement, not only after it."""

    def forever(con: duckdb.DuckDBPyConnection, query: str) -> int:
        return len(con.execute("select count(*) from range(10000000) a, range(10000000) b where a != b").fetchall())

    monkeypatch.setattr(histories, "value", forever)
    began = time.monotonic()
    short = WIDE.model_copy(update={"seconds": 1})
    with pytest.raises(TooMuch, match="took longer than 1 second and"):
        batch.run(models, csv(tmp_path / "h.csv"), tmp_path / "o.csv", bounds=short)
    assert time.monotonic() - began < 30


def test_the_command_has_bounds_where_they_are_asked_for(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse

    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "100")
    source = csv(tmp_path / "h.csv")
    parser = argparse.ArgumentParser()
    configure(parser)
    words = ["batch", str(hostile), str(source), "--to", str(tmp_path / "o.csv"), "--models", "popular"]
    assert run(parser.parse_args(words)) == 0
    with pytest.raises(SeqscopeError, match="at most 100 are taken"):
        run(parser.parse_args([*words, "--bounded"]))
