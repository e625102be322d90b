"""Attention: the numbers behind its figures, its sentences, and the page with models of every shape."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.analysis import attention as views
from app.analysis import beam_search
from app.figures import attention as figures
from app.screens.attention import SECTIONS
from engine.runtime import AttentionMap, Zoo
from tests.app.conftest import HOSTILE, Open, alone, run_without_fault
from tests.runtime.bundles import TOYS, make_zoo, with_gates, with_matches


def seen(weights: np.ndarray, **changes: object) -> AttentionMap:
    """weights: [layers, heads, p, p]"""
    places = tuple(range(weights.shape[-1]))
    shape = {"causal": False, "next_token": False, "masked_diagonal": False, "pooled": False, **changes}
    return AttentionMap(weights.astype(np.float32), places, places, **shape)  # type: ignore[arg-type]


def causal(size: int, layers: int = 1, heads: int = 1) -> AttentionMap:
    rows = np.tril(np.ones((size, size)))
    rows /= rows.sum(1, keepdims=True)
    rows[np.triu_indices(size, 1)] = np.nan
    return seen(np.broadcast_to(rows, (layers, heads, size, size)).copy(), causal=True)


def called(*titles: str) -> views.Names:
    return views.names(list(range(len(titles))), list(range(len(titles))), titles)


def test_the_strongest_are_kept_in_the_order_of_time_and_titles_have_the_room_there_is() -> None:
    names = called("Indiana Jones and the Temple of Doom (1984)", "Alien (1979)", "Alien (1979)")
    ticks = figures.ticks(names.numbers, names.titles, 36)
    assert ticks == ["1 · Indiana Jones and the Temple of Doom", "2 · Alien (1979)", "3 · Alien (1979)"]
    shown, _ = views.strongest(np.array([0.8, 0.1, 0.1]), names)
    alone, beside, narrow = (
        figures.bars(shown, "#000", 0.5, *options).layout.yaxis.ticktext[0] for options in ((), ([shown],), ([], True))
    )
    assert alone.endswith("(1984)") and beside.endswith("Doom") and narrow.endswith("…")
    weights = np.arange(1.0, 31.0) / np.arange(1.0, 31.0).sum()
    shown, whole = views.strongest(weights, called(*map(str, range(30))), 5)
    assert len(whole) == 30
    assert shown["weight"].sum() == pytest.approx(1)
    assert shown["title"].iloc[0] == "the other 25 positions"
    assert list(shown["position"])[1:] == ["26", "27", "28", "29", "30"]


def test_the_line_of_an_even_share_pauses_where_a_number_is_written() -> None:
    shown = pd.DataFrame({"position": ["1", "2", "3"], "title": list("abc"), "weight": [0.5, 0.3, 0.2]})
    (line,) = figures.bars(shown, "#000", 1 / 3, narrow=True).layout.shapes
    drawn = [tuple(float(end.partition(",")[2]) for end in part.split("L")) for part in line.path.split("M")[1:]]
    through = [row for row in range(3) if any(begins < row < ends for begins, ends in drawn)]
    assert through == [0]  # the number of the longest bar is beyond it, and the others' are on it


@pytest.mark.parametrize(
    ("weights", "even"),
    [([0.24, 0.26, 0.25, 0.25], True), ([0.2, 0.368, 0.126, 0.306], False), ([0.0, 0.0, 1.0], False)],
)
def test_weights_that_differ_by_a_factor_are_not_called_even(weights: list[float], even: bool) -> None:
    """The largest was below one and a half even shares in all but the last."""
    names = called(*"abcd"[: len(weights)])
    assert ("almost evenly" in views.sentence("M", np.array(weights), names, False)) == even
    assert ("almost evenly" in beam_search.sentence("M", "z", np.array([weights]), names)) == even


def test_next_to_nothing_is_not_called_nothing_nor_nearly_all_of_it_all() -> None:
    weights, names = np.array([0.997, 0.003]), called("a", "b")
    for words in (views.sentence("M", weights, names, False), beam_search.sentence("M", "z", weights[None], names)):
        assert "(>99% of" in words and "(<1%)" in words
    assert "<1% of the weight lies on earlier ones" in views.sums(np.array([[1, np.nan], [0.003, 0.997]]), 1)
    matches = np.array([[0.0, 0.003], [0.997, 0.0]])
    assert "keep, >99% comes from" in views.row_words("M", views.best_rows([matches, matches[1:]]), names)


@pytest.mark.parametrize(
    ("weights", "latest"),
    [
        ([0.2, 0.8], "the latest item 80%"),
        ([0.2, 0.3, 0.5], "the latest two items 80%"),
        ([0.3] * 4, "three items about"),
    ],
)
def test_the_mean_over_users_names_as_many_latest_items_as_it_sums(weights: list[float], latest: str) -> None:
    size = len(weights)  # the oldest position stands before the items that are counted
    back = (9, *range(size - 1, 0, -1))
    profile = views.Profile(5, 5, back, np.array(weights)[None, None], np.zeros((1, size, size)), np.full(size, 0.25))
    assert f"gives {latest}" in views.distance_words(profile, "M").replace("the latest three", "three")


def test_hostile_titles_are_text_in_sentences_and_figures() -> None:
    names, weights = called(*HOSTILE), np.linspace(0.9, 0.1, len(HOSTILE))
    for title in HOSTILE:
        assert not re.search(r"(?<!\\)[<$]", views.sentence(title, np.array([0.9, 0.1]), called(title, "b"), False))
    bars = figures.bars(views.strongest(weights, names)[0], "#000", 0.5)
    for figure in (bars, figures.heatmap(np.eye(len(HOSTILE)), names, 1.0, "weight")):
        assert "<script" not in figure.to_json() and "$\\\\frac" not in figure.to_json()


def test_blank_cells_are_not_zero() -> None:
    attention = causal(3)
    for view in ("mean", "head", "rollout"):
        weights = views.matrix(attention, view, 0, 0)  # type: ignore[arg-type]
        assert np.isnan(weights[np.triu_indices(3, 1)]).all()
        assert np.nansum(weights, axis=1) == pytest.approx(1, abs=1e-6)
    table = views.wide(views.matrix(attention, "mean", 0, 0), called("a", "b", "c"))
    assert list(table.columns) == ["position", "title", "→ 1", "→ 2", "→ 3"]
    assert table["→ 3"].isna().tolist() == [True, True, False]


def test_sums_are_measured_what_is_outside_is_told_and_scales() -> None:
    weights = views.matrix(causal(4), "mean", 0, 0)
    assert "sums to 100%" in views.sums(weights, 4)
    assert "latest 2 of 4 positions; 58% of the weight" in views.sums(weights, 2)  # (2/3 + 2/4) / 2
    assert "drops what a position gives to itself" in views.sums(np.array([[np.nan, 0.5], [0.9, np.nan]]), 2)
    weights = np.array([[0.2, np.nan], [0.3, 0.1]])
    assert views.scaled(weights, "fit")[1] == pytest.approx(0.3)
    assert views.scaled(weights, "unit")[1] == 1
    rows, top = views.scaled(weights, "rows")
    assert top == 1 and np.nanmax(rows, axis=1) == pytest.approx([1, 1])
    assert np.isnan(rows[0, 1])


def test_heads_by_spread_and_distance_and_agreement_is_spearmans() -> None:
    table = views.by_head(causal(4, 2, 3))
    assert len(table) == 6
    assert table["spread"].to_numpy() == pytest.approx(1, abs=1e-4)
    assert table["last"].to_numpy() == pytest.approx(2, abs=1e-4)
    sharp = views.by_head(seen(np.eye(3)[None, None]))
    assert sharp["entropy"].iloc[0] == 0 and sharp["distance"].iloc[0] == 0
    # an item is lowered by what is looked at most, and raised by what is looked at next
    table = pd.DataFrame({"weight": [0.1, 0.2, 0.7], "rank": 10.0, "rank_without": [10.0, 20.0, 3.0]})
    assert views.agreement(table) == (pytest.approx(1), 3)
    assert "**+1.00**, n = 3" in views.agreement_words(table)
    assert "too few" in views.agreement_words(table.head(2))
    assert "cannot be compared" in views.agreement_words(table.assign(rank_without=5.0))


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo.open(make_zoo(tmp_path_factory.mktemp("exports")))


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma"])
def test_the_mean_over_people_is_that_of_each(zoo: Zoo, name: str) -> None:
    bundle = zoo.bundles[name]
    found = views.measure(zoo, bundle)
    assert found is not None
    size = len(found.back)
    token = bundle.manifest.attention.next_token  # type: ignore[union-attr]
    assert found.back[-1] == (0 if token else 1)
    histories = [
        h for h in zoo.users["history"].to_pylist() if min(len(h), bundle.manifest.attention.window) + token >= size
    ]  # type: ignore[union-attr]
    assert found.people == len(histories)
    expected = np.mean(
        [np.nan_to_num(bundle.attention(h).weights)[..., -size:, -size:].mean(1) for h in histories], axis=0
    )
    assert np.nan_to_num(found.rows) == pytest.approx(expected, abs=1e-5)
    if not bundle.manifest.attention.pooled:  # type: ignore[union-attr]
        assert found.last.mean(1) == pytest.approx(expected[:, -1], abs=1e-5)
    assert len(views.distances(found)) == 2 * size and figures.by_position(found).data
    assert views.measure(zoo, zoo.bundles["plain"]) is None, "which has no attention"


def test_effects_beside_attention(zoo: Zoo) -> None:
    history = [1, 2, 3, 4, 5]
    bundle = zoo.bundles["gamma"]  # attends to the latest 3 of the 5 it reads
    table = views.beside(bundle.attention(history), bundle.leave_one_out(history, 9), zoo.titles, history)
    assert table["weight"].isna().tolist() == [True, True, False, False, False]
    assert views.agreement(table)[1] == 3
    _, ranks, probabilities = figures.effects(table, "#000").data
    without = np.array(ranks.base) + np.array(ranks.x)  # bars begin at the rank with all events, on a log scale
    assert 10**without == pytest.approx(table["rank_without"].to_numpy())
    assert list(probabilities.x) == table["log_probability"].tolist()
    stacked = figures.effects(table, "#000", narrow=True).layout
    assert stacked.yaxis.domain[0] > stacked.yaxis2.domain[1] > stacked.yaxis3.domain[1]
    assert all(axis.ticktext == stacked.yaxis.ticktext for axis in (stacked.yaxis2, stacked.yaxis3))
    alone = views.beside(None, zoo.bundles["plain"].leave_one_out(history, 9), zoo.titles, history)
    assert len(figures.effects(alone, "#000").data) == 2


def test_what_does_the_most_costs_the_most_places_and_gates_in_words() -> None:
    """Its score may say the opposite."""
    table = pd.DataFrame(
        {
            "position": ["1", "2", "3"], "title": ["Alien", "Brazil", "Clue"], "weight": np.nan, "rank": 3.0,
            "rank_without": [41.0, 2.0, 3.0], "log_probability": [-0.1, 0.2, 0.0], "score": [-2.0, 5.0, 0.0],
        }
    )  # fmt: skip
    text = views.effect_words(table, "Dune")
    assert "Alien** raises **Dune** the most" in text and "3rd → 41st" in text
    assert "Brazil** lowers it" in text and "3rd → 2nd" in text
    assert "stays 3rd" in views.effect_words(table.assign(rank_without=3.0), "Dune")
    # a chain reads the event, too, and may know of no way from it to the item
    assert "neither its rank nor its score" in views.effect_words(table.assign(rank_without=3.0, score=0.0), "Dune")
    names = called("Alien", "Brazil", "Clue")
    words = views.gate_words("HGN", np.array([0.2, 0.9, 0.5]), names)
    assert "furthest open for **Brazil** (0.90)" in words and "least for **Alien** (0.20)" in words
    assert "about equally open" in views.gate_words("HGN", np.array([0.997, 0.999, 0.998]), names)
    assert "**Alien** (0.90)" in views.gate_words("HGN", np.array([0.9]), called("Alien"))


def test_a_large_map_stays_small_for_the_browser() -> None:
    names = called(*[f"Title {i}" for i in range(200)])
    fig = figures.heatmap(views.matrix(causal(200), "mean", 0, 0), names, 1.0, "weight")
    assert len(fig.to_json()) < 1_000_000 and np.asarray(fig.data[0].z).shape == (200, 200)
    few = called(*[f"Title {i}" for i in range(40)])
    drawn = (figures.heatmap(np.eye(40), few, 1.0, "weight", narrow) for narrow in (False, True))
    assert [len(fig.layout.xaxis.tickvals) for fig in drawn] == [20, 8], "numbers that have room"
    last = views.names(list(range(160, 200)), list(range(40)), few.titles)
    assert len(figures.heatmap(np.eye(40), last, 1.0, "weight", True).layout.xaxis.tickvals) == 4, "of three digits"


@pytest.mark.parametrize(("layers", "heads"), [(5, 1), (2, 12)])
def test_small_maps_share_one_scale(layers: int, heads: int) -> None:
    fig = figures.small_maps(causal(6, layers, heads).weights, 1.0)
    assert len(fig.data) == layers * heads
    assert {trace.coloraxis for trace in fig.data} == {"coloraxis"}
    axes = [axis for name, axis in fig.to_dict()["layout"].items() if name.startswith("yaxis")]
    assert len(axes) >= layers * heads
    assert {axis["constraintoward"] for axis in axes[: layers * heads]} == {"top"}  # a small map hangs below its title


# --- the page


@pytest.fixture
def page(models: Zoo) -> AppTest:
    return alone("attention", ds="toys")


@pytest.mark.parametrize("model", ["gamma", "popular"])
def test_the_page_with_every_model(page: AppTest, model: str) -> None:
    page.query_params["model"] = model
    able = model == "gamma"
    for section in SECTIONS if able else ("effects",):
        page.query_params["section"] = section
        run_without_fault(page)
        assert len(page.tabs) == (len(SECTIONS) if able else 1)
        assert page.get("plotly_chart")
    assert able or any("has no attention to show" in info.value for info in page.info)


def test_gates_are_shown_in_place_of_attention(open_changed: Open) -> None:
    plain = next(toy for toy in TOYS if toy.name == "plain")
    address = {"model": "plain", "h": "toy-1~toy-2~toy-30~toy-4"}
    page = open_changed("attention", lambda path: with_gates(path / "plain", plain), **address)
    assert not page.info
    assert [tab.label for tab in page.tabs] == ["Gates", SECTIONS["effects"]]
    (chart,) = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    assert chart["data"][0]["text"] == ["0.017", "0.250", "0.033"]
    assert chart["layout"]["xaxis"]["range"][1] > 1 and "even share" not in json.dumps(chart)
    assert any("Toy 30" in text.value and "0.25" in text.value for text in page.markdown)


def test_filters_are_shown_in_place_of_attention(open_changed: Open) -> None:
    plain = next(toy for toy in TOYS if toy.name == "plain")
    filters = [[0.1, 0.2, -0.9], [0.3, 0.5, 0.4]]
    address = {"model": "plain", "h": "toy-1~toy-2~toy-30~toy-4"}
    page = open_changed("attention", lambda path: with_matches(path / "plain", plain, filters=filters), **address)
    assert not page.info
    assert [tab.label for tab in page.tabs] == ["Filters", SECTIONS["effects"]]
    assert any("Toy 4" in text.value and "−0.90 in filter 1" in text.value for text in page.markdown)
    assert any("filters" in text.value and "100% comes from **Toy 30" in text.value for text in page.markdown)
    shares = json.loads(page.get("plotly_chart")[1].proto.spec)["data"][0]
    assert shares["y"] == [0, 1], "of a row of two items there is one, which ends with the latest"
    page.query_params["h"] = "toy-1~toy-2"  # fewer than the filters weigh: the latest places are theirs
    run_without_fault(page)
    assert any("Toy 2" in text.value and "−0.90 in filter 1" in text.value for text in page.markdown)


def test_without_a_history_one_action_is_offered(page: AppTest) -> None:
    page.query_params.update(h="toy-1", b="", k="7", m="beta")
    assert any("No history yet" in info.value for info in run_without_fault(page).info)
    (example,) = [button for button in page.button if button.label == "Load an example"]
    assert run_without_fault(example.click()).get("plotly_chart")
    others = {name: page.query_params[name] for name in ("h", "k", "m")}
    assert page.query_params["b"] and others == {"h": "toy-1", "k": "7", "m": "beta"}


def test_a_second_model_or_both_histories_of_a_what_if_stand_beside_the_first(page: AppTest) -> None:
    page.query_params.update(model="alpha", b="toy-2~toy-1")
    run_without_fault(page)
    assert [heading.value[0] for heading in page.header] == ["A", "B"] and len(page.get("plotly_chart")) == 2
    run_without_fault(page.selectbox(key="attention_beside_alpha").set_value("gamma"))
    charts = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]
    assert page.query_params["beside"] == "gamma" and len(charts) == 2
    first, second = (chart["layout"] for chart in charts)
    assert first["xaxis"]["range"] == second["xaxis"]["range"]  # bars of one length are of one weight
    assert first["margin"]["l"] == second["margin"]["l"]
    assert first["xaxis"]["range"][1] > max(
        float(text.rstrip("%")) / 100 for chart in charts for text in chart["data"][0]["text"]
    )
    page.selectbox(key="attention_beside_alpha").set_value("none").run()
    assert len(page.get("plotly_chart")) == 1


def test_choices_go_into_the_address(page: AppTest) -> None:
    page.query_params["section"] = "positions"
    page.run()
    page.get_by_key("attention_view").set_value("head").run()
    page.get_by_key("attention_layer").set_value("1")
    page.get_by_key("attention_head").set_value("2")
    page.get_by_key("attention_scale").set_value("rows")
    page.slider[0].set_value(3)
    page.selectbox(key="attention_item_alpha").select_index(4)
    page.run()
    chosen = page.selectbox(key="attention_item_alpha").value
    names = ("view", "layer", "head", "scale", "latest", "item")
    expected = ["head", "1", "2", "rows", "3", f"toy-{chosen}"]
    assert [page.query_params[name] for name in names] == expected
    run_without_fault(page.get_by_key("attention_model_toys").set_value("beta"))  # other layers; the item stays
    assert "layer" not in page.query_params and "head" not in page.query_params
    assert (page.query_params["model"], page.query_params["item"]) == ("beta", f"toy-{chosen}")
    assert page.selectbox(key="attention_item_beta").value == chosen
    page.query_params.update(model="alpha", h="toy-1~toy-2~toy-3", latest="150")  # a link made with a longer history
    assert run_without_fault(page).slider[0].value == 3


def test_any_item_can_be_explained(models: Zoo, page: AppTest) -> None:
    page.query_params.update(u="u3", model="popular")
    page.run()
    before, history = page.selectbox(key="attention_item_popular"), models.users["history"][3].as_py()
    truth = models.titles[models.users["target"][3].as_py()].split(" – ")[0]
    assert before.options[0].startswith("1. ")
    assert [truth in option for option in before.options if "the held-out item" in option] == [True]
    page.text_input(key="attention_search").set_value(models.titles[history[0]]).run()
    run_without_fault(page.button(key=f"attention_pick_{history[0]}").click())  # which no model would recommend
    now = page.selectbox(key="attention_item_popular")
    assert now.value == history[0] and "in the history" in now.options[-1]
    assert page.query_params["item"] == models.item_ids[history[0]]
    assert page.text_input(key="attention_search").value == ""
