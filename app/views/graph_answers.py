"""Paths and layers of a model that learnt along a graph, computed once for all who ask the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kept import Kept
from engine.runtime import Zoo
from engine.runtime.paths import Branch, Float32, walked

LISTED = 10
"""Items of the list whose ranks without a layer are shown."""
History = tuple[int, ...]
Ranks = dict[int | None, dict[int, int]]


class Layers(NamedTuple):
    by_layer: Float32
    """[layers + 1, layers + 1], of `Paths.by_layer`."""
    items: list[int]
    """The first of the list, with all layers."""
    ranks: Ranks
    """Layer left out (None: none) → item → rank among what may be recommended."""


_BRANCHES: Kept[list[Branch]] = Kept(500)
_LAYERS: Kept[Layers | None] = Kept(500)


def branches(zoo: Zoo, model: str, history: History, item: int) -> list[Branch]:
    """The paths from the history to an item. Raises SeqscopeError where the model carries no graph."""
    bundle = zoo.bundles[model]

    def make() -> list[Branch]:
        read = [history[place] for place in bundle.used(history)]
        return walked(bundle.graph, read, item) if bundle.paths is None else bundle.paths.branches(read, item)

    return _BRANCHES.get((model, bundle.digest, history, item), make)


def layers(zoo: Zoo, model: str, history: History, item: int) -> Layers | None:
    """What each layer adds to an item's score, and what the list is without one; None where layers are not added up."""
    bundle = zoo.bundles[model]
    return _LAYERS.get((model, bundle.digest, history, item), lambda: _layers(zoo, model, history, item))


def _layers(zoo: Zoo, model: str, history: History, item: int) -> Layers | None:
    bundle = zoo.bundles[model]
    paths = bundle.paths
    if paths is None:
        return None
    read = [history[place] for place in bundle.used(history)]
    candidates = bundle.candidates(history)
    ranks: Ranks = {}
    items: list[int] = []
    for left_out in (None, *range(paths.layers + 1)):
        scores = np.where(candidates, paths.scores(read, left_out), -np.inf)
        order = np.argsort(-scores, kind="stable")
        if left_out is None:
            items = order[: min(LISTED, int(candidates.sum()))].tolist()
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(1, len(order) + 1)
        ranks[left_out] = {listed: int(places[listed]) for listed in items}
    return Layers(paths.by_layer(read, item), items, ranks)
