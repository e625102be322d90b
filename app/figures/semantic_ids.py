"""Figures of the Semantic IDs page. A tokenizer keeps its colour, marker and dash in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc

from app.analysis.map_colouring import PALETTE
from app.analysis.semantic_ids import Bias, Depth, Popular, Usage
from app.figures.axes import log_axis
from app.looks import Style
from app.text import label, short

QUIET = "#8a9496"
_LEGEND = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")
WRITTEN = "#d55e00"


class Named(NamedTuple):
    """What a figure shows of one tokenizer."""

    title: str
    """Not escaped."""
    look: Style


def usage(found: Sequence[tuple[Named, Usage]], log: bool = False) -> go.Figure:
    """Items per code, the most used first; a flat line is what evenly used codes would give."""
    fig = go.Figure()
    for (title, look), level in found:
        counts = level.ordered
        fig.add_scatter(
            x=np.arange(1, len(counts) + 1),
            y=counts,
            name=label(short(title, 24)),
            mode="lines",
            line={"color": look.colour, "dash": look.dash, "width": 2.5, "shape": "hvh"},
            hovertemplate=f"{label(title)}<br>place %{{x}}: %{{y:,}} items<extra></extra>",
        )
    for (title, _), level in _different(found):
        even = level.total / level.size
        fig.add_scatter(
            x=[0.5, level.size + 0.5],
            y=[even, even],
            mode="lines",
            name="evenly used",
            showlegend=False,
            line={"color": QUIET, "dash": "dot", "width": 1},
            hovertemplate=f"{label(title)} evenly used: {even:,.1f} items a code<extra></extra>",
        )
        fig.add_annotation(
            x=level.size + 0.5, y=np.log10(even) if log else even, text="evenly used", showarrow=False, xanchor="right",
            yanchor="bottom", font={"size": 11, "color": QUIET},
        )  # fmt: skip
    fig.update_xaxes(title="codes, the most used first", showgrid=False, zeroline=False)
    fig.update_yaxes(title="items", rangemode="tozero", nticks=6)
    if log:
        fig.update_yaxes(log_axis([count for _, level in found for count in level.counts.tolist()]))
    return _laid_out(fig, 340, showlegend=True, legend=_LEGEND)


def lorenz(found: Sequence[tuple[Named, Usage]]) -> go.Figure:
    """The share of items that the least used codes have together; the diagonal is even use."""
    fig = go.Figure()
    fig.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", name="evenly used", line={"color": QUIET, "dash": "dot", "width": 1},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    for (title, look), level in found:
        x, y = level.lorenz()
        fig.add_scatter(
            x=x,
            y=y,
            name=f"{label(short(title, 20))}, Gini {level.gini:.2f}",
            mode="lines",
            line={"color": look.colour, "dash": look.dash, "width": 2.5},
            hovertemplate=f"{label(title)}<br>%{{x:.0%}} of codes have %{{y:.1%}} of items<extra></extra>",
        )
    fig.update_xaxes(title="share of codes, the least used first", tickformat=".0%", range=[0, 1], showgrid=False)
    fig.update_yaxes(title="share of items", tickformat=".0%", range=[0, 1.01])
    return _laid_out(fig, 340, showlegend=True, legend=_LEGEND)


def purity(found: Sequence[tuple[Named, Sequence[Depth]]]) -> go.Figure:
    """Per depth of a prefix the share of items of their group's commonest category, and that by chance."""
    fig = go.Figure()
    for (title, look), depths in found:
        some = [one for one in depths if one.items]
        x = [one.depth for one in some]
        fig.add_scatter(
            x=x,
            y=[one.purity for one in some],
            name=label(short(title, 24)),
            mode="lines+markers",
            line={"color": look.colour, "dash": look.dash, "width": 2.5},
            marker={"symbol": look.marker, "size": 9},
            customdata=[[one.items, one.groups] for one in some],
            hovertemplate=(
                f"{label(title)}<br>the first %{{x}}: %{{y:.0%}}<br>%{{customdata[0]:,}} items in company, "
                "%{customdata[1]:,} prefixes<extra></extra>"
            ),
        )
        fig.add_scatter(
            x=x,
            y=[one.chance for one in some],
            name=f"{label(short(title, 18))} by chance",
            mode="lines+markers",
            line={"color": look.colour, "dash": "dot", "width": 1},
            marker={"symbol": f"{look.marker}-open", "size": 7},
            hovertemplate=f"{label(title)} by chance<br>the first %{{x}}: %{{y:.0%}}<extra></extra>",
        )
    fig.update_xaxes(title="codes in common", dtick=1, showgrid=False)
    fig.update_yaxes(title="purity", tickformat=".0%", range=[0, 1.03])
    return _laid_out(fig, 340, showlegend=True, legend=_LEGEND)


