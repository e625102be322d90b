"""What a check finds: every kind of problem, at its line, all at once; and what the clean files hold."""

import base64
import csv
import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from app.screens.your_data import upload_words as views
from app.store.attributes import caption
from app.text import cell
from app.uploads.limits import UploadLimits
from engine.errors import Refused
from engine.tabular.findings import EACH
from engine.tabular.reading import MB
from tests import shop
from tests.uploads.conftest import ITEMS, LOG, TRANSACTIONS, Desk, adds_up, counts, places


def test_nothing_is_wrong(desk: Desk) -> None:
    checked = desk.check(ITEMS, LOG)
    assert not checked.counts and not checked.first and not checked.left_out and checked.fingerprint
    assert checked.read == checked.kept == {"catalogue": 4, "log": 12}
    assert (checked.items, checked.users, checked.events) == (4, 3, 12)
    assert desk.items()[0] == {"item_id": "i1", "title": "Film 1", "genres": ["Drama", "Comedy"]}
    assert desk.log()[0] == {"user": "u0", "item": "i1", "time": 1_700_000_001}


# --- rows


def test_json_lines(desk: Desk) -> None:
    lines = [
        {"id": "1", "title": "a"}, "{broken",
        {"id": "3", "title": "c", "tags": ["x|y", "z"], "nested": {"a": [1]}, "about": "[" * 500 + '"{\\'},
    ]  # fmt: skip
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    checked = desk.check(text + "\n\n")
    assert counts(checked) == {"not_json": 1}
    assert [item["item_id"] for item in desk.items()] == ["1", "3"]
    assert desk.items()[1]["tags"] == ["x|y", "z"] and desk.items()[1]["nested"] == '{"a":[1]}'
    assert desk.items()[1]["about"].startswith("[[[")  # brackets in texts are no levels
    adds_up(checked)


def test_a_key_that_comes_late_is_said_and_an_id_that_keys_a_document_twice_is_a_further_row(desk: Desk) -> None:
    lines = [json.dumps({"id": n, "title": f"T {n}"}) for n in range(2_500)]
    lines[2_400] = json.dumps({"id": 2_400, "title": "x", "odd/key~": 1})
    checked = desk.check("\n".join(lines))
    assert places(checked, "key_unknown") == [(2_401, "odd/key~", "odd/key~")] and checked.kept["catalogue"] == 2_500
    checked = desk.check('{"1": {"title": "a"},\n"1": {"title": "b"},\n"2": {"title": "c"}}')
    assert counts(checked) == {"id_again": 1} and len(desk.items()) == 2


def test_undecodable_bytes_with_their_place(desk: Desk) -> None:
    text = ITEMS.encode() + "i9,Café,\n".encode() + b"i10,Caf\xe9 \xff,Drama\ni11,fine,\n"
    desk.guess(text, fixed={"encoding": "utf-8"})
    checked = desk.check()
    at = text.index(b"\xe9") + 1
    assert places(checked, "undecodable") == [
        (7, "", f"byte 0xE9 at place {at:,} of the file"),
        (7, "", f"byte 0xFF at place {at + 2:,} of the file"),
    ]
    assert counts(checked) == {"undecodable": 1} and checked.bad_rows == 1
    assert [item["title"] for item in desk.items()][-2:] == ["Café", "fine"]
    adds_up(checked)


def test_undecodable_bytes_of_a_header_leave_no_row_out_and_too_many_are_another_encoding(desk: Desk) -> None:
    checked = desk.check(b"item_id,title,g\xe9nre\n1,a,x\n2,b,y\n", encoding="utf-8")
    assert counts(checked) == {"header_undecodable": 1} and not checked.left_out
    adds_up(checked)
    text = "id,title\n" + "".join(f"{n},기생충\n" for n in range(2_000))
    with pytest.raises(Refused, match="Choose another encoding"):
        desk.guess(text.encode("cp949"), fixed={"encoding": "utf-8"})


# --- catalogue


