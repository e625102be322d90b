"""Map: colours of any column, points by item id, selections, the figure, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from app.views import map as views
from app.views import map_colour as colour
from app.views import map_points as points
from app.widgets import viewport
from tests.app.test_page_catalogue import HOSTILE, failed, opened
from tests.runtime.bundles import TOYS

LOOK = views.Look.of(False, "#0072b2", "circle")


def plane(n: int = 40) -> points.Points:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "item": pa.array(range(n), pa.int32()),
            "x": pa.array(rng.normal(size=n), pa.float32()),
            "y": pa.array(rng.normal(size=n), pa.float32()),
        }
    )
    return points.Points.read(table, n)


# --- colours


def catalogue() -> pa.Table:
    n = 100
    return pa.table(
        {
            "item": pa.array(range(n), pa.int32()),
            "title": [f"t{i}" for i in range(n)],
            "genres": [
                ["rare", "common"] if i % 10 == 0 else ["common"] if i % 2 else [f"g{i % 12}"] for i in range(n)
            ],
            "country": ["<b>X</b>" if i < 60 else None if i < 70 else "Y" for i in range(n)],
            "price": pa.array([None if i == 0 else i / 3 for i in range(n)], pa.float64()),
            "own": [f"only {i}" for i in range(n)],
            "same": ["x"] * n,
            "description": ["words"] * n,
            "popularity": pa.array([10**6 if i == 1 else i % 4 for i in range(n)], pa.int64()),
        }
    )


def test_columns_that_cannot_be_coloured_say_why() -> None:
    possible, left_out = colour.possible(catalogue())
    assert possible == ["popularity", "genres", "country", "price", "own"]
    assert dict(left_out) == {
        "Same": "All items have the same value.",
        "Description": "Sentences form no groups.",
        "Title": "Every item has its own.",
        "Item id": "Every item has its own.",
    }
    many = pa.table({"item": range(1_000), "own": [f"only {i}" for i in range(1_000)]})
    assert "1,000 distinct values" in dict(colour.possible(many)[1])["Own"]


def test_lists_take_their_most_frequent_value() -> None:
    found = colour.colouring(catalogue(), "genres")
    assert found.groups[0] == "common" and found.several and found.group is not None
    assert found.group[0] == 0
    assert len(found.groups) <= colour.GROUPS + 2
    assert sum((found.group == place).sum() for place in range(len(found.groups))) == 100


def test_missing_values_have_a_group_of_their_own() -> None:
    found = colour.colouring(catalogue(), "country")
    assert found.groups == ("<b>X</b>", "Y", "No value")
    assert found.colour(2) != found.colour(0)
    numbers = colour.colouring(catalogue(), "price").numbers
    assert numbers is not None and np.isnan(numbers[0]) and numbers[3] == 1


def test_skewed_numbers_are_coloured_by_their_logarithm() -> None:
    assert colour.colouring(catalogue(), "popularity").log
    assert not colour.colouring(catalogue(), "price").log


# --- points


def test_points_keep_their_items_and_items_without_a_place_are_no_points() -> None:
    table = pa.table(
        {
            "item": pa.array([3, 1], pa.int32()),
            "x": pa.array([3, 1], pa.float32()),
            "y": pa.array([30, 10], pa.float32()),
        }
    )
    found = points.Points.read(table, 5)
    assert len(found) == 2 and found.items.tolist() == [1, 3]
    assert found.y[3] == 30 and np.isnan(found.x[0])
    assert found.at([0, 3, 1]) == [3, 1]
    assert found.view([0]) is None
    x0, x1, y0, y1 = found.view([1, 3]) or (0, 0, 0, 0)
    assert x0 < 1 < 3 < x1 and y0 < 10 < 30 < y1


def test_a_sample_keeps_shares_and_what_is_forced() -> None:
    many = plane(20_000)
    group = np.repeat([0, 1], [19_000, 1_000]).astype(np.int16)
    drawn = points.sample(many, group, [7, 19_999], size=1_000)
    assert {7, 19_999} <= set(drawn.tolist())
    assert 1_000 <= len(drawn) <= 1_002
    assert abs((group[drawn] == 1).mean() - 0.05) < 0.005
    assert (drawn == points.sample(many, group, [7, 19_999], size=1_000)).all()
    assert len(points.sample(plane(), None, [], size=100)) == 40


def test_inside_a_lasso_and_a_box() -> None:
    grid = points.Points(*(v.ravel().astype(np.float32) for v in np.meshgrid(np.arange(10), np.arange(10))))
    box = points.inside(grid, [1.5, 4.5], [6.5, 2.5])
    assert box.sum() == 3 * 4
    lasso = points.inside(grid, [-1, 9.5, -1], [-1, -1, 9.5])
    assert (lasso == (grid.x + grid.y < 8.5)).all()
    assert not points.inside(grid, [1], [1]).any()
    assert not points.inside(grid, [np.nan, 1], [0, 1]).any()


def test_selected_points_are_known_by_their_item_id() -> None:
    at, positions = plane(), {f"toy-{i}": i for i in range(40)}
    event = {
        "points": [
            {"customdata": "toy-9", "point_index": 0},
            {"customdata": ["toy-2"]},
            {"customdata": "toy-9"},
            {"customdata": "=x"},
            {"customdata": 5},
            "nonsense",
            {},
        ]
    }
    assert points.selected(event, at, positions, sampled=False) == [2, 9]
    everything = {"points": [], "box": [{"x": [-9, 9], "y": [-9, 9]}]}
    assert points.selected(everything, at, positions, sampled=True) == list(range(40))
    assert points.selected({"lasso": [{"x": "a", "y": None}, 3], "box": None}, at, positions, sampled=True) == []
    assert points.selected({"points": "x"}, at, positions, sampled=False) == []


@pytest.mark.parametrize("sent", [None, [], [1, 2, 3], [0, 0, 1, 2], ["a", 1, 2, 3], [float("nan"), 1, 2, 3], {"x": 1}])
def test_a_view_that_is_none_is_not_believed(sent: object) -> None:
    assert viewport.checked(sent) is None


# --- the figure


def drawn(n: int = 40, **marks: object) -> dict:
    at = plane(n)
    titles = [HOSTILE[i % len(HOSTILE)] for i in range(n)]
    fig = views.figure(at, None, points.Marks(**marks), LOOK, titles, [f"toy-{i}" for i in range(n)])
    return json.loads(fig.to_json())


def test_every_point_carries_its_item_id_and_titles_are_text() -> None:
    fig = drawn(history=(1, 2, 1), following=(5, 6), chosen=9, near=(4,), matches=(3,))
    for trace in fig["data"]:
        assert trace["type"] == "scattergl"
        if "markers" in trace["mode"]:
            assert all(item_id.startswith("toy-") for item_id in trace["customdata"])
    crowd = fig["data"][0]
    assert len(crowd["customdata"]) == 40
    text = json.dumps(fig)
    assert "<script" not in text and "$x^2$" not in text and "&lt;script&gt;" in text


def test_zoom_survives_and_the_axes_have_one_scale_and_no_units() -> None:
    layout = drawn()["layout"]
    assert layout["uirevision"] == drawn(history=(1, 2))["layout"]["uirevision"]
    assert layout["yaxis"]["scaleanchor"] == "x" and not layout["xaxis"]["visible"] and not layout["yaxis"]["visible"]


def test_the_path_goes_from_old_to_new_with_arrows() -> None:
    at = plane()
    arrows = drawn(history=(1, 2, 2, 5))["layout"]["annotations"]
    assert [(a["ax"], a["x"]) for a in arrows] == [(float(at.x[1]), float(at.x[2])), (float(at.x[2]), float(at.x[5]))]
    numbers = next(trace for trace in drawn(history=(1, 2, 1))["data"] if trace["name"] == "History")
    assert numbers["customdata"] == ["toy-1", "toy-2"] and numbers["text"] == ["3", "2"]
    assert "place 1, 3" in numbers["hovertext"][0]
    assert len(drawn(history=tuple(range(40)) * 3)["layout"]["annotations"]) == views.ARROWS


def test_a_selection_is_lit_by_item() -> None:
    trace = drawn(selection=(3, 7))["data"][0]
    chosen = views.figure(
        plane(), None, points.Marks(selection=(3, 7)), LOOK, ["t"] * 40, [f"toy-{i}" for i in range(40)]
    )
    assert [trace["customdata"][place] for place in chosen.data[0].selectedpoints] == ["toy-3", "toy-7"]


def test_groups_are_traces_with_a_legend_and_numbers_a_scale() -> None:
    items, at = catalogue(), plane(100)
    ids = [f"toy-{i}" for i in range(100)]
    groups = views.figure(at, colour.colouring(items, "country"), points.Marks(), LOOK, ids, ids)
    assert [trace.name for trace in groups.data] == [
        "&lt;b&gt;X&lt;/b&gt;",
        "Y",
        "No value",
    ] and groups.layout.showlegend
    numbers = views.figure(at, colour.colouring(items, "popularity"), points.Marks(), LOOK, ids, ids)
    assert numbers.data[0].marker.colorbar.ticktext[-1] == "1,000,000"


def test_too_many_points_become_a_density_image_and_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "ALL", 30)
    monkeypatch.setattr(views, "SAMPLE", 10)
    fig = drawn(history=(1, 2))
    assert fig["data"][0]["type"] == "heatmap"
    assert 10 <= len(fig["data"][1]["customdata"]) <= 13
    assert {"toy-1", "toy-2"} <= set(fig["data"][1]["customdata"])


def test_the_twin_lists_what_stands_out() -> None:
    marks = points.Marks(history=(1, 2), following=(5,), chosen=9, near=(4, 3), matches=(8,))
    table = points.marks_table(marks, plane(), [f"t{i}" for i in range(40)], [f"toy-{i}" for i in range(40)])
    assert table["Item id"].tolist() == ["toy-1", "toy-2", "toy-5", "toy-9", "toy-4", "toy-3", "toy-8"]
    assert "2 items numbered" in views.alt("M", plane(), None, marks)
    assert "care" in views.verdict(0.7) and "believed" in views.verdict(0.97)


# --- the page


def charts(page: AppTest) -> list:  # type: ignore[type-arg]
    return page.get("plotly_chart")


def test_the_page_of_every_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened(tmp_path, monkeypatch, "map").run()
    assert not failed(page) and len(charts(page)) == 1
    words = " ".join(caption.value.replace("\\", "") for caption in page.caption)
    for needed in (
        "axes have no units",
        "not meaningful",
        "Trustworthiness 0.90",
        "Popular** has no map",
        "Nothing is selected",
    ):
        assert needed in words
    page.segmented_control("map_model").set_value("beta").run()
    assert not failed(page) and len(charts(page)) == 1
    page.selectbox(key="map_second").set_value("alpha").run()
    assert not failed(page) and len(charts(page)) == 2
    for column in ("popularity", "year", "genres", "director", "None"):
        page.selectbox(key="map_colour").set_value(column).run()
        assert not failed(page)


def test_a_search_an_item_and_a_selection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened(tmp_path, monkeypatch, "map").run()
    page.text_input(key="map_search").set_value("أفلام").run()
    page.button(key="map_hit_4").click().run()
    assert not failed(page) and page.query_params["item"] == "toy-4"
    assert len([b for b in page.button if (b.key or "").startswith("map_item_near_")]) == 8 * 4
    page.session_state["map_area"] = ("toys", (1, 2, 30))
    page.run()
    assert not failed(page) and len(page.dataframe[0].value) == 3
    before = page.session_state["seqscope_state"].history
    page.button(key="map_area_add").click().run()
    assert not failed(page) and page.session_state["seqscope_state"].history == (*before, "toy-1", "toy-2", "toy-30")
    page.button(key="map_area_zoom").click().run()
    page.button(key="map_area_clear").click().run()
    assert not failed(page)


def test_without_any_map_the_page_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = opened(tmp_path, monkeypatch, "map", tuple(toy for toy in TOYS if toy.name == "popular")).run()
    assert not page.exception and "None of this dataset" in page.info[0].value
    assert any("Popular" in caption.value for caption in page.caption)
