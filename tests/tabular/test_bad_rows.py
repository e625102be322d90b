"""Bad rows, as the import and the check of an upload report them: every one with its physical line, its column and its value.

Both read with engine.tabular, so that one table says what both must find.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.tabular.database import rows_left_out
from engine.tabular.problems import PROBLEMS
from tests.data.conftest import LOG
from tests.uploads.conftest import Desk

Reader = Callable[[Path, str], tuple[Path, int]]
"""Reads the text of a log in a folder; the file of what is wrong with it, and how many events are left."""
Bad = tuple[int, str, str, str]
"""Line, column, value, problem."""


def imported(folder: Path, text: str) -> tuple[Path, int]:
    log, report = folder / "log.txt", folder / "report.csv"
    log.write_bytes(text.encode())
    words = ["data", "import", str(log), "--source", "table", "--out", str(folder / "made"), "--report", str(report)]
    assert main(words) == 0
    return report, Dataset(folder / "made").info.counts["events"]


def uploaded(folder: Path, text: str) -> tuple[Path, int]:
    desk = Desk(folder)
    checked = desk.check(log=text, **({} if text.startswith("{") else {"quote": '"'}))
    return desk.last / "findings.csv", checked.events


def bad_rows(report: Path) -> list[Bad]:
    names = {problem.words: name for name, problem in PROBLEMS.items()}
    with report.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "bad row"]
    return [(int(row["line"]), row["column"], row["value"], names[row["problem"]]) for row in rows]


@pytest.fixture(params=[imported, uploaded])
def reader(request: pytest.FixtureRequest) -> Reader:
    return request.param  # type: ignore[no-any-return]


ROWS = [
    ("1,2", "", "1,2", "few_fields"),
    ("1,2,3,4", "", "1,2,3,4", "many_fields"),
    ('1,"a,1', "", '1,"a,1', "open_quote"),
    ('2,"a"b,4', "", '2,"a"b,4', "after_quote"),
    (",2,3", "user", "", "user_missing"),
    ("1, ,3", "item", "", "item_missing"),
    ("1,2,", "time", "", "time_missing"),
    ("1,2,soon", "time", "soon", "time_unreadable"),
    ("1,2,-5", "time", "'-5", "time_early"),
    ("1,2,99999999999", "time", "99999999999", "time_late"),
    (f"{'u' * 201},2,3", "user", "u" * 100, "user_long"),
    (f"1,{'i' * 201},3", "item", "i" * 100, "item_long"),
    ("a\x0bb,2,3", "user", "a\x0bb", "user_control"),
    ("1,a\x00b,3", "item", "a␀b", "item_control"),
]
"""Row of a log, column, value, problem."""


def test_every_kind_of_fault_at_its_place(reader: Reader, tmp_path: Path) -> None:
    text = LOG + "\n" + "".join(f"{row}\n" for row, *_ in ROWS) + "   \n9,9,9\n"
    first = LOG.count("\n") + 2
    report, events = reader(tmp_path, text)
    assert bad_rows(report) == [(first + place, *fault) for place, (_, *fault) in enumerate(ROWS)]
    assert events == 17  # the line behind the bad ones is read


def test_lines_are_physical_where_quoted_fields_contain_line_ends(reader: Reader, tmp_path: Path) -> None:
    rows = [
        "user,item,note,time\r\n",  # 1
        '1,a,"two\r\nlines",1\r\n',  # 2, 3
        "1,b,,2\r\n",  # 4
        '1,c,"say ""hi""\r\n\r\n\r\nthere",x\r\n',  # 5 to 8
        "\r\n",  # 9
        '"1","d",plain,3\r\n',  # 10
        '2,"a"b,,4\r\n',  # 11
        "2,a,,1\r\n2,b,,2\r\n2,c,,3\r\n2,d\r\n",  # 12 to 15
    ]
    report, events = reader(tmp_path, "".join(rows))
    assert events == 6 and bad_rows(report) == [
        (5, "time", "x", "time_unreadable"), (11, "", '2,"a"b,,4', "after_quote"), (15, "", "2,d", "few_fields"),
    ]  # fmt: skip


def test_json_lines(reader: Reader, tmp_path: Path) -> None:
    good = [json.dumps({"user": f"u{u}", "item": i, "time": i}) for u in range(3) for i in range(3)]
    deep = '{"user": "u9", "item": ' + "[" * 50_000 + "]" * 50_000 + "}"
    control = '{"user": "u1", "item": "a\\u0000b", "time": 1}'
    bad = ["{", "[1, 2]", "null", deep, control, "{'user': }", '"a"', "\x00"]
    report, events = reader(tmp_path, "\n".join([*good, "", *bad]))
    assert events == 9 and [(line, problem) for line, _, _, problem in bad_rows(report)] == [
        (11, "not_json"), (12, "not_object"), (13, "not_object"), (14, "deep_json"), (15, "item_control"),
        (16, "not_json"), (17, "not_object"), (18, "not_json"),
    ]  # fmt: skip


def test_a_line_without_end(reader: Reader, tmp_path: Path) -> None:
    text = LOG.replace("4,4,404\n", "4,4,404" + "x" * 5_000_000 + "\n1,9,9\n")
    report, events = reader(tmp_path, text)
    ((line, column, value, problem),) = bad_rows(report)
    assert events == 16 and (line, column, value[:9], problem) == (17, "", "4,4,404xx", "long_line")


@pytest.mark.parametrize("note", ["{", "[1]", '{"row": "many"}', '{"row": -3}'])
def test_a_note_of_rows_left_out_that_others_wrote_is_none(tmp_path: Path, note: str) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"user": ["a"]}).replace_schema_metadata({"seqscope_left_out": note}), path)
    assert rows_left_out(path) == {}
