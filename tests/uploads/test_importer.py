"""What the check lets through, the importer takes without a bad row: the clean files become a dataset."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from tests.data.conftest import histories
from tests.uploads.conftest import ITEMS, LOG, Desk, adds_up


def imported(clean: Path, *options: str) -> Dataset:
    """The clean files through `seqscope data import`, as a job runs it; bad rows would stop it."""
    words = [
        "data", "import", str(clean / "log.parquet"), "--items", str(clean / "items.parquet"), "--source", "table",
        "--user-column", "user", "--item-column", "item", "--item-id-column", "item_id", "--title-column", "title",
        "--strict", "--out", str(clean.parent / "made"), "--overwrite", *options,
    ]  # fmt: skip
    assert main(words) == 0
    return Dataset(clean.parent / "made")


MESSY_ITEMS = (
    "item_id,title,genres,price,item\n"
    '1,"Two\nlines",Drama|War,1.50,x\n2,,Drama,n/a,x\n3,' + "long " * 100 + ",,3,x\n"
    '4,a\x07b,War,4,x\n4,other,War,4,x\n5,five,,5,x\n5,five,,5,x\n,nobody,,,x\n6,"six" or so,,6,x\n7,seven\n'
    "007,Bond,Action,7,x\n8,=1+1,Drama,8,x\n9,기생충,영화,9,x\n"
)
MESSY_LOG = "user,item,rating,time\n" + "".join(
    f"{user},{item},{rating},{time}\n"
    for user, item, rating, time in [
        ("a", "1", "5", "1700000000"), ("a", "2", "4", "1700000000"), ("a", "007", "3.5", "1700000050"),
        ("a", "1", "5", "1700000000"), ("b", "9", "1", "2023-11-14"), ("b", "8", "2", "1700000100"),
        ("b", "5", "", "1700000100"), ("b", "4", "x", "1700000100"), ("c", "3", "1", "1700000100"),
        ("c", "77", "1", "1700000200"), ("", "1", "1", "1700000000"),
        ("d", "", "1", "1700000000"), ("d", "1", "1", "-7"), ("d", "1", "1", "9999999999"), ("d\x01", "1", "1", "1700000000"),
        ("e" * 300, "1", "1", "1700000000"), ("f", "6", "2", "1700000000"), ("사용자", "9", "5", "1700000300"),
        ("사용자", "1", "5", "1700000400"), ("b", "1", "0", "1.7e9"),
    ]
)  # fmt: skip


def left_out_before(dataset: Dataset) -> int:
    return sum(rows for reason, rows in dataset.info.left_out.items() if reason != "items that no user has")


def test_a_messy_upload(desk: Desk) -> None:
    desk.guess(MESSY_ITEMS, fixed={"role:item_id": "item_id", "role:item": "text", "header": "yes", "quote": '"'})
    desk.guess(MESSY_LOG, "log", {"role:rating": "weight"})
    checked = desk.check()
    adds_up(checked)
    assert checked.bad_rows > 5 and not checked.stopped
    clean = desk.last / "clean"
    dataset = imported(clean, "--time-column", "time", "--rating-column", "weight")
    assert dataset.info.counts["events"] == checked.events and dataset.info.counts["users"] == checked.users
    # what the check left out is told, and nothing else is left out but the items that nobody has
    assert left_out_before(dataset) == sum(entry.rows for entry in checked.left_out) > 0
    titles = {row["item_id"]: row["title"] for row in pq.read_table(dataset.path / "items.parquet").to_pylist()}
    of_check = {row["item_id"]: row["title"] for row in desk.items()}
    assert all(of_check.get(item, item) == title for item, title in titles.items())
    assert titles["007"] == "Bond" and titles["77"] == "77"


@pytest.mark.parametrize("fraction", ["", ".5"])
def test_what_is_held_out_of_shuffled_ties_is_counted_as_it_is_imported(desk: Desk, fraction: str) -> None:
    basket = "".join(
        f"u{user},i{(user + n) % 9},{1_700_000_000 + n // 4}{fraction},{'-1' if n % 4 == 3 else '1'}\n"
        for user in range(40)
        for n in range(12)
    )
    desk.guess("user,item,time,quantity\n" + basket, "log")
    desk.readings["log"] = desk.readings["log"].model_copy(update={"ties": "shuffle", "repeats": "count"})
    checked = desk.check()
    clean = desk.last / "clean"
    options = ("--time-column", "time", "--quantity-column", "quantity", "--repeats", "count", "--ties", "shuffle")
    assert checked.held_out is not None
    assert checked.held_out.counts == imported(clean, *options).info.held_out


def test_attributes_keep_their_types(desk: Desk) -> None:
    items = "item_id,title,year,price,euros,genres,popularity\n" + "".join(
        f'i{n},T {n},{1990 + n},{n}.5,"{n},5",Drama|War,high\n' for n in range(1, 5)
    )
    desk.check(items, LOG)
    dataset = imported(desk.last / "clean", "--time-column", "time")
    schema = pq.read_schema(dataset.path / "items.parquet")
    kinds = [str(schema.field(name).type) for name in ("year", "price", "euros", "genres", "popularity_")]
    assert kinds == ["int64", "double", "double", "list<element: string>", "string"] and dataset.info.left_out == {}
    assert pq.read_table(dataset.path / "items.parquet")["euros"].to_pylist() == [1.5, 2.5, 3.5, 4.5]


def test_a_log_without_times_keeps_its_order(desk: Desk) -> None:
    desk.check(ITEMS, "user,item\n" + "".join(f"u{u},i{i}\n" for u in range(3) for i in (3, 1, 3, 2)))
    dataset = imported(desk.last / "clean", "--time-column", "-", "--duplicates", "exact")
    assert dataset.info.time["unit"] == "order" and dataset.info.counts["events"] == 12


def test_milliseconds_tell_events_of_a_second_apart_from_the_check_to_the_dataset(desk: Desk) -> None:
    """The newest stand first in the file. Each user has i0, i1, i2, i1 and i2 again, all within a second."""
    rows = [
        (f"u{u}", f"i{n - 2 * (n > 2)}", 1_700_000_000_000 + 200 * n + u) for u in range(3) for n in range(4, -1, -1)
    ]
    log = "user,item,time\n" + "".join(f"{user},{item},{time}\n" for user, item, time in rows)
    for options, events in (((), ["i0", "i1", "i2", "i1", "i2"]), (("--repeats", "first"), ["i0", "i1", "i2"])):
        desk.guess(log, "log")
        if options:
            desk.readings["log"] = desk.readings["log"].model_copy(update={"repeats": "first"})
        checked = desk.check()
        dataset = imported(
            desk.last / "clean", "--time-column", "time", "--time-unit", "s", "--ties", "shuffle", *options
        )
        assert histories(dataset) == {f"u{u}": events for u in range(3)}
        assert checked.held_out is not None and checked.held_out.counts == dataset.info.held_out
        assert checked.events == dataset.info.counts["events"] and dataset.info.held_out["ties"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_let_through(desk: Desk, seed: int) -> None:
    """Random ids, titles, times and weights from an alphabet of trouble."""
    chance = random.Random(seed)
    signs = "aB70. \té기\u200b'/-\x07\x00�=\u2028\xa0🎬"

    def word(most: int = 4) -> str:
        return "".join(chance.choice(signs) for _ in range(chance.randint(0, most)))

    ids = [word() for _ in range(60)] + [f"i{n}" for n in range(20)]
    users = [word(3) for _ in range(20)] + ["u1", "u2"]
    items = "item_id|title|extra\n" + "".join(f"{item}|{word(9)}|{word(6)}\n" for item in ids)
    times = ["1700000000", "1700000001.9", "2024-02-30", "2024-02-29 10:00:00+09:00", "-1", "", "inf", "1e9"]
    log = "user|item|time|weight\n" + "".join(
        f"{chance.choice(users)}|{chance.choice(ids)}|{chance.choice(times)}|{chance.choice(['1', '', '2.5', 'x', '1e400'])}\n"
        for _ in range(500)
    )
    sure = {"delimiter": "|", "quote": "", "header": "yes"}
    desk.guess(items, fixed=sure)
    desk.guess(log, "log", {**sure, "time": "s"})
    checked = desk.check()
    adds_up(checked)
    assert not checked.stopped, checked.counts
    dataset = imported(desk.last / "clean", "--time-column", "time", "--rating-column", "weight", "--min-rating", "0")
    assert dataset.info.counts["events"] == checked.events
    assert left_out_before(dataset) == sum(entry.rows for entry in checked.left_out)
