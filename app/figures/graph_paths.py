"""The tree of paths that opens from a history, layer by layer (after figure 1 of NGCF's paper), and what each layer adds."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from app.analysis.graph_paths import Titles, layer_columns, layer_names
from app.figures.style import AGAINST, QUIET, WIDTHS, bend, signed_scale
from app.styles import PALETTE
from app.text import label, short_title
from engine.runtime import judge
from engine.runtime.graph_paths import ENDS, OPENED, Branch, Float32
from engine.writing import count

HISTORY = PALETTE["blue"].colour
TITLE = 36
"""Characters of a node's name that have room."""


class Line(NamedTuple):
    column: int
    """Where it begins; it ends in the next one."""
    begins: float
    stops: float
    """Heights of both ends."""
    width: float
    shade: str


class Node(NamedTuple):
    column: int
    """0: the history, 1: its items, 2: their people, 3: items of these."""
    height: float
    """From the top, in rows."""
    name: str
    """Not escaped."""
    shade: str
    more: str
    """What is said to who points at it."""
    item: int | None = None
    """Its number, of a node that is an item."""


class PathTree(NamedTuple):
    rows: int
    lines: list[Line]
    nodes: list[Node]


def tree_layout(branches: Sequence[Branch], item: int, titles: Titles, colour: str, depth: int = 3) -> PathTree:
    """History → its items → their people → items of these; the explained item in the model's `colour`. depth: layers, 1 to 3.

    Broad is what adds much to the score, brown what takes away from it; where a score is no sum over paths, what has much weight.
    """
    opened = opened_branches(branches)
    ends = _ends(opened, item) if depth >= 3 else []
    rows = max(len(opened), len(ends), 1)
    at, at_ends = _even(len(opened), rows), _even(len(ends), rows)
    values: list[tuple[int, float, float, float]] = []  # column, heights of both ends, what a line stands for
    for place, branch in zip(at, opened, strict=True):
        adds = branch.adds
        values.append((0, rows / 2, place, branch.weight if adds is None else adds))
        if depth >= 2:
            through = sum(step.weight for step in branch.steps) if adds is None else adds - (branch.itself or 0.0)
            values.append((1, place, place, through))
        for step in branch.steps if depth >= 3 else ():
            if step.item in ends:
                to = at_ends[ends.index(step.item)]
                values.append((2, place, to, step.weight if step.adds is None else step.adds))
    lines = []
    for column, begins, stops, value in values:
        most = max(abs(other) for start, _, _, other in values if start == column) or 1.0
        width = WIDTHS[min(int(len(WIDTHS) * math.sqrt(abs(value) / most)), len(WIDTHS) - 1)]
        shade = AGAINST if value < 0 else HISTORY if column == 0 else QUIET
        if column == 2 and ends and stops == at_ends[0] and ends[0] == item and value >= 0:
            shade = colour
        lines.append(Line(column, begins, stops, width, shade))
    nodes = [Node(0, rows / 2, "this history", HISTORY, "")]
    for place, branch in zip(at, opened, strict=True):
        nodes.append(Node(1, place, titles[branch.item], HISTORY, _more(branch.adds, branch.weight), branch.item))
        if depth >= 2:
            people = count(branch.people, "user")
            nodes.append(Node(2, place, people, QUIET, _more(branch.through_people, branch.weight)))
    for place, end in zip(at_ends, ends, strict=True):
        shade = colour if end == item else QUIET
        nodes.append(Node(3, place, titles[end], shade, _more(*_summed(opened, end)), end))
    return PathTree(rows, lines, nodes)


def opened_branches(branches: Sequence[Branch]) -> list[Branch]:
    """Those that the tree has: the strongest come first."""
    return list(branches[:OPENED])


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


def _more(adds: float | None, weight: float) -> str:
    return f"weight of the walks {weight:.4f}" + ("" if adds is None else f", adds {judge.signed(adds)}")


def _even(nodes: int, rows: int) -> list[float]:
    """Heights of the nodes of a column, evenly over `rows`."""
    return [(node + 0.5) * rows / nodes for node in range(nodes)]


_LINE = 32  # pixels of a node
# of a column's names: beside their nodes, where no lines are
_PLACES = ("middle left", "top right", "bottom left", "middle right")
# by depth: names of items have room to the right
_COLUMNS = {1: (0.0, 1.0), 2: (0.0, 1.0, 2.0), 3: (0.0, 0.45, 2.1, 3.0)}
_LEFT, _NAMED = 80, 220  # pixels that the names of the outer columns need, however narrow the page


def tree(branches: Sequence[Branch], item: int, titles: Titles, colour: str, depth: int) -> go.Figure:
    """`tree_layout`, for Plotly."""
    layout = tree_layout(branches, item, titles, colour, depth)
    figure = go.Figure()
    for line in layout.lines:
        _line(figure, line, _COLUMNS[depth])
    for column, nodes in groupby(sorted(layout.nodes, key=lambda node: node.column), lambda node: node.column):
        _nodes(figure, column, list(nodes), _COLUMNS[depth][column])
    figure.update_xaxes(visible=False, range=[0, depth], fixedrange=True)
    figure.update_yaxes(visible=False, range=[layout.rows, -0.6], fixedrange=True)
    margin = {"l": _LEFT, "r": _LEFT if depth == 2 else _NAMED, "t": 4, "b": 12}
    figure.update_layout(height=90 + _LINE * layout.rows, showlegend=False, margin=margin)
    return figure


def layers(by_layer: Float32, dark: bool = False) -> go.Figure:
    """What layer k of the history (rows) adds with layer l of the item (columns). by_layer: as `Layers.by_layer` has it."""
    names = [f"{k}: {name}" for k, name in enumerate(layer_names(len(by_layer) - 1))]
    columns, cells = layer_columns(by_layer), by_layer.reshape(len(by_layer), -1)
    most = float(np.abs(cells).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=cells.round(5), x=columns, y=names, zmin=-most, zmax=most,
            **signed_scale(dark), showscale=False, xgap=2, ygap=2,
            text=[[judge.signed(value, "+.3f") for value in row] for row in cells], texttemplate="%{text}",
            hovertemplate="history %{y}<br>item %{x}<br>adds %{z:+.4f}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False, title="history")
    figure.update_xaxes(side="top", showgrid=False, title="item")
    figure.update_layout(height=92 + 46 * len(cells), margin={"l": 8, "r": 8, "t": 52, "b": 8})
    return figure


def _line(figure: go.Figure, line: Line, columns: Sequence[float]) -> None:
    start, stop = columns[line.column : line.column + 2]
    along = np.linspace(0, 1, 15 if line.begins != line.stops else 2)
    figure.add_scatter(
        x=start + along * (stop - start), y=line.begins + bend(along) * (line.stops - line.begins), mode="lines",
        hoverinfo="skip", opacity=0.5, line={"width": line.width, "color": line.shade},
    )  # fmt: skip


def _nodes(figure: go.Figure, column: int, nodes: Sequence[Node], across: float) -> None:
    figure.add_scatter(
        x=[across] * len(nodes), y=[node.height for node in nodes], mode="markers+text", cliponaxis=False,
        marker={"size": 10, "color": [node.shade for node in nodes], "line": {"width": 0}},
        text=[label(short_title(node.name, TITLE)) for node in nodes], textposition=_PLACES[column], textfont={"size": 12},
        customdata=[[label(node.name, 120) + (f"<br>{node.more}" if node.more else ""), node.item] for node in nodes],
        hovertemplate="%{customdata[0]}<extra></extra>", unselected={"marker": {"opacity": 1}},
    )  # fmt: skip
