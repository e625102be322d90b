"""The examples of the films show what their sentences say, in the lists of the committed models."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app import examples
from app.analysis import model_card
from engine.runtime import Zoo

ROOT = Path(__file__).parents[2]
EXPORTS = ROOT / "exports" / "films"


def test_every_film_of_an_example_is_in_its_dataset() -> None:
    for name, chosen in examples.CHOSEN.items():
        there = set(pq.read_table(ROOT / "data" / name / "items.parquet", columns=["item_id"])["item_id"].to_pylist())
        assert all(set(example.history) <= there for example in chosen), name
        assert len({example.history for example in chosen}) == len(chosen) >= 4


def test_simulated_viewers_could_have_the_histories_of_the_sample() -> None:
    """Nobody sees a part of a series before the one that it follows; and where no series is said to be, none is."""
    table = pq.read_table(
        ROOT / "data" / "sample" / "items.parquet", columns=["item_id", "franchise", "franchise_order"]
    )
    series = {row["item_id"]: (row["franchise"], row["franchise_order"] or 0) for row in table.to_pylist()}
    for example in examples.CHOSEN["sample"]:
        seen = [series[item_id] for item_id in example.history]
        for place, (name, part) in enumerate(seen):
            assert part <= 1 or (name, part - 1) in seen[:place], example.history[place]
        assert "no series" not in example.why or {name for name, _ in seen} == {None}


@pytest.fixture(scope="module")
def zoo() -> Zoo:
    return Zoo.open(EXPORTS)


def ten(zoo: Zoo, model: str, ids: Sequence[str]) -> list[dict[str, object]]:
    """The rows of the first ten items after a history."""
    history = [zoo.item_ids.index(item_id) for item_id in ids]
    return list(zoo.items.take(zoo.bundles[model].recommend_one(history, 10).items).to_pylist())


def test_what_the_sentences_say_holds(zoo: Zoo) -> None:
    sagas, dated, director, turned, rare = (example.history for example in examples.of(zoo))

    def recent(model: str, ids: Sequence[str]) -> int:
        return sum(int(str(row["year"])) >= 2015 for row in ten(zoo, model, ids))

    def titles(model: str, ids: Sequence[str]) -> set[object]:
        return {row["title"] for row in ten(zoo, model, ids)}

    assert {"Return of the Jedi", "Indiana Jones and the Last Crusade"} <= titles("sasrec", sagas)
    assert min(recent("sasrec", dated), recent("markov", dated)) >= 8
    for history in (dated, turned):
        assert sum(recent(model, history) >= 7 for model in model_card.usual(zoo)) >= 4
    assert sum(row["director"] == "Hayao Miyazaki" for row in ten(zoo, "sasrec", director)) >= 4
    assert recent("sasrec", turned) >= 8 and recent("sasrec", turned[:-1]) <= 1
    assert len(titles("sasrec", rare) & titles("markov", rare)) <= 2
