"""Paths through people and items in words and tables: pure functions of `engine.runtime.paths`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from app.text import count, md
from engine.runtime.paths import Branch, Float32

Titles = Mapping[int, str]


def layer_names(layers: int) -> list[str]:
    """What walks of 0 … `layers` steps end in."""
    return [
        "own vectors",
        "its items",
        "their people",
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
            rows.append(
                (start, count(branch.people, "person", "people"), "(these people)", None, branch.through_people)
            )
        for step in branch.steps:
            rows.append((start, count(step.people, "person", "people"), titles[step.item], step.weight, step.adds))
        if branch.others or branch.others_add:
            rows.append(
                (
                    start,
                    "",
                    f"({branch.others:,} other items)" if branch.others else "(their items)",
                    None,
                    branch.others_add,
                )
            )
        if branch.deeper:
            rows.append((start, "", "(longer paths)", None, branch.deeper))
    return pd.DataFrame(rows, columns=["from", "through", "to", "weight", "adds"])


def sentence(branches: Sequence[Branch], item: int, titles: Titles, title: str) -> str:
    """What leads to the item most, in words; Markdown."""
    aimed = md(titles[item])
    ways = [(branch, step) for branch in branches for step in branch.steps if step.item == item]
    if not ways:
        return f"Nobody in the log has **{aimed}** together with an item of this history: no path of three steps leads there."
    best, step = max(ways, key=lambda way: way[1].weight)
    people = count(step.people, "person", "people")
    words = f"The broadest way to **{aimed}**: {md(titles[best.item])} ← {people} who had both → {aimed}."
    adds = [branch.adds for branch in branches]
    if None in adds:
        return f"{words} {md(title)} bends what flows along its paths; its score is no sum of them. Widths: weights of walks."
    score = sum(part for part in adds if part is not None)
    share = sum(step.adds or 0.0 for _, step in ways)
    return f"{words} Paths that end in it add {share:.3g} to its score of {score:.3g}."


def phone(branches: Sequence[Branch], item: int, titles: Titles, most: int = 10) -> str:
    """The strongest paths as a list, Markdown."""
    paths = [(branch, step) for branch in branches for step in branch.steps]
    paths.sort(key=lambda path: -abs(path[1].weight if path[1].adds is None else path[1].adds))
    lines = []
    for branch, step in paths[:most]:
        end = f"**{md(titles[step.item])}**" if step.item == item else md(titles[step.item])
        people = count(step.people, "person", "people")
        adds = f"weight {step.weight:.4f}" if step.adds is None else f"{step.adds:+.3f}"
        lines.append(f"- {md(titles[branch.item])} ← {people} → {end}: {adds}")
    return "\n".join(lines)


def layers_table(by_layer: Float32) -> pd.DataFrame:
    """by_layer: [layers + 1, layers + 1], of `Paths.by_layer`. One row per pair of layers."""
    names = layer_names(len(by_layer) - 1)
    return pd.DataFrame(
        [(k, names[k], layer, float(by_layer[k, layer])) for k, layer in np.ndindex(by_layer.shape)],
        columns=["layer of the history", "ends in", "layer of the item", "adds"],
    )


def without_table(ranks: Mapping[int | None, Mapping[int, int]], shown: Sequence[int], titles: Titles) -> pd.DataFrame:
    """The list of all layers, and where its items stand where one is left out.

    ranks: layer left out (None: none) → item → rank.
    """
    found = pd.DataFrame({"item": [titles[item] for item in shown]})
    for layer, places in ranks.items():
        found["all layers" if layer is None else f"without {layer}"] = [places[item] for item in shown]
    return found
