"""Paths through people and items, and layers, as a report holds them: made of `graph_paths`, and made `Branch`es again, to be
drawn and told as the page Graph has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.analysis import graph_paths
from app.reports.document import Asked, Graph, Layers, Listing, PathBranch, PathEnd, Walks, WithoutLayer
from app.reports.lists import Numbers, explained, item, number
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from engine.runtime.graph_paths import Branch, Float32, Step


def graph(models: Zoo, names: Sequence[str], asked: Asked, events: Numbers, lists: Sequence[Listing]) -> Graph | None:
    """None where there is no item to explain."""
    at = explained(models, asked, lists)
    if at is None:
        return None
    walks = [_walks(models, name, events, at) for name in graph_paths.carriers(models, names)]
    return Graph(**item(models, at).model_dump(), models=walks)


def _walks(models: Zoo, model: str, events: Numbers, at: int) -> Walks:
    if not events:
        return Walks(model=model, cannot="There is no history that paths could begin at.")
    try:
        branches, layers = (
            graph_paths.branches(models, model, events, at),
            graph_paths.layers(models, model, events, at),
        )
    except SeqscopeError as reason:
        return Walks(model=model, cannot=str(reason))
    return Walks(
        model=model,
        branches=[_branch(models, one) for one in branches],
        layers=None if layers is None else _layers(models, layers),
    )


def _branch(models: Zoo, branch: Branch) -> PathBranch:
    return PathBranch(
        **item(models, branch.item).model_dump(),
        weight=number(branch.weight),
        people=branch.people,
        itself=_number(branch.itself),
        through_people=_number(branch.through_people),
        ends=[
            PathEnd(
                **item(models, step.item).model_dump(),
                people=step.people,
                weight=number(step.weight),
                adds=_number(step.adds),
            )
            for step in branch.steps
        ],
        others=branch.others,
        others_add=_number(branch.others_add),
        deeper=_number(branch.deeper),
    )


def _layers(models: Zoo, layers: graph_paths.Layers) -> Layers:
    cells = layers.by_layer.reshape(len(layers.by_layer), -1).tolist()
    places = list(layers.ranks.values())
    return Layers(
        adds=[[number(value) for value in row] for row in cells],
        items=[
            WithoutLayer(**item(models, at).model_dump(), ranks=[ranks[at] for ranks in places]) for at in layers.items
        ],
    )


def _number(value: float | None) -> float | None:
    return None if value is None else number(value)


class Drawn(NamedTuple):
    """What `app.analysis.graph_paths` and its figures take, with numbers of the report's own for items."""

    branches: list[Branch]
    item: int
    titles: dict[int, str]

    @property
    def sums(self) -> bool:
        """Whether the score is a sum over these paths."""
        return None not in [branch.adds for branch in self.branches]


def drawn(found: Graph, walks: Walks) -> Drawn:
    numbers: dict[str, int] = {}
    titles: dict[int, str] = {}

    def numbered(one: Graph | PathBranch | PathEnd) -> int:
        at = numbers.setdefault(one.item_id, len(numbers))
        titles[at] = one.title
        return at

    item = numbered(found)
    branches = [
        Branch(
            numbered(one), one.weight, one.people, one.itself, one.through_people,
            [Step(numbered(end), end.people, end.weight, end.adds) for end in one.ends],
            one.others, one.others_add, one.deeper,
        )
        for one in walks.branches
    ]  # fmt: skip
    return Drawn(branches, item, titles)


def by_layer(layers: Layers) -> Float32:
    """float32 [layers + 1, layers + 1], or [layers + 1]; as `graph_paths.Layers.by_layer`."""
    cells = np.array(layers.adds, np.float32)
    return cells[:, 0] if cells.shape[1] == 1 else cells
