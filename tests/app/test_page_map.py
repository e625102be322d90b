"""Map: colours of any column, points by item id, selections, the figure, and the page with every kind of space."""

import base64
import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from app import spaces, zoo
from app.analysis import map_colouring, map_points, map_regions
from app.components import widgets
from app.figures import map as views
from app.screens.map import chart, filters
from app.session import state
from app.styles import GREY
from tests.app.conftest import alone, at_page, plain, run_without_fault, state_of
from tests.app.test_page_addresses import GOOD
from tests.app.test_page_catalogue import HOSTILE, films
from tests.runtime import tokenizations
from tests.runtime.bundles import TOYS, make_zoo
from tests.runtime.spaces import toy_vectors, write_space
from tests.runtime.tokenizations import toy_codes, write_tokenization

LOOK = views.Look.of(False, "#0072b2", "circle")


def plane(n: int = 40) -> map_points.Points:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "item": pa.array(range(n), pa.int32()),
            "x": pa.array(rng.normal(size=n), pa.float32()),
            "y": pa.array(rng.normal(size=n), pa.float32()),
        }
    )
    return map_points.Points.read(table, n)


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


def test_columns_to_colour_by_and_lists_by_their_most_frequent_value() -> None:
    assert map_colouring.possible(catalogue()) == ["popularity", "genres", "country", "price", "own"]
    many = pa.table({"item": range(1_000), "own": [f"only {i}" for i in range(1_000)]})
    assert map_colouring.possible(many) == ["popularity"]
    found = map_colouring.colouring(catalogue(), "genres")
    assert found.groups[0] == "common" and found.several and found.group is not None
    assert found.group[0] == 0
    assert len(found.groups) <= map_colouring.GROUPS + 2


def test_colours_of_numbers_follow_their_logarithm_where_they_are_skewed_or_their_rank() -> None:
    assert map_colouring.colouring(catalogue(), "popularity").scale == "log"
    assert map_colouring.colouring(catalogue(), "price").scale == "linear"
    below = pa.table({"item": range(3), "change": [-1.0, 0.0, 900.0]})
    assert map_colouring.colouring(below, "change", "log").scale == "linear"
    numbers = map_colouring.colouring(catalogue(), "price").numbers
    assert numbers is not None and np.isnan(numbers[0]) and numbers[3] == 1
    ranked = map_colouring.colouring(pa.table({"item": range(4), "n": [1, 5, 5, 900]}), "n", "quantile")
    assert ranked.shades(np.array([1.0, 5.0, 900.0])).tolist() == [0.125, 0.5, 0.875], "equal numbers share a rank"


def test_a_map_of_one_place_has_a_shape() -> None:
    here = np.ones(2, np.float32)
    assert map_points.Points(here, here).aspect == 1


@pytest.mark.parametrize("rest", [(), ("Other", "No value")])
def test_bars_of_rarer_values_have_the_colour_of_other_items(rest: tuple[str, ...]) -> None:
    names = tuple(f"g{i}" for i in range(map_colouring.GROUPS))
    colours = map_colouring.Colouring("genres", "Genres", groups=(*names, *rest), group=np.zeros(1, np.int16))
    attribute = map_regions._of_texts("genres", [["g0"], ["g0"]])
    assert filters._colour(colours, attribute, "rare") == {"colour": GREY, "legend": False}
    assert filters._colour(colours, attribute, "g0") == {"colour": colours.colour(0), "legend": True}


