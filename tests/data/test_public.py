"""The public logs themselves, where they are: the counts that papers print."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset
from tests.data.conftest import Bench, item_rows


def counts(dataset: Dataset) -> tuple[int, int, int]:
    return dataset.num_users, dataset.num_items, len(dataset.events.values)


def test_ml_1m(bench: Bench, public_data: Path) -> None:
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
        own = [movie[item] for who, item in lines if int(who) == user + 1]
        assert [ids[item] for item in dataset.events[user]] == own


def test_ml_100k(bench: Bench, public_data: Path) -> None:
    dataset = bench.load(public_data / "ml-100k")
    assert "format: ml-100k" in bench.err
    assert counts(dataset) == (943, 1_682, 100_000) and dataset.info.left_out == {}
    assert dataset.info.time["first"] == 874_724_710 and dataset.info.time["unit"] == "second"
    rows = np.loadtxt(public_data / "ml-100k" / "u.data", dtype=np.int64)
    mine = rows[rows[:, 0] == 1]
    assert dataset.timestamps is not None
    assert dataset.timestamps[: len(mine)].tolist() == np.sort(mine[:, 3]).tolist()
    assert any("é" in row["title"] for row in item_rows(dataset))


def test_beauty(bench: Bench, public_data: Path) -> None:
    folder = public_data / "beauty"
    dataset = bench.load(folder / "interactions.csv", "--items", folder / "items.jsonl")
    assert counts(dataset) == (22_363, 12_101, 198_502)
    assert dataset.info.time["unit"] == "day" and dataset.info.time["ties"] == 77_402
    assert "in the column asin" in bench.err
