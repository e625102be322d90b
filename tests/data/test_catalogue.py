"""The catalogue: any text survives, attributes get the type of their values, nobody is without a title."""

import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.data.catalogue import attribute_table, typed
from engine.tabular.problems import PROBLEMS
from tests.data.conftest import LOG, Bench, csv_log, item_ids, item_rows

WORLD = [
    "한국어 제목", "عنوان عربي", "日本語", "😀👩‍👩‍👧", "<script>alert('x')</script>", '=HYPERLINK("http://x","y")', "a\u0301",
    "á", "\u202eright to left", "comma, quote \" and ; |", "'--; DROP TABLE items", "\\n not a line end", "{{braces}} %s $1",
]  # fmt: skip


def test_any_text_survives_from_every_form(bench: Bench) -> None:
    log = bench.write("log.csv", csv_log([(u, i, i) for u in (1, 2) for i in range(len(WORLD))]))
    rows = [{"item": i, "title": text, "note": text, "tags": [text, "x"]} for i, text in enumerate(WORLD)]
    quoted = ['"' + text.replace('"', '""') + '"' for text in WORLD]
    forms = {
        "items.jsonl": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "items.json": json.dumps(rows),
        "letter.json": json.dumps({str(row["item"]): {k: v for k, v in row.items() if k != "item"} for row in rows}),
        "items.csv": "item,title\n" + "\n".join(f"{i},{text}" for i, text in enumerate(quoted)),
    }
    pq.write_table(pa.Table.from_pylist(rows), bench.folder / "items.parquet")
    for path in [*(bench.write(name, text) for name, text in forms.items()), bench.folder / "items.parquet"]:
        made = item_rows(bench.load(log, "--items", path))
        assert [row["title"] for row in made] == WORLD, path
        if path.suffix != ".csv":
            assert [row["note"] for row in made] == [None if "<script>" in text else text for text in WORLD]
            assert [row["tags"] for row in made] == [[text, "x"] for text in WORLD]


def test_titles(bench: Bench) -> None:
    rows = [(1, "  One  "), (2, ""), (3, "x" * 10_000), (4, "two\nlines\x07"), (9, "Nobody's"), (8, "")]
    items = bench.write("items.jsonl", "\n".join(json.dumps({"id": i, "title": title}) for i, title in rows))
    dataset = bench.load(bench.write("log.csv", LOG.replace("4,4,404", "4,5,404")), "--items", items)
    assert [row["title"] for row in item_rows(dataset)] == ["One", "2", "x" * 299 + "…", "two lines", "5"]
    assert dataset.info.left_out == {"items that no user has": 2}
    for note in (
        "title longer than 300",
        "empty title",
        "title with control characters",
        "item of the log without a row",
    ):
        assert f"1 × {note}" in bench.err


def test_html_is_warned_of_and_becomes_plain_text(bench: Bench) -> None:
    texts = ["<p>Soft &amp; <b>warm</b><br/>blanket</p>", "2 < 3 > 1 and <3", "<script>alert(1)</script>Mug", "plain"]
    rows = [{"id": i, "title": f"T {i}", "about": text, "size": f"<i>{i}</i>"} for i, text in enumerate(texts, 1)]
    items = bench.write("items.jsonl", "\n".join(map(json.dumps, rows)))
    made = item_rows(bench.load(bench.write("log.csv", LOG), "--items", items))
    assert [row["about"] for row in made] == ["Soft & warm blanket", texts[1], "Mug", "plain"]
    assert [row["size"] for row in made] == [1, 2, 3, 4]
    assert f"4 × {PROBLEMS['html'].words}" in bench.err
    bench.load(bench.write("log.csv", LOG))
    assert PROBLEMS["html"].words not in bench.err


def test_a_row_that_says_the_same_again_is_no_conflict(bench: Bench) -> None:
    items = bench.write("items.csv", "id,title,year\n1,One,1999\n2,Two,\n1, One,1999\n2,Two,\n3,Three,2001\n")
    dataset = bench.load(bench.write("log.csv", LOG), "--items", items, "--strict")
    assert dataset.info.left_out == {} and f"2 × {PROBLEMS['row_again'].words}" in bench.err


def test_items_nobody_has_can_be_kept(bench: Bench) -> None:
    items = bench.write("items.csv", "id,title,year\n1,One,1999\n9,Nine,2001\n4,Four,\n7,,2000\n")
    log = bench.write("log.csv", LOG)
    dataset = bench.load(log, "--items", items, "--keep-unused-items")
    assert item_ids(dataset) == ["1", "2", "3", "4", "9", "7"]
    assert [row["year"] for row in item_rows(dataset)] == [1999, None, None, None, 2001, 2000]
    assert dataset.info.left_out == {} and dataset.num_items == 6
    assert dataset.info.fingerprint != bench.load(log, "--items", items).info.fingerprint


