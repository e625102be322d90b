"""The tree of paths that opens from a history, layer by layer (after figure 1 of NGCF's paper), and what each layer adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from app.text import count, label, short
from app.views.graph import Titles, layer_names
from engine.runtime.paths import Branch, Float32

HISTORY, QUIET, AGAINST = "#0072b2", "#8a9496", "#b35806"
ENDS = 12
"""Items at the end of the tree, over all branches."""
_LINE = 30  # pixels of a node
_TITLE = 26  # characters


def tree(branches: Sequence[Branch], item: int, titles: Titles, colour: str, depth: int) -> go.Figure:
    """History → its items → their people → items of these; the explained item in the model's `colour`. depth: layers, 1 to 3.

    Broad is what adds much to the score, brown what takes away from it; where a score is no sum over paths, what has much weight.
    """
    opened = [branch for branch in branches if branch.steps] or list(branches[:8])
    ends = _ends(opened, item) if depth >= 3 else []
    names, colours, x = ["this history"], [HISTORY], [0.001]
    for branch in opened:
        names.append(label(short(titles[branch.item], _TITLE)))
        colours.append(HISTORY)
        x.append(0.34 if depth > 1 else 0.999)
    if depth >= 2:
        for branch in opened:
            names.append(count(branch.people, "person", "people"))
            colours.append(QUIET)
            x.append(0.62 if depth > 2 else 0.999)
    for end in ends:
        names.append(label(short(titles[end], _TITLE)))
        colours.append(colour if end == item else QUIET)
        x.append(0.999)
    links: list[tuple[int, int, float, str]] = []
    for row, branch in enumerate(opened):
        at, people = 1 + row, 1 + len(opened) + row
        adds = branch.adds
        links.append((0, at, branch.weight if adds is None else adds, f"{branch.weight:.4f}"))
        if depth >= 2:
            through = sum(step.weight for step in branch.steps) if adds is None else adds - (branch.itself or 0.0)
            links.append((at, people, through, f"{branch.weight:.4f}"))
        for step in branch.steps if depth >= 3 else ():
            if step.item in ends:
                to = 1 + 2 * len(opened) + ends.index(step.item)
                links.append((people, to, step.weight if step.adds is None else step.adds, f"{step.weight:.4f}"))
    least = max((abs(value) for _, _, value, _ in links), default=1.0) / 200  # so that every path can be seen
    figure = go.Figure(
        go.Sankey(
            arrangement="snap",
            node={
                "label": names, "color": colours, "x": x, "y": _spread(x), "pad": 10, "thickness": 12, "line": {"width": 0},
                "hovertemplate": "%{label}<extra></extra>",
            },
            link={
                "source": [link[0] for link in links],
                "target": [link[1] for link in links],
                "value": [max(abs(link[2]), least) for link in links],
                "color": [_faint(AGAINST if value < 0 else colours[to]) for _, to, value, _ in links],
                "customdata": [f"{value:+.4f}, weight of the walk {weight}" for _, _, value, weight in links],
                "hovertemplate": "%{source.label} → %{target.label}<br>%{customdata}<extra></extra>",
            },
        )
    )  # fmt: skip
    figure.update_layout(
        height=max(260, 60 + _LINE * max(len(opened), len(ends))),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        font={"size": 12},
    )
    return figure


def layers(by_layer: Float32) -> go.Figure:
    """What layer k of the history (rows) adds with layer l of the item (columns). by_layer: [layers + 1, layers + 1]."""
    size = len(by_layer)
    names = [f"{k}: {name}" for k, name in enumerate(layer_names(size - 1))]
    most = float(np.abs(by_layer).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=by_layer.round(5), x=[f"layer {k}" for k in range(size)], y=names, zmin=-most, zmax=most,
            colorscale=[[0, AGAINST], [0.5, "rgba(138,148,150,0.12)"], [1, HISTORY]], showscale=False, xgap=2, ygap=2,
            text=[[f"{value:+.3f}" for value in row] for row in by_layer], texttemplate="%{text}",
            hovertemplate="history %{y}<br>item %{x}<br>adds %{z:+.4f}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False)
    figure.update_xaxes(side="top", showgrid=False)
    figure.update_layout(height=70 + 46 * size, margin={"l": 8, "r": 8, "t": 30, "b": 8})
    return figure


def _ends(branches: Sequence[Branch], item: int) -> list[int]:
    """The items that most is added by (or that weigh most), the explained one first."""
    total: dict[int, float] = {}
    for branch in branches:
        for step in branch.steps:
            total[step.item] = total.get(step.item, 0.0) + abs(step.weight if step.adds is None else step.adds)
    return sorted(total, key=lambda end: (end != item, -total[end]))[:ENDS]


def _spread(x: Sequence[float]) -> list[float]:
    """Heights of the nodes: those of one column evenly from top to bottom."""
    columns = {place: [node for node, other in enumerate(x) if other == place] for place in x}
    return [(columns[place].index(node) + 0.5) / len(columns[place]) for node, place in enumerate(x)]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.35)"
