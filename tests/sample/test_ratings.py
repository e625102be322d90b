"""The embedded real log: made again it is the same, and it holds nothing that it should not."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import cli
from engine.data import repeats
from engine.data.dataset import Dataset, DatasetInfo
from engine.sample.films import OTHER_TITLES, Film, match, read_films
from engine.sample.ratings import build_films, film_ids
from engine.writing import in_percent

FILMS, SAMPLE = (Path(__file__).parents[2] / "data" / name for name in ("films", "sample"))


@pytest.mark.long
def test_the_committed_dataset_is_what_the_command_makes(public_data: Path, tmp_path: Path) -> None:
    made = build_films(public_data / "movietweetings", SAMPLE / "films.jsonl", tmp_path / "films")
    committed = DatasetInfo.read(FILMS / "dataset.json")
    assert made.fingerprint == committed.fingerprint
    assert made.source == committed.source and made.attributes == committed.attributes
    assert pq.read_table(tmp_path / "films" / "items.parquet").equals(pq.read_table(FILMS / "items.parquet"))
    assert (tmp_path / "films" / "LICENSE").read_bytes() == (FILMS / "LICENSE").read_bytes()
    table = pq.read_table(public_data / "movietweetings" / "items.parquet", columns=["title", "year"]).to_pylist()
    known = match([(row["title"], row["year"]) for row in table], read_films(SAMPLE / "films.jsonl"))
    assert set(OTHER_TITLES) <= {film.item_id for film in known.values()}


def test_the_committed_dataset_is_small_real_and_says_nothing_of_held_out_events() -> None:
    dataset = Dataset(FILMS)
    assert (dataset.num_users, dataset.num_items, len(dataset.events.values)) == (9_081, 4_975, 405_236)
    assert not dataset.info.simulated and dataset.info.time["unit"] == "day"
    assert "n_ratings" not in pq.read_schema(FILMS / "items.parquet").names
    assert "Dooms" in dataset.info.source and "Dooms" in (FILMS / "LICENSE").read_text("utf-8")
    assert sum(path.stat().st_size for path in FILMS.iterdir() if path.suffix != ".npy") < 3_000_000


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Ten people who rated the same eleven films, each the other way round than the rows stand, and one who rated two."""
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "LICENSE").write_text("MIT", "utf-8")
    people = np.repeat(np.arange(10), 11)
    films = np.tile(np.arange(11), 10)
    log = {
        "user_id": [*people, 10, 10], "item_id": [*films, 0, 1], "rating": [7] * 112, "timestamp": [86_400 * 16_000] * 112,
        "pos": [*(10 - films), 0, 1],
    }  # fmt: skip
    pq.write_table(pa.table(log), folder / "ratings.parquet")
    titles = [*(f"Film {number}" for number in range(10)), "Amélie & Léon's"]
    same = {"year": [2013] * 11, "genres": ["Drama|Sci-Fi"] * 11, "n_ratings": [9] * 11}
    pq.write_table(pa.table({"item_id": list(range(11)), "title": titles, **same}), folder / "items.parquet")
    return folder


def make(raw: Path, out: Path) -> int:
    return cli.main(
        ["sample", "films", "--from", str(raw), "--catalogue", str(SAMPLE / "films.jsonl"), "--out", str(out)]
    )


