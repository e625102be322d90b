"""A batch answers what each model answers, in whole files or none; it goes on where it was ended."""

import csv
import gzip
import io
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.reports import batch, histories
from app.reports.command import configure, run
from app.reports.histories import Bounds, TooMuch
from engine.bundle.errors import BundleError
from engine.errors import SeqscopeError
from engine.files import alone
from engine.runtime import Zoo, retrieval
from engine.runtime.bundle import Bundle
from engine.tabular.reading import MB
from tests.runtime.bundles import TOYS, make_zoo, seal

NAMES = ["alpha", "popular", "writer"]


@pytest.fixture
def source(models: Zoo, tmp_path: Path) -> Path:
    """Nine histories: 0 to 8 items, and one of unknown items alone."""
    rng = np.random.default_rng(0)
    lines = [" ".join(f"toy-{item}" for item in rng.integers(8, 40, length)) for length in range(1, 9)]
    path = tmp_path / "h.txt"
    path.write_text("\n".join([*lines, "nope never"]), "utf-8")
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "CHUNK", 4)


@pytest.mark.usefixtures("small")
def test_it_says_what_the_models_say(models: Zoo, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.parquet"
    summary = batch.run(models, source, out, names=NAMES, k=4, titles=True)
    table = pq.read_table(out).to_pylist()
    assert summary.histories == 9 and summary.rows == len(table) and summary.unknown == 2
    assert summary.unanswered == {"Alpha": 1} and summary.resumed == 0
    with histories.reading(source, models, tmp_path) as found:
        (chunk,) = found.chunks(100)
    for name, events in zip(chunk.names, chunk.events, strict=True):
        for model in NAMES:
            own = [row for row in table if row["history"] == name and row["model"] == model]
            if len(events) < models.bundles[model].manifest.encoder.min_history:
                assert not own
                continue
            wanted = models.bundles[model].recommend_one(events, 4)
            assert [row["item_id"] for row in own] == [models.item_ids[item] for item in wanted.items]
            assert [row["rank"] for row in own] == list(range(1, len(own) + 1))
            assert [row["score"] for row in own] == pytest.approx(wanted.scores.tolist(), rel=1e-5)
            assert own[0]["title"].startswith(models.titles[wanted.items[0]])
    about = json.loads(pq.read_schema(out).metadata[b"seqscope"])
    assert (
        about["fingerprint"] == models.info.fingerprint and about["models"]["alpha"] == models.bundles["alpha"].digest
    )
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_models_of_one_title_are_told_apart_where_they_had_no_answer(source: Path, tmp_path: Path) -> None:
    path = make_zoo(tmp_path)
    seal(Path(shutil.copytree(path / "alpha", path / "twin")), name="twin")
    summary = batch.run(Zoo.open(path), source, tmp_path / "o.parquet", names=["alpha", "twin"])
    assert summary.unanswered == {"Alpha (alpha)": 1, "Alpha (twin)": 1}


def test_csv_is_the_same_and_neutral(models: Zoo, tmp_path: Path) -> None:
    source = tmp_path / "h.jsonl"
    source.write_text(
        '{"user": "=1+1", "items": ["toy-9"]}\n{"user": " @x", "items": []}\n{"user": "-5", "items": ["toy-12"]}\n'
    )
    out = tmp_path / "o.csv"
    batch.run(models, source, out, names=["popular"], k=40, titles=True)
    content = out.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    read = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    assert read[0] == ["history", "model", "rank", "item_id", "title", "score"]
    assert {row[0] for row in read[1:]} == {"'=1+1", "'@x", "'-5"}
    assert any(row[4].startswith("'=HYPERLINK") for row in read[1:])
    assert all(float(row[5]) > 0 and int(row[2]) > 0 for row in read[1:])


@pytest.mark.usefixtures("small")
def test_it_goes_on_where_it_was_ended(
    models: Zoo, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = tmp_path / "o.parquet", tmp_path / "w.parquet"
    batch.run(models, source, whole, names=NAMES, k=4)
    assert ended(models, source, out) == 5
    assert not out.exists() and len(list((tmp_path / ".o.parquet.parts").glob("0*.parquet"))) == 1
    asked = counted(monkeypatch)
    summary = batch.run(models, source, out, names=NAMES, k=4)
    assert summary.resumed == 4 and summary.histories == 9
    assert len(asked) == 2 * len(NAMES)  # two chunks of three
    assert pq.read_table(out).equals(pq.read_table(whole))
    assert not (tmp_path / ".o.parquet.parts").exists()


def ended(models: Zoo, source: Path | str, out: Path) -> int:
    """A run that is ended while it answers its second chunk; how often it asked."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        calls = counted(patch, stop=4)
        batch.run(models, source, out, names=NAMES, k=4)
    return len(calls)


def counted(monkeypatch: pytest.MonkeyPatch, stop: int | None = None) -> list[int]:
    asked: list[int] = []
    real = Bundle.recommend_many

    def many(self: Bundle, some: Any, k: int, **more: Any) -> Any:
        asked.append(len(some))
        if stop is not None and len(asked) > stop:
            raise KeyboardInterrupt
        return real(self, some, k, **more)

    monkeypatch.setattr(Bundle, "recommend_many", many)
    return asked


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", ["source", "k", "restart"])
def test_parts_of_other_work_are_not_taken(models: Zoo, source: Path, tmp_path: Path, change: str) -> None:
    out = tmp_path / "o.parquet"
    ended(models, source, out)
    if change == "source":
        source.write_text(source.read_text().replace("toy-8", "toy-9") + "\ntoy-30", "utf-8")
    k, restart = 3 if change == "k" else 4, change == "restart"
    assert batch.run(models, source, out, names=NAMES, k=k, restart=restart).resumed == 0


def test_parts_of_other_people_are_not_taken(copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "CHUNK", 2)
    out, users = tmp_path / "o.parquet", copied / "users.parquet"
    ended(Zoo.open(copied), histories.PEOPLE, out)
    pq.write_table(pq.read_table(users).slice(1), users)
    assert batch.run(Zoo.open(copied), histories.PEOPLE, out, names=NAMES, k=4).resumed == 0


def test_two_at_once_do_not_mix(models: Zoo, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.parquet"
    parts = tmp_path / ".o.parquet.parts"
    parts.mkdir()
    with alone(parts), pytest.raises(SeqscopeError, match=r"Another process is writing o\.parquet"):
        batch.run(models, source, out, names=NAMES)


def test_progress_for_the_program_that_started_it(
    models: Zoo, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_PROGRESS", str(tmp_path / "p.json"))
    batch.run(models, source, tmp_path / "o.parquet", names=NAMES, k=4)
    assert json.loads((tmp_path / "p.json").read_text()) == {"words": "Popular", "done": 27, "of": 27, "left": 0.0}


def test_memory_does_not_grow_with_the_number(models: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are answered and written before more histories are read."""
    monkeypatch.setattr(batch, "CHUNK", 10)
    taken = 0
    answered = counted(monkeypatch)

    def endless(models: Zoo) -> Iterator[histories.One]:
        nonlocal taken
        for at in range(500):
            taken += 1
            assert taken - sum(answered) <= 10
            yield str(at), np.array([9], np.int64), 0

    monkeypatch.setattr(histories, "_people", endless)
    summary = batch.run(models, histories.PEOPLE, tmp_path / "o.parquet", names=["alpha"], k=2)
    assert summary.histories == 500 and summary.rows == 1_000


@pytest.mark.parametrize(
    ("out", "more", "words"),
    [
        ("o.xlsx", {}, "a .parquet or a .csv"),
        ("o.csv", {"names": ["nope"]}, "no model “nope”; there are alpha"),
        ("o.csv", {"k": 0}, "1 to 1,000 items"),
    ],
)
def test_what_cannot_be_had(
    models: Zoo, source: Path, tmp_path: Path, out: str, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(SeqscopeError, match=words):
        batch.run(models, source, tmp_path / out, **more)
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize("link", [False, True])
def test_the_histories_are_not_written_over(models: Zoo, source: Path, tmp_path: Path, link: bool) -> None:
    content, same = source.read_bytes(), source.rename(tmp_path / "h.csv")
    out = tmp_path / "link.csv" if link else same
    if link:
        out.symlink_to(same)
    with pytest.raises(SeqscopeError, match="the file of the histories itself"):
        batch.run(models, same, out, names=NAMES)
    assert same.read_bytes() == content


def test_what_cannot_be_written_is_refused_before_anything_is_answered(
    models: Zoo, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = counted(monkeypatch)
    (tmp_path / "work.csv").write_text("of months", "utf-8")
    with pytest.raises(SeqscopeError, match=r"work\.csv exists already"):
        batch.run(models, source, tmp_path / "work.csv", names=NAMES)
    (tmp_path / "o.csv").mkdir()
    with pytest.raises(SeqscopeError, match=r"o\.csv is a folder"):
        batch.run(models, source, tmp_path / "o.csv", names=NAMES)
    with pytest.raises(SeqscopeError, match="does not exist"):
        batch.run(models, tmp_path / "nope.csv", tmp_path / "new" / "o.csv", names=NAMES)
    (tmp_path / "empty.csv").write_text("user,item\n", "utf-8")
    with pytest.raises(SeqscopeError, match="no events"):
        batch.run(models, tmp_path / "empty.csv", tmp_path / "new" / "o.csv", names=NAMES)
    assert not answered and not (tmp_path / "new").exists()


def test_a_damaged_model_is_told_and_not_taken_for_one_that_never_was(
    copied: Path, source: Path, tmp_path: Path
) -> None:
    (copied / "alpha" / "index.npy").write_bytes(b"")
    models, words = Zoo.open(copied), list[str]()
    batch.run(models, source, tmp_path / "o.parquet", k=1, told=words.append)
    assert "alpha/index.npy: the file has 0 bytes" in words[0] and "Left out" in words[0] and len(words) == 2
    summary = batch.run(models, source, tmp_path / "o2.parquet", names=["alpha", "popular"], k=1)
    assert "left out: alpha/index.npy: the file has 0 bytes" in str(summary)
    with pytest.raises(SeqscopeError, match=r"“alpha” of \S+ cannot be opened: alpha/index\.npy: the file has 0 bytes"):
        batch.run(models, source, tmp_path / "o3.parquet", names=["alpha"])


@pytest.mark.parametrize("late", [False, True], ids=["when it is read", "in the middle"])
@pytest.mark.usefixtures("small")
def test_the_others_go_on_without_a_model_whose_damage_shows_when_it_is_used(
    models: Zoo, copied: Path, source: Path, tmp_path: Path, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch.run(models, source, tmp_path / "rest.csv", names=[name for name in NAMES if name != "alpha"])
    if late:
        answer, calls = Bundle.recommend_many, list[str]()

        def ending(bundle: Bundle, histories: Any, k: int) -> Any:
            calls.append(bundle.name)
            if bundle.name == "alpha" and calls.count("alpha") == 2:
                time.sleep(0.5)
                raise BundleError("alpha", "encoder.onnx", "the model answers nonsense")
            return answer(bundle, histories, k)

        monkeypatch.setattr(Bundle, "recommend_many", ending)
    else:
        monkeypatch.setattr(retrieval, "EAGER_BYTES", 0)  # as an index of many items
        (copied / "alpha" / "index.npy").write_bytes(bytes((copied / "alpha" / "index.npy").stat().st_size))
    damaged, words = Zoo.open(copied), list[str]()
    assert "alpha" in damaged.bundles
    summary = batch.run(damaged, source, tmp_path / "o.csv", names=NAMES, told=words.append)
    assert [fault.name for fault in summary.refused] == ["alpha"] and any("Left out: alpha/" in line for line in words)
    assert summary.seconds >= 0.5 * late  # of what was begun in vain, too
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "rest.csv").read_bytes()
    assert not list(tmp_path.glob(".*.parts"))


def test_models_beyond_what_a_byte_counts(source: Path, tmp_path: Path) -> None:
    popular = next(toy for toy in TOYS if toy.identity)
    names = [f"m{number}" for number in range(130)]
    toys = [replace(popular, name=name, order=at) for at, name in enumerate(names)]
    models = Zoo.open(make_zoo(tmp_path / "many", toys))
    batch.run(models, source, tmp_path / "o.parquet", names=names, k=1)
    assert set(pq.read_table(tmp_path / "o.parquet")["model"].to_pylist()) == set(names)


# --- what somebody else uploads may not take the disk or the day: each bound ends in one message, and nothing is left


WIDE = Bounds()
EVENTS = "user,item\n" + "ann,toy-9\n" * 3_000


def events(path: Path) -> Path:
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
        ("h.csv", events, {"text": 20_000}, r"h\.csv: The file holds more than 0 MB.*Upload a part"),
        ("h.csv", events, {"rows": 2_999}, r"h\.csv: The file has 3,000 rows; at most 2,999.*Upload a part"),
        ("h.txt", lambda path: path.write_text("toy-9 " * 3_000) and path, {"rows": 2_999}, "more than 2,999 events"),
        ("h.jsonl", jsonl, {"rows": 2_999}, "more than 2,999 events.*take a part"),
        ("h.parquet", lists, {"rows": 2_999}, "more than 2,999 events"),
        ("h.parquet", long_texts, {"text": 4 * MB}, "5 MB of text once it is unpacked; at most 4 MB"),
        ("h.csv", events, {"seconds": 0}, r"Reading h\.csv took longer than 0 seconds.*take a part"),
        ("h.jsonl", jsonl, {"answers": 599}, "100 histories, 2 models and 3 items each would be 600 rows; at most 599"),
        ("h.jsonl", jsonl, {"output": 100}, "The lists take more than 0 MB.*Choose Parquet"),
    ],
)
def test_a_bound_is_named_and_nothing_is_left(
    models: Zoo, tmp_path: Path, name: str, make: Callable[[Path], Path], change: dict[str, int], words: str
) -> None:
    source, out = make(tmp_path / name), tmp_path / "out" / "lists.csv"
    request = {"names": ["alpha", "popular"], "k": 3}
    with pytest.raises(SeqscopeError, match=words):
        batch.run(models, source, out, **request, bounds=WIDE.model_copy(update=change))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_just_within_the_bounds_which_are_those_of_uploads(
    models: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, enough = events(tmp_path / "h.csv"), WIDE.model_copy(update={"rows": 3_000, "answers": 3})
    summary = batch.run(models, source, tmp_path / "o.csv", names=["alpha"], k=3, bounds=enough)
    assert summary.histories == 1 and summary.rows == 3
    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "1234")
    monkeypatch.setenv("SEQSCOPE_UPLOAD_SECONDS", "56")
    bounds = Bounds.of_environment()
    assert (bounds.rows, bounds.seconds, bounds.text) == (1_234, 56, 512 * MB)


@pytest.mark.long
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
        batch.run(models, events(tmp_path / "h.csv"), tmp_path / "o.csv", bounds=short)
    assert time.monotonic() - began < 30


def test_the_command_has_bounds_where_they_are_asked_for(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse

    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "100")
    source = events(tmp_path / "h.csv")
    parser = argparse.ArgumentParser()
    configure(parser)
    words = ["batch", str(hostile), str(source), "--to", str(tmp_path / "o.csv"), "--models", "popular"]
    assert run(parser.parse_args(words)) == 0
    with pytest.raises(SeqscopeError, match="at most 100 are taken"):
        run(parser.parse_args([*words, "--overwrite", "--bounded"]))