def test_without_a_catalogue_ids_are_titles(bench: Bench) -> None:
    assert [row["title"] for row in item_rows(bench.load(bench.write("log.csv", LOG)))] == ["1", "2", "3", "4"]
    assert "ids stand in for titles" in bench.err


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "20", None, "-3"], pa.int64(), [1, 20, None, -3]),
        (["1", "007"], pa.string(), ["1", "007"]),
        (["1.5", "2", None], pa.float64(), [1.5, 2.0, None]),
        (["12,99", "-0,5", "7", None], pa.float64(), [12.99, -0.5, 7.0, None]),
        (["12,99", "1,234"], pa.string(), ["12,99", "1,234"]),
        (["12,99", "0.5"], pa.string(), ["12,99", "0.5"]),
        (["1.5", "n/a"], pa.string(), ["1.5", "n/a"]),
        ([1, 2**70], pa.float64(), [1.0, float(2**70)]),
        ([1, 10**400], pa.string(), ["1", str(10**400)]),
        ([True, None, False], pa.bool_(), [True, None, False]),
        ([True, 1], pa.string(), ["true", "1"]),
        ([["a"], None, "b", [1, None, ""]], pa.list_(pa.string()), [["a"], None, ["b"], ["1"]]),
        ([{"a": "é"}, None], pa.string(), ['{"a": "é"}', None]),
        (["9" * 18, "1"], pa.int64(), [int("9" * 18), 1]),
        (["9" * 30], pa.string(), ["9" * 30]),
        (["1e5"], pa.string(), ["1e5"]),
        (["\ud800x"], pa.string(), ["?x"]),
    ],
)
def test_attributes_have_the_type_of_their_values(
    values: list[object], kind: pa.DataType, expected: list[object]
) -> None:
    column = typed(values)
    assert column.type == kind and column.to_pylist() == expected


def test_attribute_names_never_clash() -> None:
    attributes = {"Title": ["x"], "popularity": [3], "item": [1], "empty": [None], "Year": [1], "year": [2]}
    names = attribute_table(["1"], ["t"], attributes).column_names
    assert names == ["item_id", "title", "Title_", "popularity_", "item_", "Year", "year_"]


def test_the_id_column_is_the_one_the_log_speaks(bench: Bench) -> None:
    rows = [{"id": n, "asin": f"B{n}", "title": f"T{n}"} for n in range(1, 5)]
    items = bench.write("items.jsonl", "\n".join(map(json.dumps, rows)))
    by_number = bench.load(bench.write("log.csv", LOG), "--items", items)
    assert "in the column id" in bench.err and item_rows(by_number)[0]["asin"] == "B1"
    letters = bench.write("letters.csv", csv_log([(u, f"B{i}", i) for u in (1, 2) for i in range(1, 5)]))
    by_asin = bench.load(letters, "--items", items)
    assert "in the column asin" in bench.err
    assert [row["title"] for row in item_rows(by_asin)] == ["T1", "T2", "T3", "T4"]
    told = bench.load(letters, "--items", items, "--item-id-column", "asin", "--title-column", "id")
    assert [row["title"] for row in item_rows(told)] == ["1", "2", "3", "4"]
    assert "no column 'nope'" in bench.fails(letters, "--items", items, "--title-column", "nope", code=2)


@pytest.mark.parametrize("ids", [["a ", "\tb", "\u00a0c"], [1.0, 2.0, -3.0]])
def test_an_id_is_the_same_in_the_log_and_in_an_item_file(bench: Bench, ids: list[object]) -> None:
    events = [{"user": user, "item": item, "time": time} for user in (1, 2) for time, item in enumerate(ids)]
    items = [{"id": item, "title": f"T{number}"} for number, item in enumerate(ids)]
    for table, name in ((events, "log"), (items, "items")):
        bench.write(f"{name}.jsonl", "\n".join(map(json.dumps, table)))
        pq.write_table(pa.Table.from_pylist(table), bench.folder / f"{name}.parquet")
    for log, file in (("log.jsonl", "items.parquet"), ("log.parquet", "items.jsonl")):
        made = item_rows(bench.load(bench.folder / log, "--items", bench.folder / file))
        assert {row["title"] for row in made} == {"T0", "T1", "T2"}, (log, file)


