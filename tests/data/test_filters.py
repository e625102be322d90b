"""What is left out on purpose: low ratings, repeated events, what is outside the core; and how items and users are numbered."""

import pytest

from engine.data.dataset import fingerprint
from engine.tabular.problems import PROBLEMS
from tests.data.conftest import LOG, Bench, csv_log, histories, item_ids, user_ids


def test_min_rating(bench: Bench) -> None:
    rows = [(u, i, i, rating) for u in range(3) for i, rating in enumerate((5, 3, 4, 4.5, 2))]
    rows += [(0, 9, 9, "good"), (0, 9, 9, "")]
    log = bench.write("log.csv", csv_log(rows, "user,item,time,rating"))
    dataset = bench.load(log, "--min-rating", 4)
    assert histories(dataset) == {str(u): ["0", "2", "3"] for u in range(3)}
    assert dataset.info.left_out == {
        "event without a rating or weight": 1,
        "rating or weight that is not a number": 1,
        "rated below 4": 6,
    }
    assert "15 are rated below 9" in bench.fails(log, "--min-rating", 9)
    assert bench.load(log, "--duplicates", "keep").info.counts["events"] == 17  # ratings nobody asks for cannot be bad


def test_low_ratings_that_count_as_liked_are_warned_of(bench: Bench) -> None:
    rows = [(u, i, i, 1 + (u + i) % 5) for u in range(5) for i in range(10)] + [(0, 10, 10, "good")]
    log, low = bench.write("log.csv", csv_log(rows, "user,item,time,rating")), PROBLEMS["rating_low"].words
    assert bench.load(log).info.counts["events"] == 51 and f"20 × {low}" in bench.err and "Below 3" in bench.err
    bench.load(log, "--min-rating", 3)
    assert low not in bench.err
    bench.load(bench.write("counts.csv", csv_log(rows, "user,item,time,count")), "--rating-column", "count")
    assert low not in bench.err


@pytest.mark.parametrize(
    ("rule", "expected", "left_out"),
    [
        (("--duplicates", "exact", "--repeats", "count"), "abaca", {"same user, item and time again": 2}),
        (("--duplicates", "keep", "--repeats", "count"), "aabaca", {}),
        (("--repeats", "first"), "abc", {"same user, item and time again": 2, "same user and item again": 4}),
        ((), "abaca", {"same user, item and time again": 2}),
    ],
)
def test_rows_logged_twice_and_repeats(
    bench: Bench, rule: tuple[str, ...], expected: str, left_out: dict[str, int]
) -> None:
    events = [("a", 1), ("a", 9), ("a", 5), ("c", 7), ("a", 1), ("b", 3)]
    log = bench.write("log.csv", csv_log([(u, item, time) for u in "xy" for item, time in events]))
    dataset = bench.load(log, *rule)
    assert histories(dataset)["x"] == list(expected)
    assert dataset.info.left_out == left_out
    assert dataset.info.repeats == dataset.info.options["repeats"] == ("first" if "first" in rule else "count")


def test_what_repeats_is_measured_before_anything_is_dropped_and_decides(bench: Bench) -> None:
    rows = [(u, i, 10 * u + n) for u in range(20) for n, i in enumerate((u, u + 1, u + 2, u + 3))]
    few = [*rows, (0, 0, 999), (1, 9, 999)]  # user 0 ends on a repeat, one of 20 targets
    dataset = bench.load(bench.write("log.csv", csv_log(few)))
    assert dataset.info.measured == {"repeated_events": 1 / 82, "repeated_targets": 1 / 20}
    assert dataset.info.repeats == "count" and "5.0% of held-out items" in bench.err + bench.out
    fewer = [*few, *((u, item, 1_000 + n) for u in range(100, 130) for n, item in enumerate((u, 1, 2)))]
    dataset = bench.load(bench.write("log.csv", csv_log(fewer)))
    assert dataset.info.repeats == "first" and dataset.info.left_out == {"same user and item again": 1}
    assert dataset.info.measured["repeated_targets"] == 1 / 50
    none = bench.load(bench.write("log.csv", csv_log(rows)))
    assert none.info.repeats == "first" and "no user has an item twice" in bench.err


def test_repeats_that_do_not_count_refuse_no_split(bench: Bench) -> None:
    rows = [*((u, i, 1_000 * i + u) for u in range(3) for i in range(3)), *((0, 2, 2_999) for _ in range(40))]
    log = bench.write("log.csv", csv_log(rows))
    options = ("--duplicates", "keep", "--split", "time", "--quantiles", 0.4, 0.7)
    assert "needs first event" in bench.fails(log, *options, "--repeats", "count")
    assert bench.load(log, *options, "--repeats", "first").info.counts["events"] == 9