@pytest.mark.parametrize("moved", [False, True])
def test_a_map_does_not_open_where_that_of_another_dataset_was_left(
    monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    left = (0.0, 1.0, 0.0, 1.0)
    session: dict[str, Any] = (
        {"map_m_over": SimpleNamespace(view=[*left, 600.0])} if moved else {"map_m_view": (left, None)}
    )
    monkeypatch.setattr(chart.st, "session_state", session)
    assert chart.as_shown("map_m", ("one", "digest", 0), ()).view == left
    assert [chart.as_shown("map_m", ("other", "digest", times), ()).view for times in range(3)] == [None] * 3
    session["map_m_over"] = SimpleNamespace(view=[5.0, 6.0, 5.0, 6.0, 600.0])
    assert chart.as_shown("map_m", ("other", "digest", 3), ()).view == (5.0, 6.0, 5.0, 6.0)


def test_codes_have_a_colour_and_a_shape_each_up_to_a_number() -> None:
    codes = np.array([0] * 9 + [1] * 5 + [-1] + list(range(2, 50)), np.int32)
    found = map_colouring.by_code(codes, "code.t", "First code by T")
    assert found.group is not None and found.groups[:2] == ("code 0", "code 1")
    assert found.groups[-2:] == ("Other", "No value") and len(found.groups) == map_colouring.CODES + 2
    looks = [(found.colour(place), found.symbol(place)) for place in range(map_colouring.CODES)]
    assert len(set(looks)) == map_colouring.CODES
    assert found.colour(map_colouring.CODES) not in map_colouring.SERIES
    assert found.groups[found.group[14]] == "No value" and found.groups[found.group[0]] == "code 0"
    assert (found.group == map_colouring.CODES).sum() == 50 - map_colouring.CODES
    few = map_colouring.by_code(np.array([3, 3, 1]), "code.t", "T")
    assert found.note and few.groups == ("code 3", "code 1") and few.note == ""


# --- points


def test_points_keep_their_items_and_items_without_a_place_are_no_points() -> None:
    places = {name: pa.array(values, pa.float32()) for name, values in (("x", [3, 1]), ("y", [30, 10]))}
    table = pa.table({"item": pa.array([3, 1], pa.int32()), **places})
    found = map_points.Points.read(table, 5)
    assert len(found) == 2 and found.items.tolist() == [1, 3]
    assert found.y[3] == 30 and np.isnan(found.x[0])
    assert found.at([0, 3, 1]) == [3, 1]
    assert found.view([0]) is None
    x0, x1, y0, y1 = found.view([1, 3]) or (0, 0, 0, 0)
    assert x0 < 1 < 3 < x1 and y0 < 10 < 30 < y1


def test_a_few_items_far_out_do_not_make_the_map_small_and_a_sample_keeps_shares() -> None:
    points = plane(1_000)
    assert points.core() is None and plane(40).core() is None
    x = points.x.copy()
    x[:3] = 500
    far = map_points.Points(x, points.y)
    core = far.core()
    assert core is not None and core[1] < 10 and far.aspect == pytest.approx((core[1] - core[0]) / (core[3] - core[2]))
    assert map_points.Points(np.full(1_000, 1, np.float32), points.y).core() is None
    many = plane(20_000)
    group = np.repeat([0, 1], [19_000, 1_000]).astype(np.int16)
    drawn = map_points.sample(many, group, [7, 19_999], size=1_000)
    assert {7, 19_999} <= set(drawn.tolist())
    assert 1_000 <= len(drawn) <= 1_002
    assert abs((group[drawn] == 1).mean() - 0.05) < 0.005
    assert (drawn == map_points.sample(many, group, [7, 19_999], size=1_000)).all()
    assert len(map_points.sample(plane(), None, [], size=100)) == 40


def test_selected_points_are_those_inside_and_are_known_by_their_item_id() -> None:
    grid = map_points.Points(*(v.ravel().astype(np.float32) for v in np.meshgrid(np.arange(10), np.arange(10))))
    box = map_points.in_polygon(grid, [1.5, 4.5], [6.5, 2.5])
    assert box.sum() == 3 * 4
    lasso = map_points.in_polygon(grid, [-1, 9.5, -1], [-1, -1, 9.5])
    assert (lasso == (grid.x + grid.y < 8.5)).all()
    assert not map_points.in_polygon(grid, [1], [1]).any()
    assert not map_points.in_polygon(grid, [np.nan, 1], [0, 1]).any()
    at, positions = plane(), {f"toy-{i}": i for i in range(40)}
    carried = [{"customdata": sent} for sent in ("toy-9", ["toy-2"], "toy-9", "=x", 5)]
    event = {"points": [*carried, "nonsense", {}]}
    assert map_points.selected(event, at, positions.get, sampled=False) == [2, 9]
    everything = {"points": [], "box": [{"x": [-9, 9], "y": [-9, 9]}]}
    assert map_points.selected(everything, at, positions.get, sampled=True) == list(range(40))
    for nonsense in ({"lasso": [{"x": "a", "y": None}, 3], "box": None}, {"points": "x"}):
        assert map_points.selected(nonsense, at, positions.get, sampled="lasso" in nonsense) == []


@pytest.mark.parametrize(
    "sent",
    [None, [], [1, 2, 3, 4], [0, 0, 1, 2, 400], ["a", 1, 2, 3, 400], [float("nan"), 1, 2, 3, 400], [0, 1, 0, 1, 0]],
)
def test_a_view_that_is_none_is_not_believed(sent: object) -> None:
    assert widgets.checked_viewport(sent) is None


# --- the figure


def drawn(n: int = 40, **marks: object) -> dict:
    at = plane(n)
    titles = [HOSTILE[i % len(HOSTILE)] for i in range(n)]
    fig = views.figure(at, None, map_points.Marks(**marks), LOOK, titles, [f"toy-{i}" for i in range(n)])
    return json.loads(fig.to_json())


def test_every_point_carries_its_item_id_the_path_goes_from_old_to_new_and_titles_are_text() -> None:
    fig = drawn(history=(1, 2, 1), following=(5, 6), chosen=9, near=(4,), matches=(3,))
    for trace in fig["data"]:
        assert trace["type"] == "scattergl"
        if "markers" in trace["mode"]:
            assert all(item_id.startswith("toy-") for item_id in trace["customdata"])
    crowd = fig["data"][0]
    assert len(crowd["customdata"]) == 40
    text = json.dumps(fig)
    assert "<script" not in text and "$x^2$" not in text and "&lt;script&gt;" in text
    at, data = plane(), drawn(history=(1, 2, 1, 5))["data"]
    path = next(trace for trace in data if trace["name"] == "Path")
    assert base64.b64decode(path["x"]["bdata"]) == at.x[[1, 2, 1, 5]].tobytes()
    numbers = next(trace for trace in data if trace["name"] == "History")
    assert numbers["customdata"] == ["toy-1", "toy-2", "toy-5"] and numbers["text"] == ["3", "2", "4"]
    assert "place 1, 3" in numbers["hovertext"][0]
    titles, ids = ["t"] * 40, [f"toy-{i}" for i in range(40)]
    at.x[1] = np.nan
    numbers = next(
        trace for trace in views.figure(at, None, map_points.Marks((1, 2, 5)), LOOK, titles, ids).data if trace.name == "History"
    )  # fmt: skip
    assert numbers.text == ("2", "3"), "an item that is not on the map keeps its number"
    marks = map_points.Marks(chosen=9, near=(1, 4))
    near = next(trace for trace in views.figure(at, None, marks, LOOK, titles, ids).data if trace.name == "Neighbours")
    assert near.hovertext == ("t<br>neighbour 2",)
    assert "the history's 2 items numbered" in views.alt("", at, None, map_points.Marks((1, 2, 5)))
    crowd = views.figure(plane(), None, map_points.Marks(selection=(3, 7)), LOOK, titles, ids).data[0]
    assert [crowd.customdata[place] for place in crowd.selectedpoints] == ["toy-3", "toy-7"]


def test_groups_are_traces_with_a_legend_and_numbers_a_scale() -> None:
    items, at = catalogue(), plane(100)
    ids = [f"toy-{i}" for i in range(100)]
    groups = views.figure(at, map_colouring.colouring(items, "country"), map_points.Marks(), LOOK, ids, ids)
    assert [trace.name for trace in groups.data] == ["&lt;b&gt;X&lt;/b&gt;", "Y", "No value"]
    assert groups.layout.showlegend
    numbers = views.figure(at, map_colouring.colouring(items, "popularity"), map_points.Marks(), LOOK, ids, ids)
    assert numbers.data[0].marker.colorbar.ticktext[-1] == "1,000,000"
    assert numbers.data[0].marker.colorbar.title.text == "Popularity (log)"


@pytest.mark.parametrize("scale", ["log", "quantile"])
def test_a_scale_of_years_says_some_of_them(scale: map_colouring.Scale) -> None:
    years, ids = np.arange(1902.0, 2002.0), [f"toy-{i}" for i in range(100)]
    colours = map_colouring.Colouring("year", "Year", numbers=years, scale=scale)
    bar = views.figure(plane(100), colours, map_points.Marks(), LOOK, ids, ids).data[0].marker.colorbar
    assert len(bar.ticktext) == len(bar.tickvals) >= 3
    assert (bar.ticktext[0], bar.ticktext[-1]) == ("1902", "2001")


def test_too_many_points_become_a_density_image_and_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "ALL", 30)
    monkeypatch.setattr(views, "SAMPLE", 10)
    fig = drawn(history=(1, 2))
    assert fig["data"][0]["type"] == "heatmap"
    assert 10 <= len(fig["data"][1]["customdata"]) <= 13
    assert {"toy-1", "toy-2"} <= set(fig["data"][1]["customdata"])


