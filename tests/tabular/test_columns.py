"""Columns that are told by their names: the same for uploads, imports and batches of histories."""

from __future__ import annotations

import pytest

from engine.tabular.columns import NAMES, called


@pytest.mark.parametrize("word", ["place", "song", "isbn", "stockcode", "article"])
def test_a_column_of_things_is_the_item_where_nothing_better_is_there(word: str) -> None:
    assert called(NAMES["item"], ["user", word.upper(), "time"]) == [word.upper()]
    assert called(NAMES["item"], ["user", word, "item_id"])[0] == "item_id"


@pytest.mark.parametrize(
    ("header", "item"),
    [
        ("user, place_id, place_name", "place_id"),
        ("artist_id, artist, track_id", "track_id"),
        ("user, artist, song", "song"),
        ("user, location, venue", "venue"),
        ("id, user, place", "place"),  # the number of the event
        ("user, id, location", "id"),
        ("place, time", "place"),
    ],
)
def test_of_several_columns_the_one_that_names_the_item(header: str, item: str) -> None:
    assert called(NAMES["item"], header.split(", "))[0] == item


def test_columns_of_a_german_shop() -> None:
    header = ["Beleg", "Kd-Nr", "Art.-Nr.", "Menge", "Datum", "Uhrzeit"]
    assert [called(NAMES[role], header) for role in ("user", "item", "item_id")] == [
        ["Kd-Nr"],
        ["Art.-Nr."],
        ["Art.-Nr."],
    ]