def test_items_given_twice_of_whom_the_first_good_row_is_kept(desk: Desk) -> None:
    checked = desk.check("id,title,year\n1,a,1990\n1,a,1990\n2,b,1991\n2,B,1991\n2,b,1991\n3,c,\n")
    assert counts(checked) == {"id_again": 1, "row_again": 2}
    assert places(checked, "id_again") == [(5, "id", "2")] and places(checked, "row_again")[1][0] == 6
    assert [(i["item_id"], i["title"]) for i in desk.items()] == [("1", "a"), ("2", "b"), ("3", "c")]
    assert checked.bad_rows == 1 and {entry.problem: entry.rows for entry in checked.left_out} == {
        "row_again": 2,
        "id_again": 1,
    }
    adds_up(checked)
    checked = desk.check(b"id,title\n1,\xff\n1,good\n2,b\n", encoding="utf-8")
    assert counts(checked) == {"undecodable": 1} and desk.items()[0]["title"] == "good"


def test_ids_and_titles(desk: Desk) -> None:
    rows = [",no id", "a\x07b,control", f"{'x' * 201},long", "5,", f"6,{'t' * 400}", "7,tab\x0bhere", "8,ok"]
    checked = desk.check(("id,title\n" + "\n".join(rows) + "\n").encode(), quote="")
    assert counts(checked) == {
        "id_missing": 1, "id_control": 1, "id_long": 1, "title_missing": 1, "title_long": 1, "title_control": 1,
    }  # fmt: skip
    items = {item["item_id"]: item["title"] for item in desk.items()}
    assert list(items) == ["5", "6", "7", "8"] and items["5"] == "5" and items["7"] == "tab here"
    assert items["6"] == "t" * 299 + "…"
    assert places(checked, "id_long")[0][2] == "x" * 100
    adds_up(checked)


def test_what_texts_hold_that_is_none(desk: Desk) -> None:
    checked = desk.check(b"id,title,note\n1,a\x00b,x\x00y\n2\x00,c,z\n3,d,\n")
    assert counts(checked) == {"id_control": 1, "title_control": 1, "cell_control": 1}
    assert places(checked, "id_control") == [(3, "id", "2␀")]
    assert desk.items()[0] == {"item_id": "1", "title": "a b", "note": "x y"}
    assert places(desk.check("id,title\n1,Caf�\n2,b\n"), "replaced") == [(2, "title", "Caf�")]
    checked = desk.check(f"id,title,text\n1,a,{'y' * 20_000}\n2,b,c\n")
    assert counts(checked) == {"cell_long": 1} and len(desk.items()[0]["text"]) == desk.limits.cell
    texts = ["<p>Soft &amp; <b>warm</b><br/>blanket</p>", "2 < 3 > 1 and <3", "<script>alert(1)</script>Mug", "plain"]
    checked = desk.check("id,title,about\n" + "".join(f'{n},T {n},"{text}"\n' for n, text in enumerate(texts)))
    assert [line for line, _, _ in places(checked, "html")] == [2, 4]
    assert [item["about"] for item in desk.items()] == ["Soft & warm blanket", texts[1], "Mug", "plain"]


def test_flags_that_say_neither_and_numbers_with_a_few_texts_among_them(desk: Desk) -> None:
    rows = "".join(f"{n},T {n},{n}.5,{'n/a' if n == 7 else n},{'x' if n % 2 else n}\n" for n in range(20))
    checked = desk.check("id,title,price,year,half\n" + rows)
    assert places(checked, "mixed") == [(9, "year", "n/a")]
    table = pq.read_table(desk.last / "clean" / "items.parquet")
    assert table.schema.field("price").type == pa.float64() and table.schema.field("year").type == pa.string()
    rows = "".join(f"{n},T {n},{n % 2},{'YES' if n == 3 else 'maybe' if n == 4 else 'no'},1\n" for n in range(6))
    desk.guess("id,title,old,red,big\n" + rows, fixed={f"role:{name}": "flag" for name in ("old", "red", "big")})
    assert places(desk.check(), "flag_odd") == [(6, "red", "maybe")]
    assert [item["tags"] for item in desk.items()][3:5] == [["old", "red", "big"], ["big"]]


