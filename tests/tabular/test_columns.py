"""Columns that are told by their names: the same for uploads, imports and batches of histories."""

from datetime import UTC, datetime

import duckdb
import pytest

from engine.tabular import times
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
    header = ["Nutzer", "Artikel", "Bestelldatum"]
    assert [called(NAMES[role], header) for role in ("user", "item", "time")] == [[name] for name in header]


def test_a_form_is_tried_where_it_reads_half_of_the_values_and_hardly_elsewhere() -> None:
    moments = [datetime(2019, 3, 31, 18, 5, 9, 120_000, UTC), datetime(1994, 11, 2, tzinfo=UTC)]
    forms = [form for form in times._FORMS if "%z" not in form]
    read = ", ".join(f"try_strptime($1, '{form}')" for form in forms)
    with duckdb.connect() as con:
        for form in times._FORMS:
            written = [moment.strftime(form) for moment in moments]
            tried = times._promising([*written, f" {written[0]}", "some day", "", "1"])
            assert form in tried and len(tried) < len(times._FORMS) / 3, form
            if form in times._FORMS[::20]:
                for text in written:
                    moments_read = con.execute(f"SELECT {read}", [text]).fetchall()[0]
                    can = {other for other, moment in zip(forms, moments_read, strict=True) if moment is not None}
                    assert can <= {*times._promising([text])}, text
    assert not times._promising(["The Red Balloon", "Playtime", "2001"])
