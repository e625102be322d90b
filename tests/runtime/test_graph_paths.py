"""A score taken apart into paths is the score: against dense matrices, on a graph of six people and seven items."""

from collections.abc import Callable

import numpy as np
import pytest

from engine.data.ragged import Ragged
from engine.runtime.graph_paths import Branch, InteractionGraph, Paths, Step, walked

HAS = [[0, 1], [1, 2, 3], [0, 2], [3, 4], [1, 4, 5], [2]]
"""Of every person the items; nobody has item 6."""
ITEMS = 7
HISTORY = [4, 1, 4, 2]


@pytest.fixture(scope="module")
def graph() -> InteractionGraph:
    return InteractionGraph.of(Ragged.of(HAS), ITEMS)


def dense(history: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(normalised edges of the people, those of the history): [people, items], [items]"""
    has = np.zeros((len(HAS), ITEMS))
    for person, items in enumerate(HAS):
        has[person, items] = 1
    of_items = has.sum(0)
    edges = has / np.sqrt(np.outer(has.sum(1), np.where(of_items, of_items, 1)))
    mine = np.zeros(ITEMS)
    mine[history] = 1
    return edges, mine / np.sqrt(mine.sum() * np.maximum(of_items, 1))


def vectors(graph: InteractionGraph, layers: int) -> Paths:
    rng = np.random.default_rng(3)
    of_items, of_people = rng.normal(size=(ITEMS, 4)), rng.normal(size=(len(HAS), 4))
    return Paths(graph, of_items.astype(np.float32), of_people.astype(np.float32), layers)


def lightgcn(
    history: list[int], layers: int, of_items: np.ndarray, of_people: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(qᵏ, eᵏ of items), by dense matrices: [layers + 1, dim], [layers + 1, items, dim]"""
    edges, mine = dense(history)
    items, people, queries = [of_items], [of_people], [of_items[np.unique(history)].mean(0)]
    for _ in range(layers):
        queries.append(mine @ items[-1])
        items, people = [*items, edges.T @ people[-1]], [*people, edges @ items[-1]]
    return np.stack(queries), np.stack(items)


@pytest.mark.parametrize("layers", [1, 3])
def test_paths_add_up_to_the_score(graph: InteractionGraph, layers: int) -> None:
    paths = vectors(graph, layers)
    queries, items = lightgcn(HISTORY, layers, paths.items[0], paths.people[0])
    scores = items.mean(0) @ queries.mean(0)
    np.testing.assert_allclose(paths.scores(HISTORY), scores, rtol=1e-4, atol=1e-5)
    for item in range(ITEMS):
        branches = paths.branches(HISTORY, item, ends=2, opened=2)
        assert {branch.item for branch in branches} == {1, 2, 4}
        assert sum(branch.adds or 0 for branch in branches) == pytest.approx(scores[item], rel=1e-4, abs=1e-5)
        assert paths.by_layer(HISTORY, item).sum() == pytest.approx(scores[item], rel=1e-4, abs=1e-5)


def test_every_end_of_a_walk_adds_what_it_weighs_times_its_vector(graph: InteractionGraph) -> None:
    paths = vectors(graph, 3)
    edges, mine = dense(HISTORY)
    target = paths.items[:, 5].mean(0) / 4
    for branch in paths.branches(HISTORY, 5, ends=ITEMS):
        for step in branch.steps:
            weight = mine[branch.item] * (edges[:, branch.item] @ edges[:, step.item])
            assert step.weight == pytest.approx(weight)
            assert step.adds == pytest.approx(weight * paths.items[0, step.item] @ target, rel=1e-4, abs=1e-6)
            assert step.people == sum(branch.item in items and step.item in items for items in HAS)


def test_the_explained_item_stands_first_where_people_lead_to_it(graph: InteractionGraph) -> None:
    """i₄ → u₂ → i₂ → u₁: item 5 has one person, who also has 1 and 4 of the history."""
    made = [
        vectors(graph, layers).branches(HISTORY, 5) for layers in (2, 3)
    ]  # two layers add nothing along such a path
    assert {str(step.adds) for branch in made[0] for step in branch.steps} == {"0.0"}  # and no -0.0, which tables show
    for branches in (*made, walked(graph, HISTORY, 5)):
        first = {branch.item: branch.steps[0].item for branch in branches}
        assert first[1] == first[4] == 5 != first[2]
    assert {branch.item for branch in walked(graph, HISTORY, 5)[:2]} == {1, 4}


def test_an_end_that_is_named_is_named_in_all_branches_that_lead_there(graph: InteractionGraph) -> None:
    """Or what all paths to it add together could not be said."""
    for branches in (vectors(graph, 3).branches, lambda *which, **how: walked(graph, *which, **how)):
        for item in range(ITEMS):
            few, all_of_them = branches(HISTORY, item, ends=2), branches(HISTORY, item, ends=ITEMS)
            named = {step.item for branch in few for step in branch.steps}
            assert len(named) == 2
            for branch, whole in zip(few, all_of_them, strict=True):
                assert sorted(branch.steps) == sorted(step for step in whole.steps if step.item in named)


def test_what_leads_to_the_item_is_the_same_however_many_branches_are_opened(graph: InteractionGraph) -> None:
    def to_item(item: int, opened: int, branches: Callable[..., list[Branch]]) -> dict[int, list[Step]]:
        found = branches(HISTORY, item, opened=opened)
        return {branch.item: [step for step in branch.steps if step.item == item] for branch in found}

    for branches in (vectors(graph, 3).branches, lambda *which, **how: walked(graph, *which, **how)):
        for item in range(ITEMS):
            all_of_them, few = to_item(item, 3, branches), to_item(item, 1, branches)
            assert few.keys() == all_of_them.keys()
            for start, steps in few.items():
                for step, same in zip(steps, all_of_them[start], strict=True):
                    assert step[:2] == same[:2]
                    np.testing.assert_allclose(step[2:], same[2:], rtol=1e-6) if step.adds is not None else None
    reached = {branch.item: len(branch.steps) + branch.others for branch in walked(graph, HISTORY, 3)}
    assert reached == {branch.item: len(branch.steps) + branch.others for branch in walked(graph, HISTORY, 3, opened=0)}


def test_a_list_without_a_layer_is_the_mean_of_the_others(graph: InteractionGraph) -> None:
    paths = vectors(graph, 3)
    queries, items = lightgcn(HISTORY, 3, paths.items[0], paths.people[0])
    layers = [0, 1, 3]
    np.testing.assert_allclose(
        paths.scores(HISTORY, without=2), items[layers].mean(0) @ queries[layers].mean(0), rtol=1e-4, atol=1e-5
    )


def test_an_item_that_nobody_has_leads_nowhere(graph: InteractionGraph) -> None:
    branch = next(branch for branch in vectors(graph, 3).branches([6, 1], 5) if branch.item == 6)
    assert branch.people == branch.others == branch.through_people == 0 and not branch.steps
