"""Graph: what its figures and tables say, and the page with models that carry a graph and that do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.views import graph as views
from app.views import graph_answers, graph_figures
from engine.runtime import Zoo
from tests.runtime.bundles import TOYS, make_zoo, with_graph

ITEMS = 40
HISTORY = (1, 2, 3)


def log() -> list[list[int]]:
    rng = np.random.default_rng(2)
    return [sorted(rng.choice(ITEMS, 6, replace=False).tolist()) for _ in range(30)] + [[1, 2, 9]]


@pytest.fixture(scope="module")
def carrying(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """alpha's score is a sum over paths, plain's is not, beta has no graph."""
    root = tmp_path_factory.mktemp("graphs")
    path = make_zoo(root, (TOYS[0], TOYS[1], TOYS[4]))
    with_graph(path / "alpha", log())
    with_graph(path / "plain", log(), dim=None)
    return root


@pytest.fixture(scope="module")
def zoo(carrying: Path) -> Zoo:
    return Zoo.open(carrying / "toys")


def test_the_table_adds_up_to_the_score(zoo: Zoo) -> None:
    branches = graph_answers.branches(zoo, "alpha", HISTORY, 9)
    rows = views.table(branches, dict(enumerate(map(str, range(ITEMS)))))
    paths = zoo.bundles["alpha"].paths
    assert paths is not None and rows["adds"].sum() == pytest.approx(float(paths.scores(HISTORY)[9]), rel=1e-4)
    assert {"1", "2", "3"} == set(rows["from"])


def test_a_list_without_a_layer_ranks_what_may_be_recommended(zoo: Zoo) -> None:
    found = graph_answers.layers(zoo, "alpha", HISTORY, 9)
    assert found is not None and list(found.ranks[None].values()) == list(range(1, 11))
    assert set(found.items).isdisjoint(HISTORY)
    assert any(list(found.ranks[layer].values()) != list(range(1, 11)) for layer in range(4))
    assert graph_answers.layers(zoo, "plain", HISTORY, 9) is None


@pytest.mark.parametrize("model", ["alpha", "plain"])
@pytest.mark.parametrize(("depth", "columns"), [(1, 2), (2, 3), (3, 4)])
def test_the_tree_opens_layer_by_layer(zoo: Zoo, model: str, depth: int, columns: int) -> None:
    branches = graph_answers.branches(zoo, model, HISTORY, 9)
    figure = graph_figures.tree(branches, 9, dict(enumerate(map(str, range(ITEMS)))), "#009e73", depth)
    nodes = [trace for trace in figure.data if trace.mode == "markers+text" and trace.x]
    assert len(nodes) == columns
    assert ("9" in nodes[-1].text) == (depth == 3)
    assert max(max(trace.x) for trace in figure.data if trace.mode == "lines") == depth


@pytest.mark.parametrize("model", ["alpha", "plain"])
def test_page(open_app: Callable[..., AppTest], carrying: Path, model: str) -> None:
    page = open_app(carrying, ds="toys", h="toy-1~toy-2~toy-3")
    page.switch_page("screens/graph.py")
    page.query_params["model"], page.query_params["item"], page.query_params["layers"] = model, "toy-9", "2"
    page.run()
    assert not page.exception and not page.error
    assert page.selectbox(key=f"graph_item_{model}").value == 9
    assert page.get_by_key("graph_layers").value == "2"
    assert ("What each layer adds" in [heading.value for heading in page.subheader]) == (model == "alpha")


def test_the_page_says_where_no_model_carries_a_graph(open_app: Callable[..., AppTest]) -> None:
    page = open_app(ds="toys", h="toy-1")
    page.switch_page("screens/graph.py").run()
    assert not page.exception and "LightGCN" in page.info[0].value
