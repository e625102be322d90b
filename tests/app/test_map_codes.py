"""Codes on a map: who has them, and the figure."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from app.figures import map_codes as views
from app.figures.map import Look
from tests.app.test_page_catalogue import HOSTILE

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
    found: dict = json.loads(figure.to_json())
    return found


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
