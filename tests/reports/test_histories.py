"""Many histories from files of every form; all come out alike, and what cannot be read is told in one message."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.reports import histories
from engine.errors import SeqscopeError
from engine.runtime import Zoo

WANTED = {"ann": ["toy-9", "a,b", "toy-12"], "bob": ["ключ"], "=cm|x": ["toy-20", "toy-9", "toy-9", "a b&c=d#e"]}


def rows() -> list[tuple[str, str, int]]:
    """Events in any order; times tell it."""
    found = [(user, item, 100 * at + 7) for user, items in WANTED.items() for at, item in enumerate(items, 1)]
    first = [next(row for row in found if row[0] == user) for user in WANTED]
    rest = [row for row in found if row not in first]
    random.Random(0).shuffle(rest)
    return first + rest  # people come in the order of their first rows


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def csv(path: Path, sep: str = ",", opened: Callable[..., object] = open) -> Path:
    lines = [sep.join(quoted(str(cell)) for cell in row) for row in [("User_ID", "Item", "timestamp"), *rows()]]
    with opened(path, "wt", encoding="utf-8") as file:  # type: ignore[attr-defined]
        file.write("\n".join(lines) + "\n")
    return path


def jsonl_events(path: Path) -> Path:
    path.write_text("".join(json.dumps({"user": u, "item": i, "time": t}) + "\n" for u, i, t in rows()), "utf-8")
    return path


def jsonl_lists(path: Path) -> Path:
    path.write_text("".join(json.dumps({"user": u, "items": items}) + "\n\n" for u, items in WANTED.items()), "utf-8")
    return path


def parquet_events(path: Path) -> Path:
    users, items, times = zip(*rows(), strict=True)
    moments = pa.array(times, pa.timestamp("s"))
    pq.write_table(pa.table({"user": users, "item_id": items, "date": moments}), path)
    return path


def parquet_lists(path: Path) -> Path:
    pq.write_table(pa.table({"user_id": list(WANTED), "history": list(WANTED.values())}), path)
    return path


def csv_lists(write: Callable[[list[str]], str]) -> Callable[[Path], Path]:
    """One history per row as a text, beside columns that are none of it: of these one is called like an item."""

    def make(path: Path) -> Path:
        rows = [",".join(map(quoted, (user, write(items), items[-1]))) for user, items in WANTED.items()]
        path.write_text("user_id,history,item\n" + "\n".join(rows) + "\n", "utf-8")
        return path

    return make


def read(
    models: Zoo, source: Path | str, work: Path, size: int = 2, **columns: str
) -> tuple[dict[str, list[str]], int]:
    with histories.reading(source, models, work, columns) as found:
        chunks = list(found.chunks(size))
        again = list(found.chunks(size))
        assert [chunk.names for chunk in chunks] == [chunk.names for chunk in again]
        assert all(len(chunk.names) == size for chunk in chunks[:-1])
        assert sum(len(chunk.names) for chunk in chunks) == found.total
    told = {
        name: [models.item_ids[item] for item in events]
        for chunk in chunks
        for name, events in zip(chunk.names, chunk.events, strict=True)
    }
    return told, sum(chunk.unknown for chunk in chunks)


MAKERS: dict[str, Callable[[Path], Path]] = {
    "it's [1] *.csv": csv,
    "a.CSV.gz": lambda path: csv(path, opened=gzip.open),
    "semi.csv": lambda path: csv(path, ";"),
    "events.jsonl": jsonl_events,
    "lists.jsonl": jsonl_lists,
    "lists.parquet": parquet_lists,
    "it's [1] *.parquet": parquet_events,
    "json-lists.csv": csv_lists(json.dumps),
    "python-lists.csv": csv_lists(repr),
    "bars.csv": csv_lists("|".join),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_form(models: Zoo, tmp_path: Path, name: str) -> None:
    found, unknown = read(models, MAKERS[name](tmp_path / name), tmp_path)
    assert found == WANTED and list(found) == list(WANTED) and unknown == 0


def test_lines_of_ids(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "h.txt"
    path.write_text("toy-9 toy-12\n\n  toy-20\ttoy-9  \n", "utf-8-sig")
    assert read(models, path, tmp_path) == ({"1": ["toy-9", "toy-12"], "3": ["toy-20", "toy-9"]}, 0)
    path = tmp_path / "h.jsonl"
    path.write_text('["toy-9"]\n["toy-12", "nope"]\n', "utf-8")
    assert read(models, path, tmp_path) == ({"1": ["toy-9"], "2": ["toy-12"]}, 1)


def test_a_table_that_a_spreadsheet_wrote_is_one_though_it_is_called_txt_and_ends_in_rows_of_delimiters(
    models: Zoo, tmp_path: Path
) -> None:
    path = tmp_path / "h.txt"
    for sign, end in ("\t", ""), (";", ";;\n;;\n"):
        lines = [sign.join(row) for row in [("user", "item", "time"), ("x", "toy-12", "2"), ("x", "toy-9", "1")]]
        path.write_text("\n".join(lines) + f"\n{end}", "utf-8")
        assert read(models, path, tmp_path) == ({"x": ["toy-9", "toy-12"]}, 0)
    path = tmp_path / "h.csv"
    path.write_text("user;items\nx;toy-12|toy-9\n;\n", "utf-8")
    assert read(models, path, tmp_path) == ({"x": ["toy-12", "toy-9"]}, 0)


def test_what_was_read_is_said_and_the_targets_are_not_taken_for_histories(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    columns = {"user": ["a", "b"], "past": [["toy-9"], ["toy-12"]], "item": ["toy-20", "toy-20"]}
    pq.write_table(pa.table(columns), path)
    with histories.reading(path, models, tmp_path) as found:
        assert "items = “past”" in found.about and "not read: “item”" in found.about
    assert read(models, path, tmp_path, item="item")[0] == {"a": ["toy-20"], "b": ["toy-20"]}  # somebody said so
    pq.write_table(pa.table({**columns, "seen": columns["past"]}), path)
    with pytest.raises(SeqscopeError, match="--items-column"):
        read(models, path, tmp_path)


def test_people_of_the_dataset(models: Zoo, root: Path, tmp_path: Path) -> None:
    assert [histories.people_words(zoo) for zoo in (models, Zoo.open(root / "exports" / "sample"))] == [
        "the 4 users of this dataset", "2,000 of the 4,500 users of this dataset",
    ]  # fmt: skip
    found, unknown = read(models, histories.PEOPLE, tmp_path, 3)
    assert unknown == 0 and list(found) == models.users["user_id"].to_pylist()
    assert found["u2"] == [models.item_ids[item] for item in models.users["history"][2].as_py()]


def test_the_rows_or_times_as_texts_tell_the_order(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item\nx,toy-9\ny,toy-9\nx,toy-12\nx,nope\ny,\n", "utf-8")
    found, unknown = read(models, path, tmp_path)
    assert found == {"x": ["toy-9", "toy-12"], "y": ["toy-9", ""]}  # this catalogue has an item called ""
    assert unknown == 1
    path.write_text("user,item,time\nx,toy-9,2026-02-01\nx,toy-12,2026-01-15\n", "utf-8")
    assert read(models, path, tmp_path)[0] == {"x": ["toy-12", "toy-9"]}
    path.write_text("user,item,time\nx,toy-9,10\nx,toy-12,9\nx,toy-20,1e3\n", "utf-8")
    assert read(models, path, tmp_path)[0] == {"x": ["toy-12", "toy-9", "toy-20"]}
    path.write_text("user,item,time\nx,toy-9,t2\nx,toy-12,t1\n", "utf-8")
    assert read(models, path, tmp_path)[0] == {"x": ["toy-12", "toy-9"]}
    path.write_text("user,item,time\nx,toy-9,10\nx,toy-12,soon\nx,toy-20,later\n", "utf-8")
    with pytest.raises(SeqscopeError, match=r"Line 3: .*cannot be read"):
        read(models, path, tmp_path)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("31.01.2026", "01.02.2026"), ("2026-03-29 09:00:00+05:00", "2026-03-29 08:00:00+00:00"), ("9", "10"),
        ("9,25", "10,5"), ("999999999,250", "1000000000,125"),
    ],
)  # fmt: skip
def test_times_in_words_are_moments(models: Zoo, tmp_path: Path, earlier: str, later: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"user;item;time\nx;toy-12;{later}\nx;toy-9;{earlier}\n", "utf-8")
    assert read(models, path, tmp_path)[0] == {"x": ["toy-9", "toy-12"]}


def test_the_time_of_day_in_a_column_of_its_own_tells_the_order_within_a_day(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "x,toy-12,02.02.2026,08:00\nx,toy-9,01.02.2026,14:05\nx,toy-20,01.02.2026,09:30\nx,toy-20,13.02.2026,07:00\n"
    path.write_text(f"user,item,date,time\n{rows}", "utf-8")
    assert read(models, path, tmp_path)[0] == {"x": ["toy-20", "toy-9", "toy-12", "toy-20"]}


def test_a_column_of_times_that_is_empty_leaves_the_order_to_the_rows(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,time\nx,toy-12,\nx,toy-9,\n", "utf-8")
    assert read(models, path, tmp_path)[0] == {"x": ["toy-12", "toy-9"]}


@pytest.mark.parametrize("indent", [None, 1])
def test_one_document_of_objects_is_no_list_of_items(models: Zoo, tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"user": "x", "items": ["toy-9"]}], indent=indent), "utf-8")
    with pytest.raises(SeqscopeError, match="one JSON document"):
        read(models, path, tmp_path)


def test_no_column_need_be_the_time_or_the_user(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,time\nx,toy-12,2\nx,toy-9,N/A\nx,toy-20,1\n", "utf-8")
    assert read(models, path, tmp_path, time="")[0] == {"x": ["toy-12", "toy-9", "toy-20"]}
    path.write_text('user,items\nx,"[""toy-9""]"\n', "utf-8")
    assert read(models, path, tmp_path, user="")[0] == {"2": ["toy-9"]}
    path.write_text('user,items\nx,"[""toy-9""]"\nx,"[""toy-12""]"\n', "utf-8")
    assert read(models, path, tmp_path, user="")[0] == {"2": ["toy-9"], "3": ["toy-12"]}


def test_a_file_whose_days_could_be_months_is_refused(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item,time\nx,toy-9,01/02/2026\nx,toy-12,02/01/2026\n", "utf-8")
    with pytest.raises(SeqscopeError, match="Day and month of its times could be either way round"):
        read(models, path, tmp_path)


def test_columns_of_other_names(models: Zoo, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('wer,"w""as",wann\nx,toy-9,2\nx,toy-12,1\n', "utf-8")
    assert read(models, path, tmp_path, user="wer", item='w"as', time="wann")[0] == {"x": ["toy-12", "toy-9"]}
    with pytest.raises(SeqscopeError, match=r"which column is the user\? It has “wer”, “w\"as” and “wann”"):
        read(models, path, tmp_path)
    with pytest.raises(SeqscopeError, match="has no column “nope”"):
        read(models, path, tmp_path, user="nope")


def test_many_events_of_few(models: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that is longer than what is read from the database at a time."""
    monkeypatch.setattr(histories, "_BATCH", 2_048)
    items = np.random.default_rng(0).integers(0, 40, 25_000)
    ids = np.array(models.item_ids, object)[items]
    pq.write_table(pa.table({"user": ["a"] * 12_000 + ["b"] * 13_000, "item": pa.array(ids)}), tmp_path / "a.parquet")
    with histories.reading(tmp_path / "a.parquet", models, tmp_path) as found:
        (chunk,) = found.chunks(10)
    assert chunk.names == ["a", "b"]
    assert np.array_equal(chunk.events[0], items[:12_000]) and np.array_equal(chunk.events[1], items[12_000:])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.xlsx", b"PK\x03\x04", "an Excel workbook"),
        ("a.csv", b"user,item,time\nx,toy-9,2026-02-01\nx,toy-9,N/A\n", "Line 3: .*cannot be read"),
        ("a.csv", b"user,item,time\nx,toy-9,9\nx,toy-9,10\nx,toy-9,nan\n", "Line 4: .*cannot be read"),
        ("a.csv", b"user,item,time\nx,toy-9,9\nx,toy-9,\n", "Line 3: .*without a time"),
        ("a.csv", b"user,item,time\nx,toy-9,t9\nx,toy-9,t10\n", "“t10” to “t9”.* would not be in order"),
        ("a.csv", b"user,item,time\nx,toy-9,Jan\nx,toy-9,Feb\n", "would not be in order"),
        ("a.csv", b"user,item\nx,7\nx,8\n", "None of its items is in .*“7”"),
        ("a.txt", b"7 8\n\n9\n", "None of its items is in .*“7”"),
        ("a.csv", b"user,item\n", "no events"),
        ("a.csv", b"user,items\n", "no events"),
        ("a.json", b'{"x": ["toy-9"], "y": ["toy-8"]}', "one JSON document"),
        ("a.json", b'[["toy-9", "toy-8"], ["toy-7"]]', "one JSON document"),
        ("a.json", b'{"x": ["toy-9"],\n "y": ["toy-8"]}', "one JSON document"),
        ("a.csv", b"one column\n1\n", "which column is the user"),
        ("a.csv", "user,item\n영,화\n".encode("cp949"), "UTF-8"),
        ("a.jsonl", b'{"user": "x", "item": "toy-9"}\n{\n', "a.jsonl:2: line that is not valid JSON"),
        ("a.jsonl", b'["toy-9"]\n{"user": "x"}\n', "no list of items"),
        ("a.csv", b"user,item\n1,toy-9\n,toy-9\n", "Line 3: event without a user"),
        ("a.jsonl", b'{"user": "x", "item": "toy-9"}\n{"item": "toy-9"}\n', "Line 2: event without a user"),
        ("a.txt", b"\xff\xfe\x00", "UTF-16"),
        ("a.csv", b"user,items\nx,[1]\ny,[1]\ny,[2]\nx,[2]\n", "Lines 2 and 5: .*“x”"),
        ("a.csv", b"user,items\nx,[1]\n2,[1]\ny,[1]\n,[2]\n5,[3]\n", "Lines 5 and 6: .*“5”"),
    ],
)
def test_what_cannot_be_read(models: Zoo, tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SeqscopeError, match=words) as error:
        read(models, tmp_path / name, tmp_path)
    assert "\n" not in str(error.value)


def test_no_file_and_no_people(models: Zoo, copied: Path, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="does not exist"):
        read(models, tmp_path / "nope.csv", tmp_path)
    (copied / "users.parquet").unlink()
    with pytest.raises(SeqscopeError, match="without its users"):
        read(Zoo.open(copied), histories.PEOPLE, tmp_path)
