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
_WIDTHS = (1.0, 1.6, 2.6, 4.2, 6.4, 9.0)  # of lines, by what they stand for
_LINE = 32  # pixels of a node
_TITLE = 26  # characters


def tree(branches: Sequence[Branch], item: int, titles: Titles, colour: str, depth: int) -> go.Figure:
    """History → its items → their people → items of these; the explained item in the model's `colour`. depth: layers, 1 to 3.

    Broad is what adds much to the score, brown what takes away from it; where a score is no sum over paths, what has much weight.
    """
    opened = [branch for branch in branches if branch.steps] or list(branches[:8])
    ends = _ends(opened, item) if depth >= 3 else []
    rows = max(len(opened), len(ends), 1)
    at = {"history": _even(len(opened), rows), "ends": _even(len(ends), rows)}
    lines: list[
        tuple[int, float, float, float]
    ] = []  # column where it begins, heights of both its ends, what it stands for
    for place, branch in zip(at["history"], opened, strict=True):
        adds = branch.adds
        lines.append((0, rows / 2, place, branch.weight if adds is None else adds))
        if depth >= 2:
            through = sum(step.weight for step in branch.steps) if adds is None else adds - (branch.itself or 0.0)
            lines.append((1, place, place, through))
        for step in branch.steps if depth >= 3 else ():
            if step.item in ends:
                to = at["ends"][ends.index(step.item)]
                lines.append((2, place, to, step.weight if step.adds is None else step.adds))
    figure = go.Figure()
    for column, begins, stops, value in lines:
        most = max(abs(other) for start, _, _, other in lines if start == column) or 1.0
        width = _WIDTHS[min(int(len(_WIDTHS) * np.sqrt(abs(value) / most)), len(_WIDTHS) - 1)]
        shade = AGAINST if value < 0 else HISTORY if column == 0 else QUIET
        if column == 2 and ends and stops == at["ends"][0] and ends[0] == item and value >= 0:
            shade = colour
        _line(figure, column, begins, stops, width, shade)
    _nodes(figure, 0, [rows / 2], ["this history"], [HISTORY], "middle left", [""])
    _nodes(figure, 1, at["history"], [titles[branch.item] for branch in opened], [HISTORY] * len(opened), "top right",
           [_told(branch.adds, branch.weight) for branch in opened])  # fmt: skip
    if depth >= 2:
        people = [count(branch.people, "person", "people") for branch in opened]
        _nodes(figure, 2, at["history"], people, [QUIET] * len(opened), "top right",
               [_told(branch.through_people, branch.weight) for branch in opened])  # fmt: skip
    colours = [colour if end == item else QUIET for end in ends]
    told = [_told(*_summed(opened, end)) for end in ends]
    _nodes(figure, 3, at["ends"], [titles[end] for end in ends], colours, "middle right", told)
    last = depth + (0.75 if depth >= 3 else 0.4)
    figure.update_xaxes(visible=False, range=[-0.4, last], fixedrange=True)
    figure.update_yaxes(visible=False, range=[rows, -0.6], fixedrange=True)
    figure.update_layout(height=90 + _LINE * rows, showlegend=False, margin={"l": 4, "r": 4, "t": 4, "b": 4})
    return figure


def layers(by_layer: Float32) -> go.Figure:
    """What layer k of the history (rows) adds with layer l of the item (columns). by_layer: [layers + 1, layers + 1]."""
    size = len(by_layer)
    names = [f"{k}: {name}" for k, name in enumerate(layer_names(size - 1))]
    most = float(np.abs(by_layer).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=by_layer.round(5), x=[f"layer {k}" for k in range(size)], y=names, zmin=-most, zmax=most,
            colorscale=[[0, AGAINST], [0.5, "#d5dbd9"], [1, HISTORY]], showscale=False, xgap=2, ygap=2,
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


def _summed(branches: Sequence[Branch], end: int) -> tuple[float | None, float]:
    """What all walks that end in an item add (None where scores are no sums over paths), and their weight."""
    steps = [step for branch in branches for step in branch.steps if step.item == end]
    adds = [step.adds for step in steps if step.adds is not None]
    return sum(adds) if adds else None, sum(step.weight for step in steps)


def _told(adds: float | None, weight: float) -> str:
    return f"<br>weight of the walks {weight:.4f}" + ("" if adds is None else f", adds {adds:+.4f}")


def _even(nodes: int, rows: int) -> list[float]:
    """Heights of the nodes of a column, evenly over `rows`."""
    return [(node + 0.5) * rows / nodes for node in range(nodes)]


def _line(figure: go.Figure, column: int, begins: float, stops: float, width: float, shade: str) -> None:
    along = np.linspace(0, 1, 15 if begins != stops else 2)
    bend = along**2 * (3 - 2 * along)
    figure.add_scatter(
        x=column + along, y=begins + bend * (stops - begins), mode="lines", hoverinfo="skip", opacity=0.5,
        line={"width": width, "color": shade},
    )  # fmt: skip


def _nodes(
    figure: go.Figure,
    column: int,
    heights: list[float],
    names: list[str],
    colours: list[str],
    place: str,
    told: list[str],
) -> None:
    figure.add_scatter(
        x=[column] * len(heights), y=heights, mode="markers+text", cliponaxis=False,
        marker={"size": 10, "color": colours, "line": {"width": 0}},
        text=[label(short(name, _TITLE)) for name in names], textposition=place, textfont={"size": 12},
        customdata=[label(name, 120) + more for name, more in zip(names, told, strict=True)],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