def test_a_table_becomes_a_dataset_in_the_order_of_posting(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "films"
    assert make(raw, out) == 0
    items = pq.read_table(out / "items.parquet").to_pylist()
    assert items[0]["item_id"] == "amelie-and-leons-2013" and items[0]["genres"] == ["Drama", "Sci-Fi"]
    dataset = Dataset(out)
    assert dataset.events[0].tolist() == [0, *range(10, 0, -1)]
    people = pq.read_table(out / "users.parquet")["user_id"].to_pylist()
    assert people == [f"person-{number:02}" for number in range(1, 11)]
    assert dataset.info.left_out == {"from users or items with fewer than 10 events": 2}


def test_ratings_are_not_passed_on_without_their_licence(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (raw / "LICENSE").unlink()
    assert make(raw, tmp_path / "films") == 1
    assert "LICENSE" in capsys.readouterr().err and not (tmp_path / "films").exists()


def film(title: str, year: int, item_id: str = "") -> Film:
    return Film.model_construct(item_id=item_id or title.lower(), title=title, year=year)


def test_a_film_is_known_by_title_and_year_or_its_other_title() -> None:
    beautiful = film("Life Is Beautiful", 1997, "life-is-beautiful-1997")
    films = [film("Amélie & Co.", 2001), beautiful, film("King Kong", 1933)]
    rows = [("amelie and co", 2001), ("La vita è bella", 1997), ("King Kong", 1976), ("Life Is Beautiful", 1997)]
    assert match(rows, films) == {0: films[0], 1: films[1]}


def test_a_year_apart_is_the_same_film_unless_another_has_the_better_claim() -> None:
    hunger, macbeth, dracula = film("Hunger", 2008), film("Macbeth", 2015), film("Dracula", 1931)
    rows = [("Hunger", 2009), ("Macbeth", 2016), ("Macbeth", 2015), ("Dracula", 1930), ("Dracula", 1932)]
    assert match(rows, [hunger, macbeth, dracula]) == {0: hunger, 2: macbeth}
    assert match([("Beneath", 2013)], [film("Beneath", 2012, "a"), film("Beneath", 2014, "b")]) == {}
    assert match([("Beneath", 2013), ("Beneath", 2013)], [film("Beneath", 2013)]) == {}


def test_what_the_catalogue_knows_is_in_the_dataset() -> None:
    items = {row["item_id"]: row for row in pq.read_table(FILMS / "items.parquet").to_pylist()}
    known = [row for row in items.values() if row["description"]]
    assert all(row["director"] and row["country"] for row in known)
    assert f"{len(known):,} films" in DatasetInfo.read(FILMS / "dataset.json").source
    assert items["shichinin-no-samurai-1954"]["title"] == "Seven Samurai"
    assert items["shichinin-no-samurai-1954"]["also_known_as"] == "Shichinin no samurai"
    other = {OTHER_TITLES[film.item_id] for film in read_films(SAMPLE / "films.jsonl") if film.item_id in OTHER_TITLES}
    assert len(other) == len(OTHER_TITLES)  # each is the title of one film of the catalogue


def test_films_of_one_title_and_year_get_ids_of_their_own() -> None:
    films = [{"title": "Beneath", "year": 2013, "genres": genres} for genres in ("Horror", "Drama", "Comedy")]
    assert film_ids(films) == ["beneath-2013-3", "beneath-2013-2", "beneath-2013"]


def test_an_order_that_is_known_needs_no_advice_to_shuffle_ties() -> None:
    counts = {"ties": 50, "repeats": 0}
    assert [len(repeats.about_held_out(counts, 100, {"ties": ties})) for ties in ("file", "known")] == [2, 1]
    (single, _) = repeats.about_held_out({"ties": 1}, 1, {})
    assert single == "Of 1 held-out item 1 (100%) shares its time with the event before it."
    assert repeats.about_held_out(counts, 100, {}, flags=True)[1].endswith("(--ties shuffle).")
    (words,) = repeats.about_held_out({"repeats": 0, "negative": 2, "untrained": 2_573}, 2_574, {})[:1]
    assert repeats.meaning("first", {"repeated_events": 3e-5}).count(" <0.1% of events") == 1
    assert [in_percent(share, 1) for share in (0.0, 0.0004, 0.0005, 0.9996, 1.0)] == [
        "0.0%", "<0.1%", "0.1%", ">99.9%", "100.0%",
    ]  # fmt: skip
    assert [words.count(f" {share} ") for share in ("0 (0%)", "2 (<1%)", "2,573 (>99%)")] == [1, 1, 1]
    assert repeats.about_held_out({"repeats": 0}, 1, {})[0].startswith("Of 1 held-out item 0 (0%)")
