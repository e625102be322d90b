"""Times: seconds, milliseconds, ISO dates and Parquet's own types mean the same moment, whatever the machine's zone."""

import datetime
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.conftest import Bench, csv_log, histories

MOMENTS = [978_300_760 + 86_400 * 30 * n + 7 * n for n in range(12)]
PAIRS = [(n // 4, n % 4, moment) for n, moment in enumerate(MOMENTS)]


def utc(seconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


WORDS: list[Callable[[int], str]] = [
    lambda s: utc(s).strftime("%Y-%m-%d %H:%M:%S"),
    lambda s: utc(s).strftime("%Y-%m-%dT%H:%M:%S.250"),
    lambda s: utc(s).astimezone(datetime.timezone(datetime.timedelta(hours=9))).isoformat(),
    lambda s: utc(s).strftime("%Y-%m-%d %H:%M:%S UTC"),
    lambda s: utc(s).strftime("%Y-%m-%dT%H:%M:%SUTC"),
    lambda s: utc(s - 3 * 3600).strftime("%Y-%m-%d %H:%M:%S -0300"),
]


@pytest.mark.parametrize(
    "write",
    [
        lambda s: f"{s}.75",
        '"{},75"'.format,
        "{}123".format,
        lambda s: f"{s}000000000",
        lambda s: WORDS[s % len(WORDS)](s),
    ],
    ids=["seconds", "comma", "milliseconds", "nanoseconds", "words"],
)
def test_one_moment_in_many_words(bench: Bench, write: Callable[[int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Seoul")
    dataset = bench.load(bench.write("log.csv", csv_log([(u, i, write(s)) for u, i, s in PAIRS])))
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == MOMENTS
    assert dataset.info.time["unit"] == "second" and dataset.info.left_out == {}


@pytest.mark.parametrize("write", [lambda ms: str(1_700_000_000_000 + ms), lambda ms: f"2023-11-14T22:13:20.{ms:03d}Z"])
def test_events_within_a_second_are_in_order_and_no_duplicates(bench: Bench, write: Callable[[int], str]) -> None:
    """The newest stand first in the file."""
    times = [(u, n, 100 * n + u) for u in range(6) for n in reversed(range(5))]
    dataset = bench.load(bench.write("log.csv", csv_log([(u, (u + n) % 5, write(ms)) for u, n, ms in times])))
    assert histories(dataset) == {str(u): [str((u + n) % 5) for n in range(5)] for u in range(6)}
    assert dataset.info.held_out["ties"] == 0
    twice = [(u, (u + n) % 5, write(ms + later)) for u, n, ms in times for later in (0, 40)]
    again = bench.load(bench.write("twice.csv", csv_log(twice)), "--repeats", "count", name="twice")
    assert again.info.counts["events"] == len(twice) and again.info.left_out == {}


def test_the_time_of_day_in_a_column_of_its_own(bench: Bench) -> None:
    rows = "".join(f"{u},{i},{utc(s):%Y-%m-%d},{utc(s):%H:%M:%S}\n" for u, i, s in PAIRS)
    log = bench.write("log.csv", f"user,item,date,time\n{rows}")
    dataset = bench.load(log, "--time-column", "date", "--clock-column", "time")
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == MOMENTS
    assert "--time-column" in bench.fails(log, "--time-column", "-", "--clock-column", "time", code=2)
    assert "--clock-column" in bench.fails(log, code=2)  # by its name, the column called time has the times


def test_days(bench: Bench) -> None:
    dataset = bench.load(bench.write("log.csv", csv_log([(u, i, utc(s).date()) for u, i, s in PAIRS])))
    assert dataset.info.time["unit"] == "day"
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == [s - s % 86_400 for s in MOMENTS]


@pytest.mark.parametrize("kind", [pa.float64(), pa.timestamp("ms"), pa.timestamp("us", "America/New_York")])
def test_parquet_types(bench: Bench, kind: pa.DataType) -> None:
    times = pa.array(MOMENTS)
    times = times.cast(pa.timestamp("s")).cast(kind) if pa.types.is_timestamp(kind) else times.cast(kind)
    users = pa.array([float(u) for u, _, _ in PAIRS])  # as pandas writes whole numbers beside missing ones
    table = pa.table({"user_id": users, "item_id": [i for _, i, _ in PAIRS], "timestamp": times})
    pq.write_table(table, bench.folder / "log.parquet")
    dataset = bench.load(bench.folder / "log.parquet")
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == MOMENTS
    assert pq.read_table(dataset.path / "users.parquet")["user_id"].to_pylist() == ["0", "1", "2"]


def test_parquet_with_a_number_that_is_none_where_nothing_is_missing(bench: Bench) -> None:
    users = pa.array([float(u) for u, _, _ in PAIRS] + [float("nan")])
    times = pa.array([*map(float, MOMENTS), float(MOMENTS[0])])
    table = pa.table({"user_id": users, "item_id": [*(i for _, i, _ in PAIRS), 0], "timestamp": times})
    pq.write_table(table, bench.folder / "log.parquet")
    dataset = bench.load(bench.folder / "log.parquet")
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == MOMENTS
    assert dataset.info.left_out == {"event without a user": 1}


def test_what_is_no_time(bench: Bench) -> None:
    unread = ["soon", "2014-13-01", "2014-02-30", "01/02/2014", "nan", "inf", "today", "١٢٣", "1e400"]
    words = [*unread, "-1", "1969-12-31", "2101-01-01"]
    dataset = bench.load(bench.write("log.csv", csv_log([*PAIRS, *((9, 9, word) for word in words)])))
    assert dataset.info.left_out == {
        "time that cannot be read": 9, "time before 1970": 2, "time after 2099": 1,
    }  # fmt: skip
    assert dataset.timestamps is not None and dataset.timestamps.tolist() == MOMENTS


def test_numbers_that_are_no_dates_order_events_and_a_unit_that_is_named_makes_moments_of_them(bench: Bench) -> None:
    log = bench.write("log.csv", csv_log([(u, i, 1000 * (12 - n)) for n, (u, i, _) in enumerate(PAIRS)]))
    first = bench.load(log)
    assert first.timestamps is None and first.info.time["unit"] == "order" and "1,000 to 12,000" in bench.err
    assert histories(first) == {str(u): ["3", "2", "1", "0"] for u in range(3)}
    second = bench.load(log, "--time-unit", "ms")
    assert second.timestamps is not None and sorted(second.timestamps.tolist()) == list(range(1, 13))
    assert "before 1980" in bench.err


def test_ties_and_row_order(bench: Bench) -> None:
    rows = [(u, item, MOMENTS[0]) for u in (1, 2) for item in ("c", "a", "b", "d")]
    log = bench.write("log.csv", csv_log(rows))
    by_file, by_item = bench.load(log), bench.load(log, "--ties", "item")
    assert by_file.events[0].tolist() == [2, 0, 1, 3] and by_item.events[0].tolist() == [0, 1, 2, 3]
    assert by_file.info.time["ties"] == 6
    drawn = [bench.load(log, "--ties", "shuffle", "--seed", seed).events.values.tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and sorted(drawn[0][:4]) == sorted(drawn[2][4:]) == [0, 1, 2, 3]
    untimed = bench.load(log, "--time-column", "-")
    assert untimed.timestamps is None and untimed.info.time["unit"] == "order"


def test_split_by_time_from_the_command(bench: Bench) -> None:
    log = bench.write("log.csv", csv_log([(u, i, 86_400 * (10 * i + u)) for u in range(5) for i in range(10)]))
    dataset = bench.load(log, "--split", "time", "--valid-from", "1970-02-20", "--test-from", 86_400 * 75)
    assert dataset.info.split == {"kind": "time", "valid_from": 86_400 * 50, "test_from": 86_400 * 75}
    assert dataset.info.counts == {"users": 5, "items": 10, "events": 50, "train": 25, "valid": 5, "test": 5}
    assert len(dataset.cases("test").history[0]) == 8  # six trained, two between
    assert "validation from 1970-02-20, test from 1970-03-17" in bench.out
    assert "--split time" in bench.fails(log, "--valid-from", "1970-02-20", code=2)
    assert "write a date" in bench.fails(log, "--split", "time", "--valid-from", "spring", code=2)