def test_digits_that_spreadsheets_are_told_to_take_as_text(desk: Desk) -> None:
    desk.check('isbn,title,note\n="0012",Heat,=1+1\n"=""0013""","=""1984""",=""\n')
    assert [tuple(row.values()) for row in desk.items()] == [("0012", "Heat", "=1+1"), ("0013", "1984", None)]


def test_lists_as_python_writes_them(desk: Desk) -> None:
    lists = [["Drama", "Children's", 'a "b", c'], ["Sci-Fi"], ["back\\slash", "x"]]
    rows = "".join(f"{n}\tT {n}\t{lists[n % 3]!r}\t[Ann, Bob]\n" for n in range(9))
    desk.check("id\ttitle\tgenres\tauthors\n" + rows)
    assert [item["genres"] for item in desk.items()][:3] == lists and desk.items()[0]["authors"] == ["Ann", "Bob"]


def test_lists_of_objects_are_those_of_their_names(desk: Desk) -> None:
    objects = [{"id": 16, "name": "Children's"}, {"id": 35, "name": 'a "b", c'}]
    rows = "".join(
        f"{n}\tT {n}\t{objects!r}\t{json.dumps(objects)}\t{json.dumps([{'id': {'name': 1}}])}\n" for n in range(9)
    )
    desk.check("id\ttitle\tgenres\ttags\ttopics\n" + rows)
    names = ["Children's", 'a "b", c']
    assert [desk.items()[0][name] for name in ("genres", "tags", "topics")] == [names, names, ['{"id":{"name":1}}']]


def test_lists_in_braces_as_postgres_and_python_write_them(desk: Desk) -> None:
    rows = "".join(f'{n}\tT {n}\t{{Drama,"War, Peace"}}\t{{}}\t{{"size": "L"}}\n' for n in range(8))
    desk.check("id\ttitle\tkinds\tseries\tdetails\n" + rows + "8\tT 8\t{War}\t{'a', 'b'}\t{}\n")
    assert [desk.items()[0][name] for name in ("kinds", "series", "details")] == [
        ["Drama", "War, Peace"],
        None,
        '{"size": "L"}',
    ]
    assert [desk.items()[8][name] for name in ("kinds", "series")] == [["War"], ["a", "b"]]


def test_attributes_with_odd_names(desk: Desk) -> None:
    text = 'id,title,item,Popularity,"we ""ird"",\'name\'; --",popularity,kind_of,Kind of\n1,a,x,y,z,w,k,l\n2,b,x,y,z,w,k,l\n'
    desk.check(text, **{"role:id": "item_id"})
    names = ("item_", "Popularity_", "we \"ird\",'name'; --", "popularity__", "kind_of", "Kind of_")
    assert len({caption(name) for name in names}) == len(names)  # as pages show them
    assert tuple(desk.items()[0])[2:] == names


def test_a_mapping_that_cannot_be_and_a_header_with_nothing_below(desk: Desk) -> None:
    with pytest.raises(Refused, match="a header and nothing below it"):
        desk.check("item_id,title\n")
    desk.guess(ITEMS)
    reading = desk.readings["catalogue"]
    desk.readings["catalogue"] = reading.model_copy(update={"columns": reading.columns[1:]})
    with pytest.raises(Refused, match="the item id"):
        desk.check()


# --- log; bad rows one by one: tests/tabular/test_bad_rows.py


def test_weights_and_times_to_come(desk: Desk) -> None:
    rows = ["u1,i1,1700000000,", "u1,i1,1700000000,many", "u1,i1,1700000000,nan", f"u1,i1,{int(time.time()) + 10**6},1"]
    good = [f"u{u},i{i},{1_700_000_000 + i},{i}.5" for u in (7, 8) for i in range(3)]
    checked = desk.check(log="user,item,time,weight\n" + "\n".join(rows + good + good[:1]) + "\n")
    assert counts(checked) == {
        "weight_missing": 1, "weight_unreadable": 2, "time_future": 1, "event_again": 1, "few_events": 1,
    }  # fmt: skip
    assert places(checked, "few_events") == [(5, "user", "u1")]
    assert checked.events == 7 and checked.bad_rows == 3 and desk.log()[-1]["weight"] == 2.5
    assert [item["item_id"] for item in desk.items()] == ["i1", "i0", "i2"]  # of the log alone, as they come
    adds_up(checked)