def test_what_mongodb_wraps_stands_bare(bench: Bench) -> None:
    rows = [{"_id": {"$oid": f"65{n}"}, "title": f"T{n}", "price": {"$numberDecimal": "1.5"}} for n in range(3)]
    events = (
        {"user": user, "item": row["_id"], "time": {"$date": {"$numberLong": "17"}}} for user in (1, 2) for row in rows
    )
    log = bench.write("log.jsonl", "\n".join(map(json.dumps, events)))
    for name, text in (("lines", "\n".join(map(json.dumps, rows))), ("document", json.dumps(rows))):
        made = item_rows(bench.load(log, "--items", bench.write(f"{name}.json", text), "--item-id-column", "_id"))
        assert [(row["item_id"], row["title"], row["price"]) for row in made][2] == ("652", "T2", 1.5)


def test_decimals_are_numbers_and_whole_ones_ids(bench: Bench) -> None:
    ids = pa.array([Decimal(n) for n in (10, 20, 30)], pa.decimal128(38, 18))
    events = pa.table({"user": ["a"] * 3 + ["b"] * 3, "item": pa.concat_arrays([ids, ids]), "time": [1, 2, 3] * 2})
    items = pa.table({"item_id": [10, 20, 30], "title": list("xyz"), "price": pa.array([Decimal("1.50")] * 3)})
    for table, name in ((events, "log"), (items, "items"), (items.set_column(0, "item_id", ids), "decimals")):
        pq.write_table(table, bench.folder / f"{name}.parquet")
    for name in ("items", "decimals"):
        made = item_rows(bench.load(bench.folder / "log.parquet", "--items", bench.folder / f"{name}.parquet"))
        assert [(row["item_id"], row["price"]) for row in made] == [("10", 1.5), ("20", 1.5), ("30", 1.5)]


def test_what_python_cannot_hold_of_an_item_file_is_no_traceback(bench: Bench) -> None:
    log, rows = bench.write("log.csv", LOG), {"item_id": ["1", "2"], "title": ["a", "b"]}
    no_text = pa.array([b"\xff", b"b"]).view(pa.string())
    for column in (no_text, pa.array([10**18, 0], pa.timestamp("us")), pa.array([10**7, 0], pa.date32())):
        pq.write_table(pa.table({**rows, "more": column}), bench.folder / "items.parquet")
        assert "cannot be read as Parquet" in bench.fails(log, "--items", bench.folder / "items.parquet")
    half = json.dumps({"item_id": "1", "title": "a", "\ud800": "x", "more": {"\ud800": 1}})
    dataset = bench.load(log, "--items", bench.write("items.jsonl", half))
    assert dataset.info.attributes == ["?", "more"] and item_rows(dataset)[0]["more"] == '{"?": 1}'


def test_item_files_that_make_no_sense(bench: Bench) -> None:
    log = bench.write("log.csv", LOG)
    assert "which column is the item's id" in bench.fails(log, "--items", bench.write("a.csv", "x,y\n1,2\n"), code=2)
    assert "object of objects" in bench.fails(log, "--items", bench.write("b.json", "[1, 2,\n 3]"))
    assert "line 2, column" in bench.fails(log, "--items", bench.write("c.json", '{"a":\n {"title" 1}}'))
    assert "does not exist" in bench.fails(log, "--items", bench.folder / "none.csv")
    assert "Is it cut off" in bench.fails(log, "--items", bench.write("d.parquet", b"PAR1" + b"x" * 50))


def test_a_log_that_names_its_items_is_its_own_catalogue(bench: Bench) -> None:
    """Nothing of events is an attribute of an item, also where it is sold once; nor is what differs between its events."""
    rows = [
        (u, f"i{(u + n) % 5}", 60 * u + n, f"Mug {(u + n) % 5}" if n else "", "cd"[(u + n) % 2], (u + n) % 5 % 2)
        for u in range(6) for n in range(4)
    ]  # fmt: skip
    log = bench.write("log.csv", csv_log([*rows, (7, "once", 9_000, "Cup", "c", 1)], "user,item,time,title,shop,kind"))
    dataset = bench.load(log, "--items", log, "--item-id-column", "item")
    assert "is its own catalogue" in bench.err and dataset.info.left_out == {}
    expected = [(f"i{n}", f"Mug {n}", n % 2) for n in range(5)] + [("once", "Cup", 1)]
    assert [tuple(row.values())[1:] for row in item_rows(dataset)] == expected
