"""Attributes of items, and the regions of a map that are named after them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from app.analysis import map_points, semantic_ids
from app.analysis.map_points import Points
from app.analysis.map_regions import Region, attributes, regions, title_words
from app.figures import map_codes as views
from app.figures.map import Look
from tests.app.test_page_catalogue import HOSTILE

CORNERS = {"Horror": (0.0, 0.0), "Comedy": (10.0, 0.0), "Western": (0.0, 10.0), "Musical": (10.0, 10.0)}
EACH = 150


def clusters(jitter: float = 0.0) -> Points:
    """A cluster of items around each corner."""
    middles = np.repeat(np.array(list(CORNERS.values())), EACH, axis=0)
    xy = middles + np.random.default_rng(0).normal(size=middles.shape)
    xy += np.random.default_rng(1).normal(scale=max(jitter, 1e-9), size=xy.shape)
    return Points(xy[:, 0].astype(np.float32), xy[:, 1].astype(np.float32))


def catalogue() -> pa.Table:
    n = EACH * len(CORNERS)
    return pa.table(
        {
            "item": range(n),
            "title": [f"The night of {'Potter' if n - 12 <= i else i}" for i in range(n)],
            "genres": [[genre, "Drama"] for genre in CORNERS for _ in range(EACH)],
            "year": [1950 + i % 40 for i in range(n)],
            "price": [float(i) for i in range(n)],
        }
    )


def named(points: Points) -> list[Region]:
    items = catalogue()
    values = [attribute for attribute in attributes(items) if not attribute.ranges]
    return regions(points, [*values, title_words(items["title"].to_pylist())])


def test_a_region_is_named_after_what_its_items_have_and_others_have_not() -> None:
    coarse = {region.terms[0]: region for region in named(clusters()) if region.level == 0}
    assert set(CORNERS) <= set(coarse) and "Drama" not in coarse
    for genre, (x, y) in CORNERS.items():
        assert abs(coarse[genre].x - x) < 2 and abs(coarse[genre].y - y) < 2


def test_the_same_map_has_the_same_names_and_a_jitter_of_its_points_leaves_most() -> None:
    points = clusters()
    before = named(points)
    assert before == named(points)
    coarse = {region.name for region in before if region.level == 0}
    after = {region.name for region in named(clusters(jitter=0.1))}  # 1 % of the map
    assert len(coarse & after) >= 0.8 * len(coarse)


def test_what_is_not_on_the_map_and_words_that_many_titles_have_name_nothing() -> None:
    points = clusters()
    half = np.arange(len(points.x)) < 2 * EACH  # Horror and Comedy
    rest = Points(*(np.where(half, axis, np.float32(np.nan)) for axis in (points.x, points.y)))
    terms = {term for region in named(rest) for term in region.terms}
    assert {"Horror", "Comedy"} <= terms and not {"Western", "Musical"} & terms
    words = title_words(catalogue()["title"].to_pylist())
    assert words.values == ("Potter",) and words.counts(np.ones(600, bool)).tolist() == [12]


@pytest.mark.parametrize(
    "points", [Points(*np.full((2, 600), np.nan, np.float32)), Points(*np.ones((2, 600), np.float32))]
)
def test_a_map_of_no_extent_has_no_regions(points: Points) -> None:
    assert named(points) == []


def test_attributes_are_values_that_items_share_and_numbers_that_differ_are_called_differently() -> None:
    ids = pa.array([782672936283815938 + n for n in range(9)], pa.int64())
    items = pa.table({"postcode": [10115, 10117, 10119] * 3, "tweet": ids, "price": [12341.0 + n for n in range(9)]})
    postcode, *_, price = attributes(items)
    assert postcode.values == ("10,115", "10,117", "10,119") and postcode.having(["10,117"]).sum() == 3
    assert price.name == "price" and len(set(price.values)) == len(price.values) == 5
    genres, year, price = attributes(catalogue())
    assert genres.values[0] == "Drama" and set(genres.values[1:]) == set(CORNERS)
    assert year.values == ("1950s", "1960s", "1970s", "1980s") and not year.ranges
    assert price.ranges and len(price.values) == 5
    everything = np.ones(600, bool)
    assert price.counts(everything).tolist() == [120] * 5 and genres.counts(everything)[0] == 600
    horror = genres.having(["Horror"])
    assert horror.sum() == EACH and year.counts(horror).sum() == EACH


# --- what is selected on a map as a text, and back: the very same items, in few characters


def cloud(n: int = 5_000, scale: float = 1.0) -> Points:
    rng = np.random.default_rng(0)
    return Points(*(scale * rng.normal(size=(2, n)) + 3 * scale).astype(np.float32))


def circle(corners: int, radius: float = 1.0, scale: float = 1.0) -> map_points.Outline:
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return (scale * (3 + radius * np.cos(turn))).tolist(), (scale * (3 + radius * np.sin(turn))).tolist()


@pytest.mark.parametrize("scale", [1e-3, 300.0])
def test_an_outline_keeps_its_items_and_loses_its_corners(scale: float) -> None:
    points = cloud(scale=scale)
    areas = [circle(200, scale=scale), ([0.0, scale], [0.0, 2 * scale])]
    text = map_points.outline_text(points, areas)
    assert text is not None and len(text) < 1_500
    again = map_points.outlines(text)
    assert again is not None and len(again) == 2 and len(again[1][0]) == 2
    assert len(again[0][0]) < 120
    assert np.array_equal(map_points.within(points, again), map_points.within(points, areas))
    assert len(map_points.within(points, areas)) > 500


def test_few_items_need_few_corners_and_some_areas_no_text_can_say() -> None:
    few = Points(np.array([3.0, 9.0], np.float32), np.array([3.0, 9.0], np.float32))
    text = map_points.outline_text(few, [circle(200)])
    assert text is not None and len(text) < 200
    points = cloud(100)
    assert map_points.outline_text(points, []) is None
    assert map_points.outline_text(points, [([1.0], [2.0])]) is None
    assert map_points.outline_text(points, [([0.0, 1.0], [0.0, 1.0])] * 11) is None
    nowhere = Points(np.full(3, np.nan, np.float32), np.full(3, np.nan, np.float32))
    assert map_points.outline_text(nowhere, [circle(9)]) is None


def test_outlines_and_prefixes() -> None:
    assert [map_points.split(text) for text in ("a.b~1-2~3", "x")] == [("a.b", "1-2~3"), ("x", "")]
    assert map_points.outlines("-1.5_2_3_-0.25") == [([-1.5, 3.0], [2.0, -0.25])]
    few = ("", "1_2", "1_2_3_4_5", "1_2_3_4~")
    for wrong in (*few, "nan_0_1_1", "1e9_0_1_1", "٣_0_1_1", "1_2_3_4 ", "1.2345678901_0_1_1"):
        assert map_points.outlines(wrong) is None
    assert map_points.prefix("12-200") == (12, 200) and map_points.prefix("x-7") == (None, 7)
    for wrong in ("", "x", "7-", "-7", "7-x", "1--2", "99999999999", "٣"):
        assert map_points.prefix(wrong) is None
    codes = np.array([[1, 2], [1, 3], [4, 2], [1, -1]])
    assert semantic_ids.with_prefix(codes, (None, 2)).tolist() == [0, 2]  # others: test_semantic_ids.py


# --- codes on a map: who has them, and the figure


LOOK = Look.of(False, "#0072b2", "circle")
OWN = np.array([[0, 1], [0, 2], [1, 1], [0, -1]], np.int32)
TITLES = [HOSTILE[item % len(HOSTILE)] for item in range(4)]


def codes(plane: bool = True) -> views.Codes:
    """Two levels of three codes; nobody has code 2 of level 1, nor code 0 of level 2."""
    places = {"level": pa.array([0, 0, 0, 1, 1, 1], pa.int32()), "code": pa.array([0, 1, 2] * 2, pa.int32())}
    xy = {name: pa.array(np.arange(6) * (1 if name == "x" else -1), pa.float32()) for name in "xy"}
    table = pa.table({**places, **xy})
    clusters = table.append_column("cluster", pa.array([1, 0, 1, 0, 0, 1], pa.int32())) if plane else None
    return views.Codes.read(table, clusters, OWN, np.array([5, 9, 1, 7], np.int64))


def drawn(by: str = "level") -> dict:
    figure = views.figure(codes(), by, views.Marks(selection=(1,)), LOOK, TITLES)
    assert [[*trace.selectedpoints] for trace in figure.data] == [[1], []] or by != "level", "what is selected is lit"
    drawing: dict = json.loads(figure.to_json())
    return drawing


def test_who_has_a_code() -> None:
    one = codes()
    assert one.items.tolist() == [3, 1, 0, 0, 2, 1] and one.levels == 2
    assert one.top == ((1, 3, 0), (2,), (), (), (0, 2), (1,))  # the most taken first
    assert one.rows == {"1-0": 0, "1-1": 1, "1-2": 2, "2-0": 3, "2-1": 4, "2-2": 5}
    assert one.having([4]).tolist() == [0, 2] and one.having([1, 5]).tolist() == [1, 2]
    assert one.path(0) == (0, 4) and one.path(3) == (0,)
    assert one.held([2]) == (1, 4) and one.held([]) == ()
    assert one.cluster.tolist() == [1, 0, 1, 0, 0, 1] and set(codes(plane=False).cluster.tolist()) == {-1}


def test_shapes_are_levels_and_colours_clusters_or_use() -> None:
    crowd = drawn()["data"]
    assert [trace["name"] for trace in crowd] == ["level 1", "level 2"]
    assert crowd[0]["marker"]["symbol"] == ["circle", "circle", "circle-open"]
    assert crowd[1]["marker"]["symbol"] == ["square-open", "square", "square"]
    assert crowd[0]["customdata"] == ["1-0", "1-1", "1-2"] and crowd[1]["text"] == ["0", "1", "2"]
    assert crowd[0]["marker"]["color"] != crowd[1]["marker"]["color"]
    crowd = drawn("cluster")["data"]
    assert [(trace["name"], trace["customdata"]) for trace in crowd] == [
        ("cluster 1", ["1-1", "2-0", "2-1"]),
        ("cluster 2", ["1-0", "1-2", "2-2"]),
    ]
    figure = drawn("items")
    nobody, used = figure["data"]
    assert nobody["customdata"] == ["1-2", "2-0"] and used["customdata"] == ["1-0", "1-1", "2-1", "2-2"]
    colours = views.figure(codes(), "items", views.Marks(), LOOK, TITLES).data[1].marker.color
    assert colours.tolist() == [3, 1, 2, 1]
    assert not figure["layout"]["showlegend"] and drawn()["layout"]["showlegend"]


def test_a_code_says_its_most_taken_items_and_titles_are_text() -> None:
    figure = drawn()
    words = figure["data"][0]["hovertext"][0]
    assert words.startswith("Level 1, code 0, cluster 2<br>3 items<br>") and "$x^2$" not in words
    assert words.index("&#36;x^2") < words.index("&lt;script&gt;")
    assert figure["data"][0]["hovertext"][2] == "Level 1, code 2, cluster 2<br>no item"
    assert "<script" not in json.dumps(figure)