def test_what_cannot_be_seen_at_the_ends_of_a_field_is_no_part_of_it(desk: Desk) -> None:
    checked = desk.check(
        "item_id,title\n\u200bi1,Heat\ufeff\ni2,\u200b\n", "user,item\n" + "u,i1\nu,i2\u200b\n" * 2 + "v,i1\n"
    )
    assert [(item["item_id"], item["title"]) for item in desk.items()] == [("i1", "Heat"), ("i2", "i2")]
    assert "item_unknown" not in counts(checked) and counts(checked)["title_missing"] == 1


def test_numbers_with_a_decimal_comma(desk: Desk) -> None:
    rows = [f"u{n % 3};i{n % 5};{n % 5},5;1;{1_700_000_000 + n}" for n in range(15)]
    checked = desk.check(log="\n".join(["user;item;rating;quantity;time", *rows, "u1;i1;1,005;-1,25;1700000100"]))
    assert checked.bad_rows == 1 and counts(checked)["weight_unreadable"] == 1  # which may be a thousand and five
    assert {event["weight"] for event in desk.log()} == {0.5, 1.5, 2.5, 3.5, 4.5}


def test_a_row_is_left_out_once_and_seconds_among_milliseconds(desk: Desk) -> None:
    checked = desk.check(log=LOG + ",,then\n")
    assert counts(checked) == {"user_missing": 1, "item_missing": 1, "time_unreadable": 1}
    assert [(entry.problem, entry.rows) for entry in checked.left_out] == [("user_missing", 1)]
    rows = "".join(f"u{u},i{i},{1_700_000_000_000 + i}\n" for u in range(9) for i in range(9))
    checked = desk.check(log="user,item,time\n" + rows + "u1,i1,1700000000\n")
    assert counts(checked) == {"time_unit": 1} and checked.bad_rows == 1


def test_a_catalogue_is_made_of_a_log_with_titles(desk: Desk) -> None:
    others = "x,u0,s0,Another title,b,2024-04-01\ny,u1,s0,,,2024-04-02\n"
    checked = desk.check(log=TRANSACTIONS + others)
    assert not checked.stopped and list(desk.items()[0])[2:] == ["kind"] and checked.items == 5
    assert desk.items()[0] == {"item_id": "s0", "title": "Thing number 0", "kind": "a"}  # what is said most often
    desk.check(catalogue="item_id,title\n" + "".join(f"s{n},Named {n}\n" for n in range(5)))
    assert desk.items()[0] == {"item_id": "s0", "title": "Named 0"}


def test_repeated_events_need_a_time_and_a_log_whose_order_counts_is_warned_of(desk: Desk) -> None:
    log = "user,item\n" + "u,a\nu,a\nu,b\nv,a\nv,a\nv,c\n"
    checked = desk.check(log=log)
    assert counts(checked) == {"no_times": 1} and checked.events == 6 and list(desk.log()[0]) == ["user", "item"]
    rows = "".join(f"u{u},i{i},last week\n" for u in range(3) for i in range(1, 5))
    checked = desk.check(log="user,item,date\n" + rows)
    assert counts(checked) == {"no_times": 1} and "“date” is not used" in checked.counts[0].note


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        ("user,item,time\n" + "".join(f"u,i{n},{1_700_000_000 + n}\n" for n in range(9)), "one_user"),
        ("user,item,time\n" + "".join(f"u{n},i{n},{1_700_000_000 + n}\n" for n in range(9)), "nobody_to_test"),
    ],
)
def test_logs_that_nothing_can_be_learnt_from(desk: Desk, log: str, problem: str) -> None:
    checked = desk.check(log=log, time="s")
    assert checked.stopped and checked.counts[0].problem == problem and not (desk.last / "clean").exists()


