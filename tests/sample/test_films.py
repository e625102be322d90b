"""The catalogue is clean, and a fault in it is found and named."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.errors import SeqscopeError
from engine.sample.films import Film, check_films, read_films

GOOD: dict[str, Any] = {
    "item_id": "first-film-1999", "title": "First Film", "year": 1999, "genres": ["Drama"], "director": "A. Person",
    "country": "Italy", "franchise": "Films", "franchise_order": 1, "keywords": ["one", "two", "three"],
    "description": "Somebody makes a film for the first time and forgets to load the camera.", "fame": 3,
}  # fmt: skip


def film(**changes: Any) -> Film:
    return Film(**{**GOOD, **changes})


def second(**changes: Any) -> Film:
    """Another film that has nothing in common with `film()` but the series."""
    fresh = {
        "item_id": "second-film-2001", "title": "Second Film", "year": 2001, "franchise_order": 2,
        "description": "The same person tries again with a loaded camera and no idea for a story.",
    }  # fmt: skip
    return film(**{**fresh, **changes})


def test_the_committed_catalogue_has_no_fault(films: list[Film]) -> None:
    assert len(films) >= 800
    assert check_films(films) == []
    assert films == sorted(films, key=lambda f: (f.year, f.title))


def test_the_committed_catalogue_has_enough_series(films: list[Film]) -> None:
    assert len({f.franchise for f in films} - {None}) >= 80
    assert sum((f.franchise_order or 0) > 1 for f in films) >= 250


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"item_id": "Not A Slug"}, "item_id"),
        ({"year": 1066}, "year"),
        ({"year": "1999"}, "year"),
        ({"fame": 6}, "fame"),
        ({"genres": []}, "genres"),
        ({"genres": ["Drama", "Drama"]}, "stands twice"),
        ({"genres": ["Telenovela"]}, "unknown genres"),
        ({"keywords": ["one", "two"]}, "keywords"),
        ({"keywords": ["one", " ", "three"]}, "keywords"),
        ({"title": " First Film"}, "title"),
        ({"franchise": None}, "belong together"),
        ({"description": "Short."}, "description"),
        ({"description": GOOD["description"].rstrip(".")}, "end like a sentence"),
        ({"director": ...}, "director"),  # is missing
    ],
)
def test_faults_of_one_film(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named) as caught:
        Film(**{name: value for name, value in {**GOOD, **changes}.items() if value is not ...})
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"item_id": GOOD["item_id"]}, "same item_id"),
        ({"title": "FIRST film", "year": 1999}, "same title and year"),
        ({"description": GOOD["description"].upper()}, "same description"),
        ({"franchise_order": 3}, "orders [1, 3] are not 1 to 2"),
        ({"year": 1990}, "older than the one before"),
    ],
)
def test_faults_between_films(changes: dict[str, Any], named: str) -> None:
    assert check_films([film(), second()]) == []
    faults = check_films([film(), second(**changes)])
    assert len(faults) == 1
    assert named in faults[0]


def test_every_fault_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "films.jsonl"
    bad = second().model_dump() | {"fame": 9}
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(bad) + "\nnot json\n[]\n", "utf-8")
    with pytest.raises(SeqscopeError) as caught:
        read_films(path)
    for named in ("3 faults", "line 2: fame", "line 3", "line 4"):
        assert named in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="nowhere"):
        read_films(tmp_path / "nowhere.jsonl")
