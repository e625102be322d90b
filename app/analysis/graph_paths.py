"""Paths through people and items, and layers, of a model that learnt along a graph: in words and tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from app.analysis.cache import cached, of_model
from app.text import adding_up, listed, md
from engine.runtime import Zoo, judge
from engine.runtime.graph_paths import Branch, Float32, walked
from engine.writing import count

Titles = Mapping[int, str]
LISTED = 10
"""Items of the list whose ranks without a layer are shown."""
History = tuple[int, ...]
Ranks = dict[int | None, dict[int, int]]


def layer_names(layers: int) -> list[str]:
    """What walks of 0 … `layers` steps end in."""
    return [
        "own vectors",
        "its items",
        "their users",
        "items of these",
        *(f"{k} steps" for k in range(4, layers + 1)),
    ][: layers + 1]


def table(branches: Sequence[Branch], titles: Titles) -> pd.DataFrame:
    """Every path by itself: item of the history, people, where it ends, weight, what it adds (empty where the model's score is no
    sum over paths). Rows of one score add up to it."""
    rows: list[tuple[str, str, str, float | None, float | None]] = []
    for branch in branches:
        start = titles[branch.item]
        if branch.itself is not None:
            rows.append((start, "", start, branch.weight, branch.itself))
            rows.append((start, count(branch.people, "user"), "(these users)", None, branch.through_people))
        for step in branch.steps:
            rows.append((start, count(step.people, "user"), titles[step.item], step.weight, step.adds))
        if branch.others or branch.others_add:
            rows.append(
                (
                    start,
                    "",
                    f"({count(branch.others, 'other item')})" if branch.others else "(their items)",
                    None,
                    branch.others_add,
                )
            )
        if branch.deeper:
            rows.append((start, "", "(longer paths)", None, branch.deeper))
    return pd.DataFrame(rows, columns=["from", "through", "to", "weight", "adds"])


Say = Callable[[str, bool], str]
"""A title as it fits where a sentence stands; True: it is that of the item that the sentence is about."""


def in_markdown(title: str, about: bool) -> str:
    return f"**{md(title)}**" if about else md(title)


def sentence(branches: Sequence[Branch], item: int, titles: Titles, model: str, say: Say = in_markdown) -> str:
    """The path to the item that adds most, in words; where none adds anything (of two layers or fewer, or of a score that is no
    sum over paths), the one of most weight. model: what it is called, as it fits there."""
    aimed = say(titles[item], True)
    ways = [(branch, step) for branch in branches for step in branch.steps if step.item == item]
    parts = score_parts(branches, item)
    score = ""
    if parts is not None:
        rounded = adding_up([*parts.values()], 3)
        added = listed([f"{judge.signed(value, '+.3f')} {of}" for of, value in zip(parts, rounded, strict=True)])
        score = f" Its score, {judge.signed(sum(parts.values()), '.3f')}, is the sum of {added}."
    if not ways:
        return f"Nobody in the log has {aimed} together with an item that is read: no path of three steps leads there.{score}"
    # an item of the history is explained by the others, where they lead to it, not by the walk from it and back
    adding = any(step.adds for _, step in ways)
    best, step = max(ways, key=lambda way: (way[0].item != item, (way[1].adds or 0.0) if adding else way[1].weight))
    another = "from another item " * any(branch.item == item != best.item for branch, _ in ways)
    measure = "contribution" if adding else "weight"
    words = (
        f"The path {another}to {aimed} with the largest {measure}: {say(titles[best.item], False)} ← "
        f"{count(step.people, 'user')} in common → {say(titles[item], False)}."
    )
    if not score:
        return (
            f"{words} {model}'s layers are not linear, so its score is no sum over paths. Widths: weights of the paths."
        )
    return f"{words}{score}"


def score_parts(branches: Sequence[Branch], item: int) -> dict[str, float] | None:
    """What a score is the sum of, in words → what that adds; None where it is no sum over paths."""
    if any(branch.adds is None for branch in branches):
        return None
    steps = [step for branch in branches for step in branch.steps]
    to_it = sum(step.adds or 0.0 for step in steps if step.item == item)
    elsewhere = sum(step.adds or 0.0 for step in steps if step.item != item)
    parts = {
        "from the vectors of the history’s items": sum(branch.itself or 0.0 for branch in branches),
        "from those of their users": sum(branch.through_people or 0.0 for branch in branches),
        "from paths that end in it": to_it,
        "from paths that end in other items": elsewhere + sum(branch.others_add or 0.0 for branch in branches),
    }
    longer = sum(branch.deeper or 0.0 for branch in branches)
    return {**parts, "from longer paths": longer} if longer else parts


def phone(branches: Sequence[Branch], item: int, titles: Titles) -> str:
    """The strongest paths as a list, Markdown."""
    lines = []
    for path in strongest(branches, titles):
        end = f"**{md(path.end)}**" if path.item == item else md(path.end)
        lines.append(f"- {md(path.start)} ← {path.people} → {end}: {path.adds}")
    return "\n".join(lines)


class Path(NamedTuple):
    """One path in words, not escaped."""

    start: str
    people: str
    item: int
    """Where it ends."""
    end: str
    adds: str


def strongest(branches: Sequence[Branch], titles: Titles, most: int = 10) -> list[Path]:
    """The paths to other items that add most to a score or take most from it; where it is no sum over them, those that weigh
    most."""
    paths = [(branch, step) for branch in branches for step in branch.steps if step.item != branch.item]
    paths.sort(key=lambda path: -abs(path[1].weight if path[1].adds is None else path[1].adds))
    return [
        Path(
            titles[branch.item],
            count(step.people, "user"),
            step.item,
            titles[step.item],
            f"weight {step.weight:.4f}" if step.adds is None else judge.signed(step.adds),
        )
        for branch, step in paths[:most]
    ]


def key(sums: bool, opened: int, all_of_them: int) -> str:
    """What a tree of paths shows. sums: scores are sums over paths; opened: branches drawn, of `all_of_them` that are read."""
    note = "Users appear only as counts. "
    if sums:
        note += "Width: what a path adds to the score; brown paths lower it."
    else:
        note += "Width: the weight of a path."
    if opened < all_of_them:
        note += (
            f" Shown: the {opened} strongest items of the history, of {all_of_them} that are read; the table has all."
        )
    return note


def layers_table(by_layer: Float32) -> pd.DataFrame:
    """by_layer: as `Layers.by_layer` has it. One row per pair of layers, or per layer where each meets itself alone."""
    names = layer_names(len(by_layer) - 1)
    if by_layer.ndim == 1:
        rows = list(zip(range(len(names)), names, by_layer.tolist(), strict=True))
        return pd.DataFrame(rows, columns=["layer", "reaches", "adds"])
    return pd.DataFrame(
        [(k, names[k], layer, float(by_layer[k, layer])) for k, layer in np.ndindex(by_layer.shape)],
        columns=["layer of the history", "ends in", "layer of the item", "adds"],
    )


def layer_columns(by_layer: Float32) -> list[str]:
    """What the columns of `by_layer` are, of [layers + 1] one column."""
    return [f"layer {k}" for k in range(len(by_layer))] if by_layer.ndim == 2 else ["same layer"]


def layers_words(by_layer: Float32) -> tuple[str, str]:
    """(what meets what in a sum of `by_layer`, what leaving a layer out means), in words that end a sentence."""
    if by_layer.ndim == 1:
        return "one contribution per layer, of the history with the same layer of the item", "left out of the sum"
    return "one contribution per pair of layers, of the history and of the item", "left out of both averages"


def without_table(ranks: Mapping[int | None, Mapping[int, int]], shown: Sequence[int], titles: Titles) -> pd.DataFrame:
    """The list of all layers, and where its items stand where one is left out.

    ranks: layer left out (None: none) → item → rank.
    """
    columns: dict[str, list[object]] = {"item": [titles[item] for item in shown]}
    for layer, places in ranks.items():
        columns["all layers" if layer is None else f"without {layer}"] = [places[item] for item in shown]
    return pd.DataFrame(columns)


# --- asked of the model


def carriers(zoo: Zoo, names: Iterable[str] | None = None) -> list[str]:
    """Those of the models (None: of all) that carry a graph of people and items."""
    return [name for name in (zoo.bundles if names is None else names) if zoo.bundles[name].cannot("paths") is None]


class Layers(NamedTuple):
    by_layer: Float32
    """What each adds to the score of an item: [layers + 1, layers + 1], of `Paths.by_layer`, or [layers + 1], of
    `SideBySide.by_layer`."""
    items: list[int]
    """The first of the list, with all layers."""
    ranks: Ranks
    """Layer left out (None: none) → item → rank among what may be recommended."""


@cached(500, by=of_model)
def branches(zoo: Zoo, model: str, history: History, item: int) -> list[Branch]:
    """The paths from the history to an item. Raises SeqscopeError where the model carries no graph."""
    bundle = zoo.bundles[model]
    read = [history[place] for place in bundle.used(history)]
    return walked(bundle.graph, read, item) if bundle.paths is None else bundle.paths.branches(read, item)


@cached(500, by=of_model)
def layers(zoo: Zoo, model: str, history: History, item: int) -> Layers | None:
    """What each layer adds to an item's score, and what the list is without one; None where `Bundle.layers` is."""
    bundle = zoo.bundles[model]
    parts = bundle.layers
    if parts is None:
        return None
    read = [history[place] for place in bundle.used(history)]
    candidates = bundle.candidates(history)
    ranks: Ranks = {}
    items: list[int] = []
    for left_out in (None, *range(parts.layers + 1)):
        scores = np.where(candidates, parts.scores(read, left_out), -np.inf)
        order = np.argsort(-scores, kind="stable")
        if left_out is None:
            items = order[: min(LISTED, int(candidates.sum()))].tolist()
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(1, len(order) + 1)
        ranks[left_out] = {listed: int(places[listed]) for listed in items}
    return Layers(parts.by_layer(read, item), items, ranks)