def test_items_that_the_catalogue_lacks(desk: Desk) -> None:
    checked = desk.check(ITEMS, LOG + "u0,zzz,1700000000\nu1,zzz,1700000000\n")
    assert places(checked, "item_unknown") == [(14, "item", "zzz")] and not checked.stopped
    assert (checked.kept["catalogue"], checked.items) == (4, 5)  # the dataset has it, too
    assert "14.3%" in checked.counts[0].note


@pytest.mark.parametrize(
    ("items", "log", "advice"),
    [
        (ITEMS.replace("i", "I").replace("Item_Id,tItle", "item_id,title").replace("fIlm", "film"), LOG, "upper case"),
        (
            "item_id,title\n" + "".join(f"{n},T {n}\n" for n in range(1, 5)),
            "user,item,time\n" + "".join(f"u{u},{n}.0,{1_700_000_000 + n}\n" for u in range(3) for n in range(1, 5)),
            "“.0”",
        ),
        ("item_id,title\n" + "".join(f"u{n},T {n}\n" for n in range(3)), LOG, "The column “user” matches"),
    ],
)  # fmt: skip
def test_ids_that_are_written_otherwise(desk: Desk, items: str, log: str, advice: str) -> None:
    desk.guess(items, fixed={"role:item_id": "item_id", "role:title": "title"})
    checked = desk.check(log=log)
    assert checked.stopped and checked.counts[0].problem == "none_known" and advice in checked.counts[0].note


# --- bounds


def test_more_rows_than_the_quota(desk: Desk) -> None:
    desk.limits = desk.limits.model_copy(update={"rows": 100})
    with pytest.raises(Refused, match=r"has 150 rows; at most 100"):
        desk.check(log="user,item\n" + "u,i\n" * 150)
    pq.write_table(pa.table({"user": ["u"] * 101, "item": ["i"] * 101}), desk.folder / "x.parquet")
    with pytest.raises(Refused, match=r"has 101 rows"):
        desk.guess(desk.folder / "x.parquet", "log")
    with pytest.raises(Refused, match=r"more than 1,\d+ rows"):
        desk.check("id,title\n" + '1,"a\n' * 1_500)


def test_too_many_columns(desk: Desk) -> None:
    wide = ",".join(f"c{n}" for n in range(300)) + "\n"
    with pytest.raises(Refused, match="at most 200 columns"):
        desk.guess(wide * 3)
    with pytest.raises(Refused, match="more than 200 different keys"):
        desk.guess(json.dumps({f"k{n}": n for n in range(300)}) + "\n")
    pq.write_table(pa.table({f"c{n}": [1] for n in range(300)}), desk.folder / "x.parquet")
    with pytest.raises(Refused, match="300 columns"):
        desk.guess(desk.folder / "x.parquet")


def test_a_gzip_bomb(desk: Desk) -> None:
    import gzip

    with pytest.raises(Refused, match="200 times its size"):
        desk.guess(gzip.compress(b"id,title\n" + b"1,a\n" * 9_000_000))
    desk.limits = desk.limits.model_copy(update={"text": MB})
    with pytest.raises(Refused, match="more than 1 MB of text"):
        desk.guess(gzip.compress(ITEMS.encode() * 30_000))


def test_a_parquet_bomb(desk: Desk) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 500_000, pa.int32()), pa.array(["x" * 5_000]))
    table = pa.table({"id": pa.array(range(500_000)), "title": long})
    pq.write_table(table, desk.folder / "x.parquet", compression="zstd")
    assert (desk.folder / "x.parquet").stat().st_size < 5 * MB  # 2.5 GB of text
    desk.guess(desk.folder / "x.parquet")
    with pytest.raises(Refused, match=r"holds 2,3\d\d MB of text"):
        desk.check()


# --- the findings as files


