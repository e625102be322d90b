"""Graph: what its figures and tables say, and the page with models that carry a graph and that do not."""

import json
from pathlib import Path

import numpy as np
import pytest

from app.analysis import graph_paths, model_card
from app.figures import graph_paths as graph_figures
from engine.runtime import BundleError, Zoo
from engine.runtime.graph_paths import Branch, Step
from tests.app.conftest import Open
from tests.runtime.bundles import TOYS, make_zoo, seal, some_log, with_graph

ITEMS = 40
HISTORY = (1, 2, 3)
TITLES = {number: f"Item {number}" for number in range(ITEMS)}


@pytest.fixture(scope="module")
def carrying(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """alpha's score is a sum over paths, plain's one over layers, gamma is a bundle of before layers were told, beta has no
    graph."""
    root = tmp_path_factory.mktemp("graphs")
    path = make_zoo(root, (TOYS[0], TOYS[1], TOYS[2], TOYS[4]))
    with_graph(path / "alpha", some_log())
    with_graph(path / "gamma", some_log(), dim=None)
    with_graph(path / "plain", some_log(), dim=None, layers=2, layer_dim=2)
    return root


@pytest.fixture(scope="module")
def zoo(carrying: Path) -> Zoo:
    return Zoo.open(carrying / "toys")


def test_a_card_says_that_the_page_has_the_parts_of_a_score(zoo: Zoo) -> None:
    paths, parts = "paths through users and items (page Graph)", "exact parts of a score by layer (page Graph)"
    cards = {name: model_card.in_short(bundle) for name, bundle in zoo.bundles.items()}
    for name in ("alpha", "plain"):
        assert f"{paths}, {parts}" in cards[name]["Can show"] and "No exact parts of a score" not in cards[name]
    assert paths in cards["gamma"]["Can show"] and parts not in cards["gamma"]["Can show"]
    assert {"gamma", "beta"} == {name for name, card in cards.items() if "No exact parts of a score" in card}
    assert paths not in cards["beta"]["Can show"] and zoo.bundles["alpha"].cannot("contributions") is not None


@pytest.mark.parametrize(("model", "count"), [("alpha", 4), ("plain", 3)])
def test_a_list_without_a_layer_ranks_what_may_be_recommended(zoo: Zoo, model: str, count: int) -> None:
    layers = graph_paths.layers(zoo, model, HISTORY, 9)
    assert layers is not None and list(layers.ranks[None].values()) == list(range(1, 11))
    assert set(layers.items).isdisjoint(HISTORY)
    assert any(list(layers.ranks[layer].values()) != list(range(1, 11)) for layer in range(count))


def test_other_items_of_a_branch_are_counted() -> None:
    ends = [
        graph_paths.table([Branch(1, 0.5, 3, 1.0, 0.1, [], n, 0.2, 0.0)], {1: "a"})["to"].iloc[-1] for n in (0, 1, 2)
    ]
    assert ends == ["(their items)", "(1 other item)", "(2 other items)"]


def test_layers_side_by_side_add_up_to_the_score(zoo: Zoo) -> None:
    layers = graph_paths.layers(zoo, "plain", HISTORY, 9)
    assert layers is not None
    rows = graph_paths.layers_table(layers.by_layer)
    assert rows["layer"].tolist() == [0, 1, 2]
    assert rows["adds"].sum() == pytest.approx(float(zoo.bundles["plain"].scores(HISTORY)[9]), rel=1e-4)
    assert len(graph_figures.layers(layers.by_layer).data[0].z[0]) == 1


def test_layers_side_by_side_are_the_whole_score(tmp_path: Path) -> None:
    path = make_zoo(tmp_path, (TOYS[4],))
    with_graph(path / "plain", some_log(), dim=None, layers=2, layer_dim=2)
    index = np.load(path / "plain" / "index.npy")
    index[3, -1] = 1
    np.save(path / "plain" / "index.npy", index)
    seal(path / "plain")
    with pytest.raises(BundleError, match="biases"):
        _ = Zoo.open(path).bundles["plain"].layers
    shape = json.loads((path / "plain" / "manifest.json").read_text("utf-8"))["graph"]
    seal(path / "plain", graph=shape | {"layer_dim": 5})
    assert "3 layers of 5" in str(Zoo.open(path).refused)


@pytest.mark.parametrize(("model", "depth"), [("alpha", 1), ("plain", 2), ("alpha", 3)])
def test_the_tree_opens_layer_by_layer(zoo: Zoo, model: str, depth: int) -> None:
    branches = graph_paths.branches(zoo, model, HISTORY, 9)
    figure = graph_figures.tree(branches, 9, TITLES, "#009e73", depth)
    nodes = [trace for trace in figure.data if trace.mode == "markers+text" and trace.x]
    assert len(nodes) == depth + 1
    assert (TITLES[9] in nodes[-1].text) == (depth == 3)
    assert {item for _, item in nodes[1].customdata} <= set(HISTORY)  # what a click selects
    assert max(max(trace.x) for trace in figure.data if trace.mode == "lines") == depth
    assert depth < 3 or figure.layout.margin.r >= 6 * graph_figures.TITLE  # the last titles have their room
    assert "right" not in "".join(trace.textposition for trace in nodes[2:3])  # lines to many items begin on that side


@pytest.mark.parametrize("model", ["alpha", "gamma"])
def test_page(open_app: Open, carrying: Path, model: str) -> None:
    address = {"h": "toy-1~toy-2~toy-3", "model": model, "item": "toy-9", "layers": "2"}
    page = open_app(carrying, page="graph", ds="toys", **address)
    assert not page.error
    assert page.selectbox(key=f"graph_item_{model}").value == 9
    assert page.get_by_key("graph_layers").value == "2"
    assert ("What each layer adds" in [heading.value for heading in page.header]) == (model != "gamma")


def test_a_sentence_names_the_path_that_adds_most_and_a_walk_back_is_none(zoo: Zoo) -> None:
    branches = graph_paths.branches(zoo, "alpha", HISTORY, 9)
    ways = [
        (step.adds or 0.0, branch.item, step.people) for branch in branches for step in branch.steps if step.item == 9
    ]
    _, start, people = max(ways)
    words = graph_paths.sentence(branches, 9, TITLES, "Alpha")
    assert f"largest contribution: Item {start} ← {people} user" in words and "in common → Item 9." in words
    parts = graph_paths.score_parts(branches, 9)
    assert parts is not None and all(f"{value:+.3f} {of}" in words for of, value in parts.items())
    assert sum(parts.values()) == pytest.approx(sum(branch.adds or 0 for branch in branches))
    assert any(step.item == branch.item for branch in branches for step in branch.steps)
    shown = graph_paths.strongest(branches, TITLES, 100)
    assert shown and all(path.start != path.end for path in shown)


def test_where_paths_so_long_add_nothing_the_sentence_is_of_their_weight() -> None:
    # of one or two layers: walks of three steps reach the item, and are no part of its score
    branches = [
        Branch(start, 0.5, 3, 1.0, 0.1, [Step(9, people, weight, 0.0)], 0, 0.0, 0.0)
        for start, people, weight in ((1, 2, 0.1), (2, 5, 0.4))
    ]
    words = graph_paths.sentence(branches, 9, TITLES, "Alpha")
    assert "with the largest weight: Item 2 ← 5 users" in words and "0.000 from paths that end in it" in words
    nobody = [branch._replace(steps=[]) for branch in branches]
    assert "together with an item that is read: no path" in graph_paths.sentence(nobody, 9, TITLES, "Alpha")


@pytest.mark.parametrize("model", ["alpha", "gamma"])
def test_an_item_of_the_history_is_not_explained_by_itself(zoo: Zoo, model: str) -> None:
    item = next(
        branch.item
        for branch in graph_paths.branches(zoo, model, HISTORY, 9)
        if any(step.item in HISTORY and step.item != branch.item for step in branch.steps)
    )
    words = graph_paths.sentence(graph_paths.branches(zoo, model, HISTORY, item), item, TITLES, "A model")
    assert f": Item {item} ←" not in words and f"→ Item {item}." in words


def test_a_report_offers_the_graph_of_its_models(open_app: Open, carrying: Path) -> None:
    page = open_app(carrying, page="report", ds="toys", h="toy-1~toy-2~toy-3", m="alpha~beta", parts="graph")
    (frame,) = page.get("iframe")
    assert not page.exception and not page.error
    assert "Graph" in page.pills(key="report_parts").options and '<section id="graph">' in frame.proto.srcdoc


def test_the_page_says_where_no_model_carries_a_graph(open_app: Open) -> None:
    page = open_app(page="graph", ds="toys", h="toy-1")
    assert not page.exception and "LightGCN" in page.info[0].value
