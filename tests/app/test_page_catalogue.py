"""Catalogue: attributes of any catalogue, filters and their words, an item's numbers, and the page."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app.analysis import facets as views
from app.analysis import item_card
from app.screens.catalogue import MAX_VALUES, chosen_filters, parameters_of
from app.store.attributes import Among, Between, Facet, is_year, prose, series, tidied
from app.store.catalogue import Catalogue
from tests.app.conftest import Open, at_page, run_without_fault
from tests.runtime.bundles import make_zoo

HOSTILE = ["<script>alert(1)</script>", "$x^2$", '=HYPERLINK("http://x")', "기생충", "أفلام", "🎬 **bold** [a](b)"]


def films(n: int = 40) -> pa.Table:
    """A catalogue with hostile titles, a series in the wrong order, and lists in every form."""
    return pa.table(
        {
            "item": pa.array(range(n), pa.int32()),
            "item_id": [f"toy-{i}" for i in range(n)],
            "title": [HOSTILE[i] if i < len(HOSTILE) else f"Film {i}" for i in range(n)],
            "year": pa.array([1960 + i for i in range(n)], pa.int16()),
            "genres": ["Horror, Mystery" if i % 2 else "Drama" for i in range(n)],
            "director": ["Ann Lee, Bo Ek" if i % 3 else "Sam Poe, Jr." for i in range(n)],
            "franchise": ["Saga, Inc." if i in (3, 8, 5) else None for i in range(n)],
            "franchise_order": pa.array([{3: 3, 8: 1, 5: 2}.get(i) for i in range(n)], pa.int8()),
            "description": [f"Film number {i} <b>is</b> about $ {i} $." for i in range(n)],
            "imdb": [f"tt{i}" for i in range(n)],
            "popularity": pa.array([n - i for i in range(n)], pa.int64()),
        }
    )


def test_texts_that_are_lists_become_lists_and_known_columns_are_found() -> None:
    items = tidied(films())
    assert items["genres"][1].as_py() == ["Horror", "Mystery"]
    assert items["director"][1].as_py() == ["Ann Lee", "Bo Ek"]
    assert items["director"][0].as_py() == ["Sam Poe, Jr."]
    assert items["franchise"][3].as_py() == "Saga, Inc."
    barred = tidied(pa.table({"mood": ["dark|slow", "light", None], "notes": ["a, b", "c", "d"]}))
    assert barred["mood"].to_pylist() == [["dark", "slow"], ["light"], []]
    assert barred["notes"].to_pylist() == ["a, b", "c", "d"]
    assert series(films()) == ("franchise", "franchise_order")
    assert prose(films()) == "description"
    plain = pa.table({"item": [0], "colour": ["red"]})
    assert series(plain) is None and prose(plain) is None
    assert is_year("release_year", 1950, 2020) and not is_year("price", 1950, 2020)


def test_what_groups_nothing_is_left_out_with_a_reason() -> None:
    few = Facet("also_known_as", "category", values=tuple((f"name {i}", 1) for i in range(9)), missing=31)
    found = views.usable([*Catalogue(films()).facets, few], 40)
    assert [facet.name for facet in found.facets][:2] == ["genres", "year"]
    reasons = dict(found.left_out)
    assert "groups nothing" in reasons["Description"] and "9 items: it groups nothing" in reasons["Also known as"]
    assert "names the items" in reasons["Imdb"]


def test_filters_in_words_and_their_steps() -> None:
    assert views.filter_words("price", Between(0.25, 0.5)) == "Price: 0.25–0.5"
    assert views.filter_words("genres", Among(("A", "B", "C", "D"))) == "Genres: A, B, C and 1 more"
    assert views.counted([("Drama", 3)], ["Gone"]) == {"Drama": "Drama · 3", "Gone": "Gone · 0"}
    assert views.decades([(1970.0, 4), (1980.0, 1)]) == {1980: "1980s · 1", 1970: "1970s · 4"}
    found = Catalogue(films())
    assert found.steps("year", 10) == [(1960.0, 10), (1970.0, 10), (1980.0, 10), (1990.0, 10)]
    assert found.steps("year", 10, "", {"year": Between(1960, 1961)}) == found.steps("year", 10)
    assert found.steps("year", 10, "", {"genres": Among(("Mystery",))})[0] == (1960.0, 5)
    with pytest.raises(ValueError):
        found.steps("genres", 10)
    for _, column, descending in views.sorts(found.facets).values():
        assert found.page(sort=column, descending=descending, limit=3).total == 40


def test_a_row_says_its_attributes_and_by_what_it_matches_and_a_file_holds_all_of_them() -> None:
    found = Catalogue(films())
    rows = found.page(limit=40).rows
    facets = views.usable(found.facets, 40).facets
    assert views.row_words(rows.to_pylist()[7], facets)[:2] == ["Horror, Mystery", "1967"]
    table = views.table(rows)
    same = views.table(rows.append_column("genres_", rows["genres"]).append_column(" genres", rows["genres"]))
    assert {"Genres", "Genres_", " genres"} <= set(same)
    assert len(table) == 40 and table["Genres"][1] == "Horror; Mystery" and "Item id" in table
    assert [views.number(value) for value in (19_999.99, 0.12345, 1999.0)] == ["19,999.99", "0.1235", "1999"]
    assert views.value_words(float("nan")) == "" and views.value_words([1, 2, 3, 4], 2) == "1, 2 +2"
    row = {
        "item_id": "B-17", "title": "Alien (1979)", "director": "Ridley Scott", "genres": ["Horror", "Sci-Fi"], "country": None,
        "description": "Far from home, on its long way back to Earth, the crew of a freighter hears what may be a call.",
    }  # fmt: skip
    names = ["description", "director", "genres", "country"]
    assert views.matched(row, names, "alien") == [] and views.matched(row, names, " b-17 ") == ["Item id: B-17"]
    assert views.matched(row, names, "alien scot sci") == ["Director: Ridley Scott", "Genres: Sci-Fi"]
    (words,) = views.matched(row, names, "freighter")
    assert words.startswith("Description: … ") and "of a freighter hears" in words


def test_the_details_of_an_item_end_with_its_id_unless_that_is_its_title() -> None:
    assert item_card.attributes(films(), 0)[-1] == ("item_id", "Item id", [films()["item_id"][0].as_py()])
    untitled = films().set_column(films().column_names.index("title"), "title", films()["item_id"])
    assert "item_id" not in [name for name, _, _ in item_card.attributes(untitled, 0)]


def test_standing_with_ties_and_a_series_in_its_own_order() -> None:
    popularity = np.array([5, 9, 5, 1])
    assert item_card.standing(popularity, 1) == (9, 1, 100.0)
    events, rank, percentile = item_card.standing(popularity, 0)
    assert (events, rank) == (5, 2) and percentile == pytest.approx(100 / 3)
    assert item_card.standing(np.array([0]), 0).rank == 1
    of = item_card.series_of(films(), 5)
    assert of is not None
    assert list(of.members) == [(8, "1"), (5, "2"), (3, "3")]
    assert item_card.series_of(films(), 0) is None
    texts = films().set_column(7, "franchise_order", pa.array([{3: "10", 8: "", 5: "2-3"}.get(i) for i in range(40)]))
    as_texts = item_card.series_of(texts, 5)
    assert as_texts is not None and as_texts.members == [(5, "2-3"), (3, "10"), (8, "")], "10 comes after 2"
    assert item_card.series_of(films().drop_columns(["franchise"]), 5) is None


# --- the page


@pytest.fixture
def opened(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    pq.write_table(films(), make_zoo(tmp_path) / "items.parquet")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    return lambda **address: run_without_fault(at_page(root, "catalogue", **address))


def test_a_fact_from_right_to_left_leaves_the_others_where_they_are(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genres = pa.array(["دراما", "رعب"] * 20)
    items = films().set_column(films().column_names.index("genres"), "genres", genres)
    pq.write_table(items, make_zoo(tmp_path) / "items.parquet")
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    page = run_without_fault(at_page(root, "catalogue"))
    assert "\u2068دراما\u2069 · 1960 · Sam Poe, Jr. · popularity rank 1" in [caption.value for caption in page.caption]


def test_search_and_filters_come_back_from_the_address(opened: Open) -> None:
    page = opened(find="Film", only="genres~Mystery", between="year~1970~1979", h="toy-1")

    def shown() -> int:
        return sum((button.key or "").startswith("catalogue_open_") for button in page.button)

    assert shown() == 5 and page.text_input(key="catalogue_search").value == "Film"
    page.button(key="catalogue_chip_genres").click().run()
    assert shown() == 10 and "only" not in page.query_params and page.query_params["between"] == "year~1970~1979"
    run_without_fault(page.button(key="catalogue_add_13").click())
    assert page.session_state["seqscope_state"].history == ("toy-1", "toy-13")
    assert (
        page.button(key="catalogue_add_13").disabled and page.button(key="catalogue_add_13").label == "In the history"
    )


def test_order_and_page_come_back_from_the_address_and_other_matches_begin_at_their_first_page(
    opened: Open,
) -> None:
    def shown(page: AppTest) -> list[str]:
        keys = [button.key or "" for button in page.button]
        return [key.removeprefix("catalogue_open_") for key in keys if key.startswith("catalogue_open_")]

    page = opened(sort="year-up", only="genres~Drama~genres~Horror")
    page.query_params["page"] = "2"
    assert shown(run_without_fault(page)) == [str(item) for item in range(20, 40)]
    page.query_params["only"] = "genres~Horror"  # fewer: the last page that there is
    assert shown(run_without_fault(page))[-1] == "39"
    run_without_fault(page.button(key="catalogue_clear_filters").click())
    assert shown(page)[0] == "0" and "page" not in page.query_params
    page.query_params["page"] = "2"
    run_without_fault(page.run().selectbox(key="catalogue_sort").set_value("year-down"))
    assert shown(page)[0] == "39" and page.query_params["sort"] == "year-down" and "page" not in page.query_params


def test_a_range_from_a_link_lies_within_what_there_is(opened: Open) -> None:
    page = opened()
    page.session_state["catalogue_facet_year"] = True  # its popover is open
    for between, ends in (("year~1e39~", (1999, 1999)), ("year~~1970", (1960, 1970)), ("year~0~5", (1960, 1960))):
        page.query_params["between"] = between
        assert run_without_fault(page).slider(key="catalogue_range_year").value == ends
    assert page.info[0].value == "None of 40 items have these attributes."


def test_a_filter_comes_back_from_the_address_to_the_last_digit() -> None:
    ranges = {"when": Between(1262304000129, 1262304000131), "price": Between(0, 0.1 + 0.2)}
    address = {name: text for name, text in parameters_of(ranges).items() if text}
    assert chosen_filters(address) == ranges


def test_what_more_values_than_a_link_holds_leave_is_said(opened: Open) -> None:
    hundred = "~".join(f"director~{name}" for name in ["Ann Lee", *range(MAX_VALUES - 1)])
    page = opened(only=hundred)
    page.session_state["catalogue_facet_genres"] = True
    run_without_fault(run_without_fault(page).pills(key="catalogue_values_genres").select("Drama"))
    assert str(MAX_VALUES) in page.toast[0].value and page.query_params["only"] == hundred
    assert f"{MAX_VALUES + 1} values" in opened(only=f"{hundred}~genres~Drama").warning[0].value
