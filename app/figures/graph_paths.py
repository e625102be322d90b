"""The tree of paths that opens from a history, layer by layer, and what each layer adds, for Plotly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from app.analysis.graph_paths import Titles, layer_columns, layer_names
from app.figures.graph_tree import AGAINST, HISTORY, TITLE, Line, Node
from app.figures.graph_tree import tree as laid_out
from app.text import label, short
from engine.runtime.graph_paths import Branch, Float32

_LINE = 32  # pixels of a node
_PLACES = ("middle left", "top right", "top right", "middle right")  # of a column's names, beside their nodes


def tree(branches: Sequence[Branch], item: int, titles: Titles, colour: str, depth: int) -> go.Figure:
    """`graph_tree.tree`, drawn."""
    layout = laid_out(branches, item, titles, colour, depth)
    figure = go.Figure()
    for line in layout.lines:
        _line(figure, line)
    for column, nodes in groupby(sorted(layout.nodes, key=lambda node: node.column), lambda node: node.column):
        _nodes(figure, column, list(nodes))
    figure.update_xaxes(visible=False, range=[-0.4, depth + (0.95 if depth >= 3 else 0.4)], fixedrange=True)
    figure.update_yaxes(visible=False, range=[layout.rows, -0.6], fixedrange=True)
    figure.update_layout(height=90 + _LINE * layout.rows, showlegend=False, margin={"l": 4, "r": 4, "t": 4, "b": 4})
    return figure


def layers(by_layer: Float32) -> go.Figure:
    """What layer k of the history (rows) adds with layer l of the item (columns). by_layer: as `Layers.by_layer` has it."""
    names = [f"{k}: {name}" for k, name in enumerate(layer_names(len(by_layer) - 1))]
    columns, cells = layer_columns(by_layer), by_layer.reshape(len(by_layer), -1)
    most = float(np.abs(cells).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=cells.round(5), x=columns, y=names, zmin=-most, zmax=most,
            colorscale=[[0, AGAINST], [0.5, "#d5dbd9"], [1, HISTORY]], showscale=False, xgap=2, ygap=2,
            text=[[f"{value:+.3f}" for value in row] for row in cells], texttemplate="%{text}",
            hovertemplate="history %{y}<br>item %{x}<br>adds %{z:+.4f}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True, showgrid=False)
    figure.update_xaxes(side="top", showgrid=False)
    figure.update_layout(height=70 + 46 * len(cells), margin={"l": 8, "r": 8, "t": 30, "b": 8})
    return figure


def _line(figure: go.Figure, line: Line) -> None:
    along = np.linspace(0, 1, 15 if line.begins != line.stops else 2)
    bend = along**2 * (3 - 2 * along)
    figure.add_scatter(
        x=line.column + along, y=line.begins + bend * (line.stops - line.begins), mode="lines", hoverinfo="skip",
        opacity=0.5, line={"width": line.width, "color": line.shade},
    )  # fmt: skip


def _nodes(figure: go.Figure, column: int, nodes: Sequence[Node]) -> None:
    figure.add_scatter(
        x=[column] * len(nodes), y=[node.height for node in nodes], mode="markers+text", cliponaxis=False,
        marker={"size": 10, "color": [node.shade for node in nodes], "line": {"width": 0}},
        text=[label(short(node.name, TITLE)) for node in nodes], textposition=_PLACES[column], textfont={"size": 12},
        customdata=[label(node.name, 120) + (f"<br>{node.more}" if node.more else "") for node in nodes],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