def test_the_twin_lists_what_stands_out() -> None:
    marks = map_points.Marks(history=(1, 2), following=(5,), chosen=9, near=(4, 3), matches=(8,))
    table = map_points.marks_table(marks, plane(), [f"t{i}" for i in range(40)], [f"toy-{i}" for i in range(40)])
    assert table["Item id"].tolist() == ["toy-1", "toy-2", "toy-5", "toy-9", "toy-4", "toy-3", "toy-8"]
    assert "2 items numbered" in views.alt("as M arranges them", plane(), None, marks)
    assert "care" in views.verdict(0.7) and "reliable" in views.verdict(0.97)


# --- the page


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with hostile titles, words, and tokenizers with maps, without, and without vectors."""
    path = make_zoo(tmp_path_factory.mktemp("exports"))
    pq.write_table(films(), path / "items.parquet")
    write_space(path, "minilm", without=(6,), title="Words (<b>M</b>)")
    write_tokenization(path, "rqvae", maps=True, order=1)
    write_tokenization(path, "old", seed=1, order=2)
    write_tokenization(path, "words", vectors=False, order=3)
    return path


def opened(**address: str) -> AppTest:
    """The page, as a link leads to it."""
    return run_without_fault(alone("map", **address))


def with_links(root: Path, **address: str) -> AppTest:
    """The same within the app, which links to other pages need, and what says that something of the address is wrong."""
    return run_without_fault(at_page(root, "map", **address))


def charts(page: AppTest) -> list:  # type: ignore[type-arg]
    return page.get("plotly_chart")


def pills(page: AppTest, key: str) -> Any:
    return next(group for group in page.get("button_group") if group.key == key)


def figures(page: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in charts(page)]


def carried(figure: dict) -> set[str]:
    """The points of a figure, by the ids that they carry."""
    return {
        one for trace in figure["data"] if trace.get("showlegend") is not False for one in trace.get("customdata", [])
    }


def test_every_space_is_in_the_one_list_or_said_to_have_no_map(shown: Path) -> None:
    page = opened()
    assert len(charts(page)) == 1
    assert page.selectbox(key="map_space").options == [
        "Alpha: items", "Beta: items", "Gamma: items", "Plain: items", "Words (<b>M</b>)", "RQVAE: latents", "RQVAE: codes",
    ]  # fmt: skip
    for needed in (
        "axes have no units",
        "trustworthiness 0.90",
        "Popular: items**: no map. ",
        "OLD: latents**: no map. This export is older",
        "WORDS: codes**: no map. Its codes have no vectors.",
        "Nothing is selected",
    ):
        assert needed in plain(page)
    run_without_fault(page.selectbox(key="map_space").set_value("codes.rqvae"))
    assert len(charts(page)) == 1 and page.query_params["space"] == "codes.rqvae"
    options = page.selectbox(key="map_second").options
    assert "RQVAE: codes" not in options and options[0] == "None"
    page.selectbox(key="map_space").set_value("beta")
    run_without_fault(page.selectbox(key="map_second").set_value("alpha"))
    assert len(charts(page)) == 2
    for column in ("none", "code.rqvae", "year"):
        run_without_fault(page.selectbox(key="map_colour").set_value(column))
        assert page.query_params["colour"] == column
    run_without_fault(pills(page, "map_scale").set_value("quantile"))
    assert page.query_params["scale"] == "quantile"
    assert figures(page)[0]["data"][0]["marker"]["colorbar"]["title"]["text"] == "Year (quantile)"


def test_a_trustworthiness_over_some_items_says_over_how_many(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for most, words in ((40, "around each one"), (30, "around each of 30 drawn at random")):
        monkeypatch.setattr(chart, "SAMPLE", most)
        (meaning,) = (
            caption.proto.help for caption in opened(space="alpha").caption if "trustworthiness" in caption.value
        )
        assert words in meaning


def test_pca_is_another_map_of_the_same_space(shown: Path) -> None:
    page = opened(space="alpha", projection="pca", beside="codes.rqvae")
    assert len(charts(page)) == 2
    assert "PCA of 40 vectors at length 1: the axes explain" in plain(page) and "trustworthiness" not in plain(page)
    assert re.search(r"PCA of \d+ vectors: the axes explain", plain(page))  # codes, which are compared as they are
    models = zoo.open_zoo("toys")
    place = spaces.mapped(models, "pca.alpha")
    assert place is not None and place.area == "pca.alpha" and spaces.mapped(models, "pca.nothing") is None
    points = spaces.points(models, place)
    half = np.flatnonzero(points.x > 0).tolist()
    assert chart.items_within(models, "pca.alpha~0_-99_99_99").tolist() == half
    assert chart.items_within(models, "alpha~0_-99_99_99").tolist() != half


def test_neighbours_are_of_the_space_itself_where_an_item_is_in_it(shown: Path) -> None:
    rows = toy_vectors(without=(6,)).astype(np.float64)
    cosine = rows @ rows[3]
    cosine[[3, 6]] = -9
    latents = np.load(shown / "identifiers" / "rqvae" / "latents.npy")
    apart = np.linalg.norm(latents - latents[3], axis=1)
    apart[3] = np.inf
    page = opened(item="toy-3", space="space.minilm", beside="latents.rqvae", top="none")
    assert "1 item of the catalogue not on the map" in plain(page)
    words_map, latents_map = figures(page)
    assert carried(words_map) == {f"toy-{item}" for item in range(40)} - {"toy-6"}
    for figure, near in ((words_map, np.argsort(-cosine, kind="stable")), (latents_map, np.argsort(apart))):
        (ringed,) = (trace for trace in figure["data"] if trace["name"] == "Neighbours")
        assert ringed["customdata"] == [f"toy-{item}" for item in near[:8]]
    page.query_params["item"] = "toy-6"
    words_map, latents_map = figures(run_without_fault(page))
    assert ["Neighbours" in [trace["name"] for trace in one["data"]] for one in (words_map, latents_map)] == [
        False,
        True,
    ]


def test_codes_on_a_map(root: Path, shown: Path) -> None:
    codes = toy_codes()
    address = {"code": "rqvae.1-2", "find": "Film 9", "top": "history", "h": "toy-5~toy-9", "item": "toy-3"}
    page = with_links(root, space="codes.rqvae", **address)
    assert not page.warning
    (figure,) = figures(page)
    assert carried(figure) == {f"{level}-{code}" for level in (1, 2) for code in range(5)}
    traces = {trace["name"]: trace for trace in figure["data"] if trace["mode"] != "lines"}
    assert traces["Chosen"]["customdata"] == ["1-2"]
    assert traces["Codes of the chosen item"]["customdata"] == [f"{level + 1}-{codes[3, level]}" for level in (0, 1)]
    assert set(traces["Found"]["customdata"]) == {f"1-{codes[9, 0]}", f"2-{codes[9, 1]}"}
    assert set(traces["History"]["customdata"]) == {f"1-{codes[5, 0]}", f"1-{codes[9, 0]}"}
    having = sorted(f"toy-{item}" for item in np.flatnonzero(codes[:, 0] == 2))
    assert sorted(page.dataframe[0].value["Item id"]) == having
    run_without_fault(page.button(key="map_code_select").click())
    assert page.query_params["area"] == "prefix.rqvae~2"
    run_without_fault(page.selectbox(key="map_by").set_value("cluster"))
    assert page.query_params["by"] == "cluster"
    run_without_fault(page.button(key="map_code_clear").click())
    assert "No code is chosen" in plain(page) and "code" not in page.query_params
    page.query_params["code"] = "rqvae.2-1"
    run_without_fault(run_without_fault(page).button(key="map_code_select").click())
    assert "so its meaning depends" in plain(page) and page.query_params["area"] == "prefix.rqvae~x-1"
    assert len(page.dataframe[1].value) == (codes[:, 1] == 1).sum()
    page.query_params["code"] = "rqvae.2-4"
    run_without_fault(page)
    assert "No item has this code" in plain(page) and page.button(key="map_code_select").disabled


def test_a_search_an_item_and_a_selection(shown: Path) -> None:
    page = opened()
    page.text_input(key="map_search").set_value("أفلام").run()
    assert page.query_params["find"] == "أفلام"
    run_without_fault(page.button(key="map_hit_4").click())
    assert page.query_params["item"] == "toy-4"
    x = pq.read_table(shown / "alpha" / "map.parquet")["x"].to_numpy()
    west, east = figures(page)[0]["layout"]["xaxis"]["range"]
    assert (west + east) / 2 == pytest.approx(x[4], abs=1e-4) and east - west < 0.3 * np.ptp(x)
    page.text_input(key="map_search").set_value("Horror").run()
    hits = [button.label for button in page.button if str(button.key).startswith("map_hit_")]
    assert len(hits) == 6 and all("Horror" in label for label in hits)  # a genre, named where no title says it
    assert "items ringed. Choose one of the first 6:" in plain(page)
    page.query_params.update(area="item.ids~toy-1~toy-2~toy-30", h="toy-22~toy-1")
    run_without_fault(run_without_fault(page).button(key="map_area_add").click())
    assert state_of(page).history == ("toy-22", "toy-1", "toy-2", "toy-30")
    run_without_fault(page.button(key="map_area_zoom").click())
    run_without_fault(page.button(key="map_area_clear").click())
    assert "Nothing is selected" in plain(page) and "area" not in page.query_params


def test_filters_show_items_with_the_values_and_a_selection_can_be_isolated(shown: Path) -> None:
    horror = {f"toy-{item}" for item, genres in enumerate(films()["genres"].to_pylist()) if "Horror" in (genres or "")}
    assert 0 < len(horror) < 40
    page = opened(only="genres~Horror", top="none")
    assert not state_of(page).problems
    faint, *others = figures(page)[0]["data"]
    assert faint["name"] == "Others" and "customdata" not in faint
    assert {item_id for trace in others for item_id in trace["customdata"]} == horror
    assert {trace["name"] for trace in others} == {"Horror"}  # in its colour, whatever else they are
    del page.query_params["only"]
    page.query_params.update(area="item.ids~toy-1~toy-2~toy-30", isolate="yes")
    assert carried(figures(run_without_fault(page))[0]) == {"toy-1", "toy-2", "toy-30"}


def test_bars_count_what_the_other_filters_and_the_selection_leave(
    shown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = zoo.open_zoo("toys")
    own: dict[str, str] = {}
    monkeypatch.setattr(filters.state, "get", lambda: state.State("toys", own=own))
    monkeypatch.setattr(filters.state, "choose", lambda **chosen: own.update(chosen))
    monkeypatch.setattr(filters, "selected", lambda models: ())
    place = spaces.able(models)["alpha"]
    page = chart.MapChoices(
        models, zoo.open_catalogue("toys"), (place,), None, "level", (), None, None, frozenset(), ()
    )

    def bars(page: chart.MapChoices) -> dict[tuple[str, str], tuple[int, int]]:
        attributes = filters.attribute_bars(page, spaces.attributes(models))
        return {(a["name"], v["value"]): (v["items"], v["of"]) for a in attributes for v in a["values"]}

    everything = bars(page)
    assert all(items == of for items, of in everything.values())
    (horror, _), years = everything["genres", "Horror"], [key for key in everything if key[0] == "year"]
    filters.act({"do": "filter", "name": "genres", "value": "Horror"})
    assert own["only"] == "genres~Horror"
    by_genre = map_colouring.colouring(models.items, "genres")
    coloured = filters.attribute_bars(dataclasses.replace(page, colours=by_genre), spaces.attributes(models))[0]
    assert [rest["value"] for rest in coloured["rest"]] == [g for g in by_genre.groups if g in ("Other", "No value")]
    filtered = bars(page)
    assert filtered["genres", "Horror"] == everything["genres", "Horror"]  # an attribute does not filter itself
    assert sum(filtered[year][0] for year in years) == horror < sum(filtered[year][1] for year in years)
    few = bars(dataclasses.replace(page, selection=(1, 2)))
    assert sum(few[year][0] for year in years) <= 2
    filters.act({"do": "filter", "name": "genres", "value": "Horror"})
    assert own["only"] is None
    for nonsense in ({"do": "filter", "name": "genres", "value": "<b>"}, {"do": "filter"}, {"do": "item", "id": 5}, {}):
        filters.act(nonsense)
    assert own == {"only": None}


def test_a_damaged_space_and_vectors_that_were_not_exported_do_not_take_the_others_along(
    root: Path, changed: Path
) -> None:
    folder = changed / "identifiers" / "rqvae"
    for file in ("latents.npy", "latents_map.parquet"):
        (folder / file).unlink()
    tokenizations.seal(folder, latents=None, latents_map=None)
    (changed / "spaces" / "minilm" / "map.parquet").write_bytes(b"PAR1")
    page = with_links(root, space="space.minilm")
    assert len(charts(page)) == 1 and len(page.warning) == 1
    assert page.selectbox(key="map_space").value == "alpha"
    assert "The vectors that it makes its codes of are too large to be part of an export." in plain(page)


def test_an_outline_selects_what_is_inside_on_its_map_alone(shown: Path) -> None:
    table, models = pq.read_table(shown / "alpha" / "map.parquet").to_pandas(), zoo.open_zoo("toys")
    inside = sorted(table[(table.x > 0) & (table.y > 0)]["item"])
    assert chart.items_within(models, "alpha~0_0_99_99").tolist() == inside
    codes = pq.read_table(shown / "identifiers" / "rqvae" / "codebooks_map.parquet").to_pandas()
    own = toy_codes()
    chosen = codes[(codes.x > 0) & (codes.y > 0)]
    wanted = {i for i in range(40) for row in chosen.itertuples() if own[i, row.level] == row.code}
    assert set(chart.items_within(models, "codes.rqvae~0_0_99_99")) == wanted
    page = opened(area="alpha~0_0_99_99", space="beta")
    assert sorted(page.dataframe[0].value["Item id"]) == sorted(f"toy-{item}" for item in inside)
    page.query_params.update(area="alpha~-99_-99_99_99", h="toy-1")
    run_without_fault(run_without_fault(page).button(key="map_area_add").click())
    assert len(state_of(page).history) == len(set(state_of(page).history)) == 21  # of 39 others no more at once


def test_a_selection_is_said_in_the_shortest_way_that_is_true(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = zoo.open_zoo("toys")
    said: list[str | None] = []
    kept: dict[str, object] = {}
    monkeypatch.setattr(chart.st, "session_state", kept)
    monkeypatch.setattr(chart.state, "choose", lambda **own: said.append(own["area"]))
    monkeypatch.setattr(chart.state, "get", lambda: state.State("toys"))
    places, box = spaces.able(models), [([-99.0, 99.0], [-99.0, 99.0])]
    everything = list(range(40))
    chart.draw_around(models, places["alpha"], box, everything)
    assert said[-1] is not None and said[-1].startswith("alpha~-99_-99_99_99") and chart.drawn_on("map_alpha")
    assert chart.items_within(models, said[-1]).tolist() == everything
    # of what is inside, some points were hidden
    chart.draw_around(models, places["alpha"], box, [3, 9])
    assert said[-1] == "item.ids~toy-3~toy-9" and chart.items_within(models, said[-1]).tolist() == [3, 9]
    codes = spaces.codes(models, places["codes.rqvae"])
    row = codes.rows["1-2"]
    chart.draw_around(models, places["codes.rqvae"], box, [row])
    assert chart.items_within(models, str(said[-1])).tolist() == np.flatnonzero(toy_codes()[:, 0] == 2).tolist()
    chart.draw_around(models, places["alpha"], box, [])
    assert said[-1] is None
    # too many to name: it is held without an address
    monkeypatch.setattr(chart.map_points, "LISTED", 1)
    chart.draw_around(models, places["alpha"], box, [3, 9])
    assert said[-1] is None and chart.selected(models) == (3, 9) and chart.is_held()


def test_everything_is_in_the_address_and_comes_back_from_it(root: Path, shown: Path) -> None:
    page = with_links(root, **GOOD["map"])
    assert not page.warning and state_of(page).own == GOOD["map"]
    assert page.selectbox(key="map_space").value == "codes.rqvae"
    assert page.selectbox(key="map_second").value == "latents.rqvae"
    assert page.text_input(key="map_search").value == "Film"
    layers = pills(page, "map_layers")
    assert layers.options == ["History"] and layers.value == []  # no model's space, so nothing comes next
    layers.set_value(["history"]).run()
    assert "top" not in page.query_params  # what was not offered stays as it was
    page.selectbox(key="map_second").set_value("alpha").run()
    assert pills(page, "map_layers").value == ["history", "next"]
    pills(page, "map_layers").set_value([]).run()
    assert page.query_params["top"] == "none"
    pills(page, "map_layers").set_value(["history", "next"]).run()
    assert "top" not in page.query_params
    run_without_fault(page.text_input(key="map_search").set_value("  "))
    assert "find" not in page.query_params


def test_without_any_map_the_page_says_why(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_zoo(tmp_path / "exports", tuple(toy for toy in TOYS if toy.name == "popular"))
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    page = with_links(root, space="alpha", area="alpha~0_0_1_1", code="x.1-1")
    assert "Nothing of this dataset has a map" in page.info[0].value
    assert any("Popular" in caption.value for caption in page.caption)