def test_findings_run_in_no_spreadsheet(desk: Desk) -> None:
    values = ["=1+1", "+A1", "-2", "@x", " =SUM(A1)", "\u00a0=x", "plain", "＝x", "it's", "-", "a=b", "'=q"]
    rows = "".join(f"{n},{value}\n" for n, value in enumerate(values))
    checked = desk.check("id,=title\n" + rows + "".join(f"same,{value}\n" for value in values), **{
        "role:id": "item_id", "role:=title": "title",
    })  # fmt: skip
    assert checked.findings == len(values) - 1 == len(desk.findings())
    with (desk.last / "findings.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    for row, found in zip(written, desk.findings(), strict=True):
        for name in ("value", "column", "problem"):
            assert row[name] == cell(found[name])


def test_of_each_problem_a_thousand_findings_are_written_and_the_others_counted(desk: Desk) -> None:
    checked = desk.check("id,title\n" + ",<b>x</b>\n" * 5_000 + "1,a\nx\n")
    assert (checked.findings, checked.listed, len(checked.first)) == (5_001, EACH + 1, 100)
    assert counts(checked) == {"id_missing": 5_000, "few_fields": 1} and checked.bad_rows == 5_001
    rest, *listed = desk.findings()
    assert rest["line"] is None and "4,000 more" in rest["note"]
    assert [row["line"] for row in listed] == [*range(2, EACH + 2), 5_003]
    assert len((desk.last / "findings.csv").read_text("utf-8").splitlines()) == EACH + 3
    adds_up(checked)


def test_a_check_ends_where_no_row_of_the_catalogue_can_be_used(desk: Desk) -> None:
    checked = desk.check("id,title\n" + ",x\n" * 3, LOG)
    assert checked.stopped and counts(checked) == {"no_rows": 1, "id_missing": 3} and "log" not in checked.read
    assert checked.first[0].problem == "no_rows" and checked.first[1].line == 2 and not (desk.last / "clean").exists()


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_MAX_UPLOAD_MB", "3")
    monkeypatch.setenv("SEQSCOPE_QUOTA_ROWS", "1000")
    monkeypatch.setenv("SEQSCOPE_UPLOAD_DISK_MB", "100")
    limits = UploadLimits.of_environment()
    assert (limits.upload, limits.rows, limits.disk) == (3 * MB, 1000, 100 * MB)


def test_low_ratings_that_count_as_liked_are_warned_of(desk: Desk) -> None:
    rows = "".join(f"u{u},i{i},{1 + (u + i) % 5},{1_700_000_000 + i}\n" for u in range(5) for i in range(10))
    assert counts(desk.check(log="user,item,rating,time\n" + rows))["rating_low"] == 20
    again = counts(desk.check(log="user,item,rating,time\n" + 2 * rows))  # of the rows that are used
    assert (again["event_again"], again["rating_low"]) == (50, 20)
    desk.readings["log"] = desk.readings["log"].model_copy(update={"min_rating": 3.0})
    checked = desk.check()
    assert checked.events == 30 and "rating_low" not in counts(checked)
    adds_up(checked)
    assert "rating_low" not in counts(desk.check(log="user,item,count,time\n" + rows))


def test_held_out_items_that_tie_repeat_or_were_cancelled_are_counted_and_left_out_as_chosen(desk: Desk) -> None:
    checked = desk.check(log=shop.log())
    cancelled = shop.USERS // shop.CANCELLED
    again = len([user for user in range(shop.USERS) if user % shop.AGAIN == 0 and user % shop.CANCELLED])
    assert checked.held_out is not None and checked.held_out.cases == shop.USERS
    ties = shop.USERS - cancelled - again
    assert checked.held_out.counts == {"ties": ties, "repeats": cancelled + again, "negative": cancelled}
    assert checked.held_out.repeats == "count"  # as a quarter of the held-out items repeats
    offered = views.offers(checked.held_out, desk.readings["log"])
    assert [offer.field for offer in offered if not offer.chosen] == ["ties", "drop_negative", "repeats"]
    reading = desk.readings["log"]
    desk.readings["log"] = reading.model_copy(update={"drop_negative": True})
    checked = desk.check()
    assert checked.held_out is not None and checked.held_out.counts["negative"] == 0
    assert checked.events == len(shop.rows()) - cancelled
    adds_up(checked)
    desk.readings["log"] = reading.model_copy(update={"repeats": "first"})
    checked = desk.check()
    assert checked.held_out is not None and checked.held_out.counts["repeats"] == 0
    assert counts(checked)["event_repeated"] == len(shop.rows()) - checked.events > 0
    adds_up(checked)


# --- what is used, and may not be what was meant


def test_an_encoding_that_is_a_guess_is_warned_of_until_it_is_chosen(desk: Desk) -> None:
    text = "id,title\n1,기생충\n2,올드보이\n3,살인의 추억\n".encode("cp949")
    checked = desk.check(text)
    assert counts(checked) == {"encoding_guessed": 1} and "Korean" in checked.counts[0].note
    assert not desk.check(text, encoding="cp949").counts


def test_ids_that_look_alike_or_say_nothing_are_warned_of(desk: Desk) -> None:
    items = "id,title\n" + "".join(f"{id},x\n" for id in ("Caf\u00e9", "Cafe\u0301", "th\u00e9", "NaN", "b"))
    log = "user,item,time\n" + "".join(
        f"{user},{item},{1_700_000_000 + place}\n"
        for place, (user, item) in enumerate(
            (u, i) for u in ("null", "ana", "Zo\u00e9") for i in ("b", "the\u0301", "NaN")
        )
    )
    checked = desk.check(items, log)
    numbers = counts(checked)
    assert [numbers[name] for name in ("id_twins", "id_nan", "user_nan", "item_nan")] == [2, 1, 3, 3]
    (note,) = [count.note for count in checked.counts if count.problem == "item_unknown"]
    assert "Unicode form" in note and not checked.bad_rows
    assert counts(desk.check(log=log.replace("null", "\\N")))["user_nan"] == 3  # as databases write it
    numbers = counts(desk.check(items.replace("NaN", "4.01E+12"), log.replace("null", "4E+08")))
    assert [numbers.get(name) for name in ("id_rounded", "user_rounded", "item_rounded")] == [1, 3, None]


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "1", "title": "a", "id": "2"}\n{"id": "3", "title": "b"}\n',
        '[{"id": "1", "title": "a", "id": "2"},\n{"id": "3", "title": "b"}]',
        '{"1": {"title": "a", "title": "b"},\n"3": {"title": "b"}}',
    ],
)
def test_a_key_that_an_object_has_twice_is_warned_of(desk: Desk, text: str) -> None:
    checked = desk.check(text)
    assert counts(checked) == {"key_again": 1}
    assert [(item["item_id"], item["title"]) for item in desk.items()] == [("1", "a"), ("3", "b")]