def popularity(found: Sequence[tuple[Named, Popular]]) -> go.Figure:
    """A mark per code: how many items it has, and how often these are taken."""
    fig = go.Figure()
    for (title, look), codes in found:
        fig.add_scatter(
            x=codes.items,
            y=np.maximum(codes.events, 0.1),
            name=label(short(title, 24)),
            mode="markers",
            marker={"color": look.colour, "symbol": look.marker, "size": 9, "opacity": 0.85},
            customdata=np.stack([codes.code, codes.events], axis=1),
            hovertemplate=(
                f"{label(title)}, code %{{customdata[0]:.0f}}<br>%{{x:,}} items<br>%{{customdata[1]:,.1f}} training events "
                "an item<extra></extra>"
            ),
        )
    fig.update_xaxes(title="items with the code", rangemode="tozero", showgrid=False)
    fig.update_yaxes(log_axis([value for _, codes in found for value in np.maximum(codes.events, 0.1).tolist()]))
    fig.update_yaxes(title="training events an item")
    return _laid_out(fig, 360, showlegend=True, legend=_LEGEND)


def plane(table: pa.Table, level: int, counts: np.ndarray, named: Named, dark: bool) -> go.Figure:
    """The vectors of one level's codes on a plane, coloured by cluster; the larger, the more items. Hollow: nobody's."""
    part = table.filter(pc.equal(table["level"], level))
    codes, cluster = part["code"].to_numpy(), part["cluster"].to_numpy()
    x, y = part["x"].to_numpy(), part["y"].to_numpy()
    most = max(int(counts.max(initial=1)), 1)
    fig = go.Figure()
    for number in np.unique(cluster):
        rows = np.flatnonzero(cluster == number)
        held = counts[codes[rows]]
        colour = PALETTE[number % len(PALETTE)]
        symbol = _SYMBOLS[number % len(_SYMBOLS)]
        fig.add_scatter(
            x=x[rows],
            y=y[rows],
            name=f"cluster {number + 1}",
            mode="markers+text" if len(codes) <= 48 else "markers",
            text=[str(code) for code in codes[rows]],
            textposition="top center",
            textfont={"size": 10, "color": "#a3b0b1" if dark else "#556264"},
            marker={
                "color": colour,
                "symbol": [symbol if count else f"{symbol}-open" for count in held],
                "size": 7 + 13 * np.sqrt(held / most),
                "opacity": 0.85,
                "line": {"width": 1, "color": colour},
            },
            customdata=np.stack([codes[rows], held], axis=1),
            hovertemplate="code %{customdata[0]}<br>%{customdata[1]:,} items<extra>" + f"cluster {number + 1}</extra>",
        )
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False, scaleanchor="x")
    return _laid_out(
        fig,
        380,
        showlegend=True,
        legend={"orientation": "h", "yanchor": "top", "y": 0, "x": 0, "itemsizing": "constant"},
    )


def bias(found: Bias, model: str) -> go.Figure:
    """Shares of a level's codes: what people took as bars, what the model wrote as marks."""
    places = np.arange(1, len(found.code) + 1)
    fig = go.Figure()
    fig.add_bar(
        x=places,
        y=found.taken,
        name="taken by people",
        marker={"color": QUIET, "opacity": 0.6},
        customdata=found.code,
        hovertemplate="code %{customdata}<br>taken %{y:.2%}<extra></extra>",
    )
    fig.add_scatter(
        x=places,
        y=found.written,
        name=f"written by {label(short(model, 24))}",
        mode="markers+lines",
        line={"color": WRITTEN, "width": 1, "dash": "dot"},
        marker={"color": WRITTEN, "symbol": "diamond", "size": 7},
        customdata=found.code,
        hovertemplate="code %{customdata}<br>written %{y:.2%}<extra></extra>",
    )
    fig.update_xaxes(title="codes, the most taken first", showgrid=False)
    fig.update_yaxes(title="share", tickformat=".1%", rangemode="tozero", nticks=6)
    return _laid_out(fig, 340, showlegend=True, legend=_LEGEND, bargap=0.25)


def _different(found: Sequence[tuple[Named, Usage]]) -> list[tuple[Named, Usage]]:
    """One of those that would be evenly used alike."""
    seen = {(level.total / level.size, level.size): (named, level) for named, level in found if level.total}
    return list(seen.values())


def _laid_out(fig: go.Figure, height: int, **more: object) -> go.Figure:
    look: dict[str, object] = {"showlegend": False, "margin": {"l": 8, "r": 12, "t": 12, "b": 44}, **more}
    return fig.update_layout(height=height, dragmode=False, **look)
