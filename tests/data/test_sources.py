"""Public formats: each in miniature, with the oddities of the real files; and the guess which one it is."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.data.dataset import Dataset
from tests.data.conftest import LOG, Bench, csv_log, histories, item_ids, item_rows, user_ids

EVENTS = [(u, i, 1 + (u + i) % 5, 978_300_000 + 60 * (7 * u + i)) for u in range(1, 6) for i in (10, 2, 30, 4)]
"""user, item, rating, time; within a user the times grow with the item"""


def ml_1m(bench: Bench) -> Path:
    bench.write("ml-1m/ratings.dat", "".join(f"{u}::{i}::{r}::{t}\n" for u, i, r, t in EVENTS))
    movies = "2::Jumanji (1995)::Adventure|Children's\n4::Amélie (2001)::Romance\n"
    movies += '10::Ring: "The", A (1997)::Horror\n30::No Year::\n'
    bench.write("ml-1m/movies.dat", (movies + "99::Unseen (1999)::Drama\n").encode("latin-1"))
    return bench.folder / "ml-1m"


def ml_100k(bench: Bench) -> Path:
    bench.write("ml-100k/u.data", "".join(f"{u}\t{i}\t{r}\t{t}\n" for u, i, r, t in EVENTS))
    rows = []
    for item, title, date, genres in (
        (2, "GoldenEye (1995)", "01-Jan-1995", {1, 2}),
        (4, "Amélie", "03-Feb-2001", {14}),
        (10, "unknown", "", {0}),
        (30, "X (1930)", "", set()),
    ):
        flags = [str(int(number in genres)) for number in range(19)]
        rows.append("|".join([str(item), title, date, "", "http://x", *flags]))
    bench.write("ml-100k/u.item", "\n".join(rows).encode("latin-1"))
    return bench.folder / "ml-100k"


def ml_20m(bench: Bench) -> Path:
    ratings = csv_log([(u, i, r / 2, t) for u, i, r, t in EVENTS], "userId,movieId,rating,timestamp")
    bench.write("ml-20m/ratings.csv", ratings.replace("\n", "\r\n"))
    movies = 'movieId,title,genres\n2,"American President, The (1995)",Comedy|Drama\n'
    movies += '4,"Say ""Hi"" (1995–1997)",(no genres listed)\n'
    bench.write("ml-20m/movies.csv", movies + "10,기생충 (2019),Thriller\n30,No Year,Drama\n")
    return bench.folder / "ml-20m"


def letter(bench: Bench) -> Path:
    bench.write("letter/Toy.inter.json", json.dumps({str(u): [10, 2, 30, 4] for u in range(1, 6)}, indent=4))
    items = [{"id": n, "asin": f"B{n}", "title": f"Item {n}"} for n in (2, 4, 10, 30)]
    bench.write("letter/items.jsonl", "\n".join(map(json.dumps, items)))
    return bench.folder / "letter"


def amazon(bench: Bench) -> Path:
    rows = [
        {"reviewerID": f"A{u}", "asin": f"B{i:02}", "overall": float(r), "unixReviewTime": t - t % 86_400 + 86_400 * i}
        for u, i, r, t in EVENTS
    ]
    bench.write("amazon/reviews_Toy_5.json.gz", gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    # The metadata of 2014 are Python literals, not JSON.
    both = [["Beauty", "Nails"], ["Beauty", "Gifts"]]
    meta = [
        {"asin": "B02", "title": 'It\'s "2" 한국', "price": 9.99, "brand": "Acme", "categories": both},
        {"asin": "B04", "description": "no title", "imUrl": "http://x", "related": {"also": ["B02"]}},
        {"asin": "B10", "title": "Ten"},
        {"asin": "B77", "title": "Unseen"},
    ]
    lines = [*map(repr, meta), "{'asin': 'B30', 'title': "]
    bench.write("amazon/meta_Toy.json.gz", gzip.compress("\n".join(lines).encode()))
    return bench.folder / "amazon"


def user_item(bench: Bench) -> Path:
    return bench.write("pairs.txt", "".join(f"{u} {i}\n" for u, i, _, _ in EVENTS))


@pytest.mark.parametrize(
    ("name", "write", "log"),
    [
        ("ml-1m", ml_1m, "ratings.dat"),
        ("ml-100k", ml_100k, "u.data"),
        ("ml-20m", ml_20m, "ratings.csv"),
        ("letter", letter, "Toy.inter.json"),
        ("amazon", amazon, "reviews_Toy_5.json.gz"),
        ("user-item", user_item, ""),
    ],
)
def test_the_layout_of_a_log_alone_is_guessed(
    bench: Bench, name: str, write: Callable[[Bench], Path], log: str
) -> None:
    """That of a whole folder: in the tests of the formats."""
    dataset = bench.load(write(bench) / log, "--k-core", 0)
    assert f"format: {name}, because" in bench.err and dataset.info.options["source"] == name
    assert dataset.info.counts["events"] == len(EVENTS)


def test_ml_1m(bench: Bench) -> None:
    assert "fewer than 5 events: that leaves out every one" in bench.fails(ml_1m(bench))  # the papers' 5-core
    dataset = bench.load(ml_1m(bench), "--k-core", 4)
    assert "format: ml-1m, because" in bench.err
    assert [(row["title"], row["year"], row["genres"]) for row in item_rows(dataset)] == [
        ("Jumanji (1995)", 1995, ["Adventure", "Children's"]),
        ("Amélie (2001)", 2001, ["Romance"]),
        ('Ring: "The", A (1997)', 1997, ["Horror"]),
        ("No Year", None, []),
    ]
    assert histories(dataset)["3"] == ["2", "4", "10", "30"]  # by time, not by row
    assert dataset.info.left_out == {"items that no user has": 1}
    assert dataset.info.title == "MovieLens 1M" and "GroupLens" in dataset.info.licence
    movies = bench.folder / "ml-1m" / "movies.dat"
    bench.write("ml-1m/movies.dat", movies.read_text("latin-1"))  # UTF-8, as MovieTweetings and MovieLens 10M
    assert item_rows(bench.load(movies.parent, "--k-core", 4))[1]["title"] == "Amélie (2001)"


def test_ml_100k(bench: Bench) -> None:
    dataset = bench.load(ml_100k(bench))
    assert "format: ml-100k, because" in bench.err
    assert [(row["title"], row["year"], row["genres"]) for row in item_rows(dataset)] == [
        ("GoldenEye (1995)", 1995, ["Action", "Adventure"]), ("Amélie", 2001, ["Romance"]),
        ("unknown", None, []), ("X (1930)", 1930, []),
    ]  # fmt: skip
    assert dataset.info.options["k_core"] == 0


def test_ml_20m(bench: Bench) -> None:
    dataset = bench.load(ml_20m(bench), "--min-rating", 0.6)
    assert "format: ml-20m, because" in bench.err
    assert [(row["title"], row["year"], row["genres"]) for row in item_rows(dataset)] == [
        ("American President, The (1995)", 1995, ["Comedy", "Drama"]), ('Say "Hi" (1995–1997)', 1995, []),
        ("기생충 (2019)", 2019, ["Thriller"]), ("No Year", None, ["Drama"]),
    ]  # fmt: skip
    assert dataset.info.left_out == {"rated below 0.6": sum(r == 1 for _, _, r, _ in EVENTS)}


def test_letter(bench: Bench) -> None:
    dataset = bench.load(letter(bench))
    assert "format: letter, because" in bench.err
    assert histories(dataset)["1"] == ["10", "2", "30", "4"] and dataset.timestamps is None
    assert [row["title"] for row in item_rows(dataset)] == ["Item 2", "Item 4", "Item 10", "Item 30"]
    assert "found beside the log" in bench.err


def test_letter_finds_the_item_file_that_it_is_published_with(bench: Bench) -> None:
    path = letter(bench)
    titled = {"2": {"title": "Two"}, "4": {"title": "Four"}}
    (path / "items.jsonl").unlink()
    bench.write("letter/Toy.item.json", json.dumps(titled))
    assert {row["item_id"]: row["title"] for row in item_rows(bench.load(path))} == {
        "2": "Two", "4": "Four", "10": "10", "30": "30",
    }  # fmt: skip
    bench.write("letter/Toy.item.json", json.dumps({key: row["title"] for key, row in titled.items()}))
    assert [row["title"] for row in item_rows(bench.load(path))][:2] == ["Two", "Four"]


def test_letter_with_faults(bench: Bench) -> None:
    document = {"1": [1, 2, 3], "2": [1, None, "x", 2, True, 3, " "], "3": "no list", "4": [], "5": [1, 2, [3]]}
    path = bench.write("bad.inter.json", json.dumps(document))
    dataset = bench.load(path, "--report", bench.folder / "report.csv")
    assert histories(dataset) == {"1": ["1", "2", "3"], "2": ["1", "x", "2", "3"], "5": ["1", "2"]}
    left_out = {"entry of a history that is no item number or id": 4, "user without a list of items": 1}
    assert dataset.info.left_out == left_out
    assert 'no item number or id ("user 2, position 2: null")' in bench.err
    half = {f"{user}\ud800": [1, "\ud800", 3] for user in range(2)}
    path = bench.write("half.inter.json", json.dumps(half))
    assert histories(bench.load(path)) == {f"{user}?": ["1", "?", "3"] for user in range(2)}
    twice = bench.write("twice.inter.json", '{"1": [1, 2], "2": [2, 1, 3], "1": [3]}')
    assert histories(bench.load(twice)) == {"1": ["1", "2", "3"], "2": ["2", "1", "3"]}
    assert "not valid: line 1, column 9" in bench.fails(bench.write("cut.inter.json", '{"1": [1'))
    assert "expects one JSON object" in bench.fails(bench.write("list.inter.json", "[1, 2]"), "--source", "letter")
    deep = bench.write("deep.inter.json", '{"1": ' + "[" * 200_000 + "]" * 200_000 + "}")
    assert "nested too deeply" in bench.fails(deep)


def test_amazon(bench: Bench) -> None:
    dataset = bench.load(amazon(bench), "--k-core", 0)
    assert "format: amazon, because" in bench.err
    first, second, third, fourth = item_rows(dataset)
    assert (first["item_id"], first["title"], first["price"], first["brand"]) == ("B02", 'It\'s "2" 한국', 9.99, "Acme")
    assert first["categories"] == ["Beauty", "Nails", "Gifts"]
    assert set(first) == {"item", "item_id", "title", "price", "brand", "categories"}
    assert (second["title"], third["title"], fourth["title"]) == ("B04", "Ten", "B30")
    assert dataset.info.time["unit"] == "day"
    assert dataset.info.left_out == {"line that is not valid JSON": 1, "items that no user has": 1}
    assert "leaves out every one" in bench.fails(bench.folder / "amazon"), "5-core by default: four events are too few"


def test_amazon_of_2023_and_plain_files(bench: Bench) -> None:
    rows = [{"user_id": f"A{u}", "parent_asin": f"B{i}", "timestamp": t * 1000 + 999} for u, i, _, t in EVENTS]
    things = [{"parent_asin": f"B{i}", "title": f"T{i}", "store": "S"} for i in (10, 2, 30, 4)]
    reviews = bench.write("Toy.jsonl", "\n".join(map(json.dumps, rows)))
    meta = bench.write("meta_Toy.jsonl", "\n".join(map(json.dumps, things)))
    dataset = bench.load(reviews, meta, "--k-core", 0)
    assert "format: amazon" in bench.err
    assert dataset.timestamps is not None and dataset.timestamps[0] == EVENTS[1][3]
    assert [(row["title"], row["store"]) for row in item_rows(dataset)] == [(f"T{i}", "S") for i in (10, 2, 30, 4)]
    other = bench.write("other.jsonl", '{"who": 1, "what": 2}\n')
    assert "has who, what, not reviewerID" in bench.fails(other, "--source", "amazon")


def test_user_item_with_a_map(bench: Bench) -> None:
    folder = ml_1m(bench)
    pairs = bench.write("pairs.txt", "".join(f"{u} {i}\n" for u in (1, 2) for i in (1, 2, 3, 4)) + "2 77\n")
    numbers = bench.write("map.txt", "1 30\n2 10\n3 4\n4 2\n4 9\n5\n")
    dataset = bench.load(pairs, "--items", folder / "movies.dat", "--item-map", numbers)
    assert item_ids(dataset) == ["2", "4", "10", "30"] and histories(dataset)["1"] == ["30", "10", "4", "2"]
    assert item_rows(dataset)[1]["title"] == "Amélie (2001)"
    assert dataset.info.left_out == {
        "item that the item map lacks": 1, "line of the item map that is not a pair of item number and id": 1,
        "duplicate item number in the item map": 1,
        "items that no user has": 1,
    }  # fmt: skip
    assert 'pairs.txt:9: item: item that the item map lacks ("77")' in bench.err
    merged = bench.write("merged.txt", "1 30\n2 30\n")
    assert "several item numbers stand for '30'" in bench.fails(pairs, "--item-map", merged)


def test_user_item_oddities(bench: Bench) -> None:
    plain = bench.load(user_item(bench), "--source", "user-item").info.fingerprint
    text = (bench.folder / "pairs.txt").read_text()
    other = text.replace(" ", "\t", 5).replace(" ", "   ").replace("\n", " \r\n")
    assert bench.load(bench.write("pairs.txt", other), "--source", "user-item").info.fingerprint == plain
    wide = bench.write("wide.txt", "0 1 2 3 4\n1 5 6\n")
    assert "--source user-items" in bench.fails(wide, "--source", "user-item")
    # Events of one user need not stand together; their order is what counts.
    mixed = sorted(text.splitlines(keepends=True), key=lambda line: line.split()[1])
    spread = bench.load(bench.write("pairs.txt", "".join(mixed)), "--source", "user-item")
    assert histories(spread)["1"] == sorted(["10", "2", "30", "4"]) and user_ids(spread) == list("12345")


def test_tables_of_every_form_are_one_dataset(bench: Bench) -> None:
    plain = bench.load(bench.write("log.csv", LOG)).info.fingerprint
    names, *rows = [line.split(",") for line in LOG.split()]
    values = [dict(zip(names, map(int, row), strict=True)) for row in rows]
    table = pa.Table.from_pylist(values)
    pq.write_table(table, bench.folder / "log.parquet")
    pq.write_table(table.cast(pa.schema(dict.fromkeys(names, pa.string()))), bench.folder / "text.parquet")
    tabs = LOG.replace(",", "\t")
    bench.write("recbole.inter", tabs.replace("user\titem\ttime", "user_id:token\titem_id:token\ttimestamp:float"))
    bench.write("log.jsonl", "\n".join(map(json.dumps, values)))
    bench.write("names.csv", LOG.replace("user,item,time", "Reviewer-ID,ASIN,unixReviewTime"))
    bench.write("caret.csv", LOG.replace(",", "^"))
    hive = bench.write("hive.csv", LOG.replace(",", "\x01"))
    bench.write("order.csv", "\n".join(",".join(reversed(line.split(","))) for line in LOG.split()))
    for name in (
        "log.parquet",
        "text.parquet",
        "recbole.inter",
        "log.jsonl",
        "names.csv",
        "caret.csv",
        "hive.csv",
        "order.csv",
    ):
        assert bench.load(bench.folder / name).info.fingerprint == plain, name
        assert "columns guessed from their names" in bench.err
    assert bench.load(hive, "--delimiter", "\x01").info.fingerprint == plain
    bare = bench.write("bare.csv", "".join(f"{row[2]},x,{row[1]},{row[0]}\n" for row in rows))
    columns = ("--user-column", 4, "--item-column", 3, "--time-column", 1)
    assert bench.load(bare, "--source", "table", "--no-header", *columns).info.fingerprint == plain
    assert "which column is the user" in bench.fails(bare, "--source", "table", "--no-header", code=2)
    odd = bench.write("odd.csv", LOG.replace("user,item,time", "a,b,c"))
    columns = ("--user-column", "a", "--item-column", "b", "--time-column", "c")
    assert bench.load(odd, *columns).info.fingerprint == plain and "guessed from their names" not in bench.err


def test_list_columns_of_a_delimited_item_file(bench: Bench) -> None:
    items = bench.write("items.csv", "item,title,genres,cast\n" + "".join(f"{i},T{i},a|b|,x|y\n" for i in range(1, 5)))
    log = bench.write("log.csv", LOG)
    assert item_rows(bench.load(log, "--items", items))[0]["cast"] == "x|y"
    row = item_rows(bench.load(log, "--items", items, "--list-column", "cast"))[0]
    assert row["genres"] == ["a", "b"] and row["cast"] == ["x", "y"]


def test_optional_keys_of_json_lines(bench: Bench) -> None:
    rows = [{"user": u, "item": i, "time": i} for u in (1, 2) for i in (1, 2, 3)]
    del rows[0]["time"]
    dataset = bench.load(bench.write("log.jsonl", "\n".join(map(json.dumps, rows))))
    assert dataset.info.left_out == {"event without a time": 1} and dataset.info.time["unit"] == "order"


def test_a_known_layout_with_unknown_columns(bench: Bench) -> None:
    folder = ml_20m(bench)
    text = (folder / "ratings.csv").read_text()
    bench.write("ml-20m/ratings.csv", text.replace("userId", "who"))
    assert "has no column 'userId'; it has who, movieId" in bench.fails(folder)


def test_paths_that_lead_nowhere(bench: Bench) -> None:
    (bench.folder / "empty").mkdir()
    assert "no known layout; it holds nothing" in bench.fails(bench.folder / "empty")
    assert "does not exist" in bench.fails(bench.folder / "none.csv")
    assert "holds no ratings.dat" in bench.fails(bench.folder / "empty", "--source", "ml-1m")
    assert "needs one" in bench.fails(bench.folder / "empty", "--source", "letter")
    assert "table reads files" in bench.fails(bench.folder / "empty", "--source", "table")
    assert "one of ml-1m" in bench.fails(bench.write("log.csv", LOG), "--source", "netflix", code=2)
    assert "ZIP archive" in bench.fails(bench.write("ml-1m.zip", b"PK\x03\x04"))
    assert "not a Parquet file" in bench.fails(bench.write("log.parquet", LOG))
    assert "Was it cut off" in bench.fails(bench.write("cut.parquet", b"PAR1\x15\x04\x15"))


# --- the public logs themselves, where they are: the counts that papers print


def counts(dataset: Dataset) -> tuple[int, int, int]:
    return dataset.num_users, dataset.num_items, len(dataset.events.values)


@pytest.mark.long
def test_ml_1m_itself(bench: Bench, public_data: Path) -> None:
    folder = public_data / "ml-1m"
    files = ("--items", folder / "movies.dat", "--item-map", folder / "item_to_movie.txt")
    dataset = bench.load(folder / "ml-1m.txt", *files)
    assert counts(dataset) == (6_040, 3_416, 999_611)
    assert dataset.info.left_out == {"items that no user has": 467} and dataset.timestamps is None
    assert item_rows(dataset)[0] == {
        "item": 0, "item_id": "1", "title": "Toy Story (1995)", "year": 1995, "genres": ["Animation", "Children's", "Comedy"],
    }  # fmt: skip
    assert dataset.info.counts["test"] == 6_040 and dataset.info.lengths["min"] == 18
    lines = [line.split() for line in (folder / "ml-1m.txt").read_text().splitlines()[:3000]]
    movie = dict(line.split() for line in (folder / "item_to_movie.txt").read_text().splitlines())
    ids = [row["item_id"] for row in item_rows(dataset)]
    for user in (0, 1, 2):  # users are numbered from 1 in the file
        movies = [movie[item] for who, item in lines if int(who) == user + 1]
        assert [ids[item] for item in dataset.events[user]] == movies


@pytest.mark.long
def test_beauty_itself(bench: Bench, public_data: Path) -> None:
    folder = public_data / "beauty"
    dataset = bench.load(folder / "interactions.csv", "--items", folder / "items.jsonl")
    assert counts(dataset) == (22_363, 12_101, 198_502)
    assert dataset.info.time["unit"] == "day" and dataset.info.time["ties"] == 77_402
    assert "in the column asin" in bench.err