def test_the_core_is_taken_of_what_is_left_after_repeats(bench: Bench) -> None:
    rows = [(u, i, i) for u in range(4) for i in range(4)] + [(9, 0, n) for n in range(4)]
    log = bench.write("log.csv", csv_log(rows))
    assert "9" in user_ids(bench.load(log, "--k-core", 4, "--repeats", "count"))
    assert "9" not in user_ids(bench.load(log, "--k-core", 4, "--repeats", "first"))


def test_whether_repeats_count_is_part_of_what_a_fingerprint_stands_for(bench: Bench) -> None:
    rows = LOG + "1,1,999\n"
    counted = bench.load(bench.write("log.csv", rows), "--repeats", "count")
    ids, known = item_ids(counted), (counted.events, counted.timestamps, counted.roles)
    assert counted.info.fingerprint == fingerprint(ids, *known, "count") != fingerprint(ids, *known)
    first = bench.load(bench.write("log.csv", LOG))  # as of before: nothing in it repeats
    assert first.info.fingerprint == fingerprint(ids, first.events, first.timestamps, first.roles)


def test_k_core_and_min_history(bench: Bench) -> None:
    rows = [(u, i, i) for u in range(6) for i in range(4)] + [(7, 0, 0), (7, 1, 1), (7, 2, 2), (8, 99, 1), (0, 98, 9)]
    log = bench.write("log.csv", csv_log(rows))
    dataset = bench.load(log, "--k-core", 4)
    assert user_ids(dataset) == [str(u) for u in range(6)] and item_ids(dataset) == ["0", "1", "2", "3"]
    assert dataset.info.left_out == {"from users or items with fewer than 4 events": 5}
    assert bench.load(log, "--min-history", 3).info.left_out == {"from users with fewer than 3 events": 1}
    assert "leaves out every one of the 29 events" in bench.fails(log, "--k-core", 50)
    assert dataset.info.options["k_core"] == 4


def test_min_history_and_k_core_iterate_together(bench: Bench) -> None:
    # User 9 is too short; without it item b has one event, and user 8 becomes too short as well.
    taken = {1: "acde", 2: "acde", 8: "acb", 9: "b"}
    rows = [(user, item, n) for user, items in taken.items() for n, item in enumerate(items)]
    dataset = bench.load(bench.write("log.csv", csv_log(rows)), "--k-core", 2, "--min-history", 3)
    assert user_ids(dataset) == ["1", "2"] and item_ids(dataset) == ["a", "c", "d", "e"]


@pytest.mark.parametrize(
    ("users", "items"),
    [
        (["9", "10"], ["-1", "3", "20", "100"]),  # integers by value
        (["10", "b"], ["100", "20", "Z", "a", "é"]),  # words by code point
        (["1", "2"], ["007", "7", "08"]),  # leading zeros are part of an id
    ],
)
def test_ids_are_ordered_by_value_or_code_point(bench: Bench, users: list[str], items: list[str]) -> None:
    rows = [(user, item, n) for user in reversed(users) for n, item in enumerate(reversed(items))]
    dataset = bench.load(bench.write("log.csv", csv_log(rows)))
    assert item_ids(dataset) == items and user_ids(dataset) == users


def test_the_same_rows_give_the_same_dataset(bench: Bench) -> None:
    log = bench.write("log.csv", LOG)
    first, second = bench.load(log, name="one"), bench.load(log, name="two")
    assert first.info.fingerprint == second.info.fingerprint
    for name in ("interactions.parquet", "items.parquet", "users.parquet"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()


def test_several_files_are_one_log(bench: Bench) -> None:
    whole = bench.load(bench.write("log.csv", LOG)).info.fingerprint
    head, *rows = LOG.splitlines(keepends=True)
    parts = [bench.write(f"part-{n}.csv", head + "".join(rows[5 * n : 5 * n + 5])) for n in range(4)]
    assert bench.load(*parts).info.fingerprint == whole
    turned = "".join(",".join(reversed(line.strip().split(","))) + "\n" for line in LOG.splitlines())
    both = bench.load(bench.write("a.csv", LOG), bench.write("b.csv", turned))
    assert both.info.fingerprint == whole, "of a row that stands twice one is left"
    other = bench.write("other.csv", LOG.replace("user,item,time", "who,item,time"))
    assert "has other columns" in bench.fails(parts[0], other)


def test_names_with_wildcards_mean_themselves(bench: Bench) -> None:
    bench.write("log1.csv", "user,item,time\n" + "1,1,1\n" * 50)
    assert bench.load(bench.write("we[ird]/log[1]*?.csv", LOG)).info.counts["events"] == 16


def test_a_guessed_quantity_that_one_file_lacks_is_used_of_none(bench: Bench) -> None:
    bought = csv_log([(u, i, 10 + i, i) for u in range(3) for i in range(4)], "user,item,time,quantity")
    files = bench.write("bought.csv", bought), bench.write("seen.csv", LOG)
    dataset = bench.load(*files)
    assert dataset.info.counts["events"] == 28 and "seen.csv has no column quantity" in bench.err
    assert "other columns" in bench.fails(*files, "--quantity-column", "quantity")