@pytest.mark.parametrize("step", [1, 0.5], ids=["stars", "half stars"])
def test_a_minimum_rating_is_one_of_the_log_before_and_after(desk: Desk, step: float) -> None:
    rows = "".join(f"u{u},i{i},{step * (1 + (u + i) % 10)},{1_700_000_000 + i}\n" for u in range(10) for i in range(8))
    desk.guess("user,item,rating,time\n" + rows, "log")
    for chosen in (None, 3 * step, 7 * step):
        desk.readings["log"] = desk.readings["log"].model_copy(update={"min_rating": chosen})
        ratings = views.minimum_ratings(desk.check(), desk.readings["log"])
        assert ratings == [None, *(step * stars for stars in range(2, 11))]


# --- parquet whose columns are odd: each is read by its place, and what is no text costs its own column alone


BROKEN = [b"fine", b"\xff\xfe", b"x"]


def packed(path: Path, columns: dict[str, Any]) -> bytes:
    pq.write_table(pa.table(columns), path / "made.parquet")
    return (path / "made.parquet").read_bytes()


def mislabelled(values: list[bytes]) -> pa.Array:
    """Bytes that a column of strings claims to be text."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


@pytest.mark.parametrize("column", [pa.array(BROKEN, pa.binary()), mislabelled(BROKEN)])
def test_a_column_that_is_no_text_costs_itself_alone(desk: Desk, tmp_path: Path, column: pa.Array) -> None:
    data = packed(tmp_path, {"item_id": ["1", "2", "3"], "title": ["a", "b", "c"], "cover": column})
    assert desk.guess(data).reading.columns[2].role == "skip"
    for role in ("skip", "text"):
        desk.readings["catalogue"] = desk.readings["catalogue"].with_role("cover", role)  # type: ignore[arg-type]
        checked = desk.check()
        assert counts(checked) == {"column_bytes": 1} and checked.first[0].column == "cover"
        assert desk.items()[1] == {"item_id": "2", "title": "b"}


def test_columns_that_are_not_used_are_not_asked_for_items_of_the_catalogue(desk: Desk, tmp_path: Path) -> None:
    desk.guess(ITEMS)
    desk.guess(packed(tmp_path, {"user": list("aaab"), "item": list("wxyz"), "note": ["i1", "i2", "i3", "i4"]}), "log")
    desk.readings["log"] = desk.readings["log"].with_role("note", "skip")
    assert desk.check().counts[0].problem == "none_known"


def test_a_column_that_is_no_text_is_no_title(desk: Desk, tmp_path: Path) -> None:
    data = packed(tmp_path, {"item_id": ["1", "2", "3"], "title": pa.array(BROKEN, pa.binary())})
    guess = desk.guess(data)
    desk.readings["catalogue"] = guess.reading.with_role("title", "title")
    with pytest.raises(Refused, match="“title” holds bytes that are no text"):
        desk.check()


@pytest.mark.parametrize("names", [("id", "ID"), ("id", "file_row_number"), ("id", ""), ("id", "id")])
def test_whatever_columns_are_called_each_is_read(desk: Desk, tmp_path: Path, names: tuple[str, str]) -> None:
    table = pa.table([["1", "2"], ["a", "b"], ["x", "y"]], names=[names[0], "title", names[1]])
    pq.write_table(table, tmp_path / "made.parquet")
    desk.guess(tmp_path / "made.parquet")
    checked = desk.check()
    assert not checked.counts and [list(row.values()) for row in desk.items()] == [["1", "a", "x"], ["2", "b", "y"]]


def test_decimals_are_numbers_and_whole_ones_ids(desk: Desk, tmp_path: Path) -> None:
    numbers = {"item_id": [Decimal(10), Decimal(7)], "price": [Decimal("1.50"), Decimal(0)]}
    columns = {name: pa.array(values, pa.decimal128(38, 18)) for name, values in numbers.items()}
    desk.guess(packed(tmp_path, {**columns, "title": ["a", "b"]}))
    desk.check()
    assert [(row["item_id"], row["price"]) for row in desk.items()] == [("10", 1.5), ("7", 0.0)]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_what_is_no_number_among_numbers_is_missing(desk: Desk, tmp_path: Path, kind: pa.DataType) -> None:
    """Its statistics leave NaN out, and DuckDB believes them."""
    values = pa.array([1.0, 2.5, float("nan"), -float("nan")], kind)
    desk.guess(
        packed(
            tmp_path, {"item_id": pa.array([1.0, 2.0, 3.0, float("nan")], kind), "price": values, "title": ["a"] * 4}
        )
    )
    checked = desk.check()
    assert counts(checked)["id_missing"] == 1
    assert [(row["item_id"], row["price"]) for row in desk.items()] == [("1", 1.0), ("2", 2.5), ("3", None)]


class _Keys(pe.KmsClient):  # type: ignore[misc]
    """As a service that keeps keys does, but keeping none."""

    def __init__(self, config: object) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_are_called_so(desk: Desk, tmp_path: Path, plaintext_footer: bool) -> None:
    config = pe.EncryptionConfiguration(
        footer_key="a", column_keys={"b": ["id", "title"]}, plaintext_footer=plaintext_footer
    )
    made = pe.CryptoFactory(_Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    table = pa.table({"id": ["1"], "title": ["a"]})
    with pq.ParquetWriter(tmp_path / "made.parquet", table.schema, encryption_properties=made) as writer:
        writer.write_table(table)
    with pytest.raises(Refused, match="encrypted"):
        desk.guess(tmp_path / "made.parquet")
