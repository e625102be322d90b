"""Bad rows: all of them at once, each with file, line, column and reason; the good ones are kept, or nothing is with --strict."""

import csv
import json

from tests.data.conftest import LOG, Bench, item_rows, user_ids

GOOD = LOG.splitlines(keepends=True)


def reported(bench: Bench) -> list[tuple[str, int, str, str, str]]:
    """The rows of report.csv: file, line, column, value, problem"""
    with (bench.folder / "report.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [(r["file"], int(r["line"] or 0), r["column"], r["value"], r["problem"]) for r in rows]


def test_strict_reports_all_and_writes_nothing(bench: Bench) -> None:
    log = bench.write("log.csv", "".join([*GOOD, *["1,2\n"] * 30, ",,\n"]))
    message = bench.fails(log, "--strict", "--report", bench.folder / "report.csv")
    assert len(reported(bench)) == 33  # three things are wrong with the last row
    assert message == bench.fails(log, "--strict", "--report", bench.folder / "report.csv")  # which is a report already
    assert "30  row with too few fields" in message and "1  event without a user" in message
    assert message.count("  log.csv:") == 20 and "and 11 more; all are in" in message
    assert message.rstrip().endswith("31 bad rows, and nothing was written, because of --strict.")


def test_only_bad_rows(bench: Bench) -> None:
    assert "2 bad rows, and no good row is left" in bench.fails(
        bench.write("log.csv", "user,item,time\n1,2,x\n1,2,y\n")
    )
    message = bench.fails(bench.write("head.csv", "user,item,time\n"))
    assert message.rstrip().endswith("head.csv.") and "There are no rows in" in message


def test_wrong_delimiter(bench: Bench) -> None:
    log = bench.write("log.csv", LOG.replace(",", ";"))
    assert "separated by semicolons" in bench.fails(log, "--delimiter", ",")
    assert bench.load(log).info.counts["events"] == 16 and "separated by semicolons" in bench.err
    items = bench.write("items.csv", "item,title\n1,One; or two\n")
    dataset = bench.load(log, "--delimiter", ";", "--items", items)  # which is the log's alone
    assert dataset.info.counts["events"] == 16 and item_rows(dataset)[0]["title"] == "One; or two"
    message = bench.fails(bench.write("words.txt", "user item time\na b 1\n"), "--source", "table")
    assert "only one column" in message and "--delimiter" in message


def test_one_user(bench: Bench) -> None:
    log = bench.write("log.csv", "user,item,time\n" + "".join(f"1,{n},{n}\n" for n in range(9)))
    assert "belongs to one user ('1')" in bench.fails(log)


def test_repeated_header_names_and_unknown_columns(bench: Bench) -> None:
    assert "more than once" in bench.fails(bench.write("log.csv", LOG.replace("time", "item", 1)))
    log = bench.write("log.csv", LOG)
    assert "has no column 'who'" in bench.fails(log, "--user-column", "who", code=2)
    assert "two purposes" in bench.fails(log, "--user-column", "item", "--item-column", "item", code=2)
    assert "which column is the user" in bench.fails(bench.write("log.csv", LOG.replace("user", "wer")), code=2)
    log = bench.write("log.csv", LOG)
    assert "--min-rating needs a rating column" in bench.fails(log, "--min-rating", 3, code=2)


def test_a_report_that_cannot_be_placed(bench: Bench) -> None:
    message = bench.fails(bench.write("log.csv", LOG), "--report", bench.folder / "no" / "such" / "folder.csv")
    assert "cannot be written" in message and "--report" in message


def test_problems_in_the_item_file_count_too(bench: Bench) -> None:
    items = bench.write("items.csv", 'item,title\n1,One\n2,Two,2\n,None\n1,Again\n3,"a" b\n4,Four\n')
    log = bench.write("log.csv", LOG)
    dataset = bench.load(log, "--items", items, "--report", bench.folder / "report.csv")
    assert [row[:3] + row[4:] for row in reported(bench)] == [
        ("items.csv", 3, "", "row with too many fields"),
        ("items.csv", 4, "item", "item without an id"),
        ("items.csv", 5, "item", "duplicate item row, with conflicting values"),
        ("items.csv", 6, "", "text after a closing quote"),
    ]
    assert [row["title"] for row in item_rows(dataset)] == ["One", "2", "3", "Four"]
    assert "nothing was written" in bench.fails(log, "--items", items, "--strict")


def test_no_number_in_json_is_missing(bench: Bench) -> None:
    """As Python writes it; a text "NaN" may be somebody's name."""
    rows = [{"user": user, "item": i, "time": i} for user in (1, 2, "NaN", float("nan")) for i in range(3)]
    dataset = bench.load(bench.write("log.jsonl", "\n".join(map(json.dumps, rows))))
    assert user_ids(dataset) == ["1", "2", "NaN"] and dataset.info.left_out == {"event without a user": 3}
