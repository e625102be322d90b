"""Figures of the Semantic IDs page. A tokenizer keeps its colour, marker and dash in all of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc

from app.analysis.prefix_tree import Colours, Tree, name
from app.analysis.semantic_ids import Bias, Popular
from app.figures.style import LEGEND, QUIET, laid_out, log_axis
from app.styles import PALETTE, SCALE, SERIES, Style
from app.text import label, short
from engine.bundle.codes import Depth, Ints, Usage
from engine.writing import count

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")
WRITTEN = PALETTE["red"].colour
_GAP = "rgba(252,252,251,0.6)"  # between boxes, in both themes
_TITLES = 3  # in the hover text of a prefix


class Named(NamedTuple):
    """What a figure shows of one tokenizer."""

    title: str
    """Not escaped."""
    look: Style


def usage(usages: Sequence[tuple[Named, Usage]], log: bool = False, even: bool = True) -> go.Figure:
    """Items per code, the most used first; even: with a flat line, which is what evenly used codes would give."""
    fig = go.Figure()
    for (title, look), level in usages:
        counts = level.ordered
        fig.add_scatter(
            x=np.arange(1, len(counts) + 1),
            y=counts,
            name=label(short(title, 24)),
            mode="lines",
            line={"color": look.colour, "dash": look.dash, "width": 2.5, "shape": "hvh"},
            hovertemplate=f"{label(title)}<br>place %{{x}}, items: %{{y:,}}<extra></extra>",
        )
    # one of those that would be evenly used alike
    alike = {(level.total / level.size, level.size): (title, level) for (title, _), level in usages if level.total}
    for title, level in alike.values() if even else ():
        mean = level.total / level.size
        fig.add_scatter(
            x=[0.5, level.size + 0.5],
            y=[mean, mean],
            mode="lines",
            name="evenly used",
            showlegend=False,
            line={"color": QUIET, "dash": "dot", "width": 1},
            hovertemplate=f"{label(title)} evenly used: {mean:,.1f} items a code<extra></extra>",
        )
        fig.add_annotation(
            x=level.size + 0.5, y=np.log10(mean) if log else mean, text="evenly used", showarrow=False, xanchor="right",
            yanchor="bottom", font={"size": 11},
        )  # fmt: skip
    fig.update_xaxes(title="codes, the most used first", showgrid=False, zeroline=False)
    fig.update_yaxes(title="items", rangemode="tozero", nticks=6)
    if log:
        fig.update_yaxes(log_axis([count for _, level in usages for count in level.counts.tolist()]))
    return laid_out(fig, 340, showlegend=True, legend=LEGEND)


def lorenz(usages: Sequence[tuple[Named, Usage]]) -> go.Figure:
    """The share of items that the least used codes have together; the diagonal is even use."""
    fig = go.Figure()
    fig.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", name="evenly used", line={"color": QUIET, "dash": "dot", "width": 1},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    for (title, look), level in usages:
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
    return laid_out(fig, 340, showlegend=True, legend=LEGEND)


def purity(purities: Sequence[tuple[Named, Sequence[Depth]]]) -> go.Figure:
    """Per depth of a prefix the share of items of their group's most common category, and that by chance."""
    fig = go.Figure()
    for (title, look), depths in purities:
        some = [depth for depth in depths if depth.items]
        x = [depth.depth for depth in some]
        fig.add_scatter(
            x=x,
            y=[depth.purity for depth in some],
            name=label(short(title, 24)),
            mode="lines+markers",
            line={"color": look.colour, "dash": look.dash, "width": 2.5},
            marker={"symbol": look.marker, "size": 9},
            customdata=[[depth.items, depth.groups] for depth in some],
            hovertemplate=(
                f"{label(title)}<br>the first %{{x}}: %{{y:.0%}}<br>items that share it: %{{customdata[0]:,}}, "
                "prefixes: %{customdata[1]:,}<extra></extra>"
            ),
        )
        fig.add_scatter(
            x=x,
            y=[depth.chance for depth in some],
            name=f"{label(short(title, 18))} by chance",
            mode="lines+markers",
            line={"color": look.colour, "dash": "dot", "width": 1},
            marker={"symbol": f"{look.marker}-open", "size": 7},
            hovertemplate=f"{label(title)} by chance<br>the first %{{x}}: %{{y:.0%}}<extra></extra>",
        )
    fig.update_xaxes(title="codes in common", dtick=1, showgrid=False)
    fig.update_yaxes(title="purity", tickformat=".0%", range=[0, 1.03])
    return laid_out(fig, 340, showlegend=True, legend=LEGEND)


def popularity(popularities: Sequence[tuple[Named, Popular]]) -> go.Figure:
    """A mark per code: how many items it has, and their mean training events."""
    fig = go.Figure()
    for (title, look), codes in popularities:
        fig.add_scatter(
            x=codes.items,
            y=np.maximum(codes.events, 0.1),
            name=label(short(title, 24)),
            mode="markers",
            marker={"color": look.colour, "symbol": look.marker, "size": 9, "opacity": 0.85},
            customdata=np.stack([codes.code, codes.events], axis=1),
            hovertemplate=(
                f"{label(title)}, code %{{customdata[0]:.0f}}<br>items: %{{x:,}}<br>%{{customdata[1]:,.1f}} training events "
                "an item<extra></extra>"
            ),
        )
    fig.update_xaxes(title="items with the code", rangemode="tozero", showgrid=False)
    fig.update_yaxes(log_axis([value for _, codes in popularities for value in np.maximum(codes.events, 0.1).tolist()]))
    fig.update_yaxes(title="training events per item")
    return laid_out(fig, 360, showlegend=True, legend=LEGEND)


def plane(table: pa.Table, level: int, counts: np.ndarray) -> go.Figure:
    """The vectors of one level's codes on a plane, coloured by cluster; the larger, the more items. Hollow: nobody's."""
    part = table.filter(pc.equal(table["level"], level))
    codes, cluster = part["code"].to_numpy(), part["cluster"].to_numpy()
    x, y = part["x"].to_numpy(), part["y"].to_numpy()
    most = max(int(counts.max(initial=1)), 1)
    fig = go.Figure()
    for number in np.unique(cluster):
        rows = np.flatnonzero(cluster == number)
        held = counts[codes[rows]]
        colour = SERIES[number % len(SERIES)]
        symbol = _SYMBOLS[number % len(_SYMBOLS)]
        fig.add_scatter(
            x=x[rows],
            y=y[rows],
            name=f"cluster {number + 1}",
            mode="markers+text" if len(codes) <= 48 else "markers",
            text=[str(code) for code in codes[rows]],
            textposition="top center",
            textfont={"size": 10},
            marker={
                "color": colour,
                "symbol": [symbol if count else f"{symbol}-open" for count in held],
                "size": 7 + 13 * np.sqrt(held / most),
                "opacity": 0.85,
                "line": {"width": 1, "color": colour},
            },
            customdata=np.stack([codes[rows], held], axis=1),
            hovertemplate="code %{customdata[0]}<br>items: %{customdata[1]:,}<extra>" + f"cluster {number + 1}</extra>",
        )
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False, scaleanchor="x")
    return laid_out(
        fig,
        380,
        showlegend=True,
        legend={"orientation": "h", "yanchor": "top", "y": 0, "x": 0, "itemsizing": "constant"},
    )


def bias(bias: Bias, model: str) -> go.Figure:
    """Shares of a level's codes: among held-out items as bars, among generated ones as marks."""
    places = np.arange(1, len(bias.code) + 1)
    fig = go.Figure()
    fig.add_bar(
        x=places,
        y=bias.taken,
        name="held-out items",
        marker={"color": QUIET, "opacity": 0.6},
        customdata=bias.code,
        hovertemplate="code %{customdata}<br>held-out %{y:.2%}<extra></extra>",
    )
    fig.add_scatter(
        x=places,
        y=bias.written,
        name=f"generated by {label(short(model, 24))}",
        mode="markers+lines",
        line={"color": WRITTEN, "width": 1, "dash": "dot"},
        marker={"color": WRITTEN, "symbol": "diamond", "size": 7},
        customdata=bias.code,
        hovertemplate="code %{customdata}<br>generated %{y:.2%}<extra></extra>",
    )
    fig.update_xaxes(title="codes, by share of held-out items", showgrid=False)
    fig.update_yaxes(title="share", tickformat=".1%", rangemode="tozero", nticks=6)
    return laid_out(fig, 340, showlegend=True, legend=LEGEND, bargap=0.25)


def tree(prefixes: Tree, colours: Colours, titles: Sequence[str], events: Ints) -> go.Figure:
    """An icicle from the branch's own prefix at the top down to longer ones; the point's number is the node's. titles: of every
    item, not escaped.

    Bars, not Plotly's icicle: that one sends no click to the server, and hides its labels while it is zoomed.
    """
    sizes = np.array([len(items) for items in prefixes.items])
    depth, left = np.zeros(len(prefixes), int), np.zeros(len(prefixes))
    taken = np.zeros(len(prefixes))  # by the children before
    for node, parent in enumerate(prefixes.parent):
        if parent >= 0:
            depth[node], left[node] = depth[parent] + 1, left[parent] + taken[parent]
            taken[parent] += sizes[node]
    # a line around a box that is hardly wider than the line would be all there is to see
    wide = sizes > 0.008 * sizes[0]
    fig = go.Figure(
        go.Bar(
            x=left + sizes / 2,
            y=np.ones(len(prefixes)),
            base=-depth - 1,
            width=sizes,
            customdata=[
                _prefix_hover(prefixes, node, colours.words[node], titles, events) for node in range(len(prefixes))
            ],
            hovertemplate="%{customdata}<extra></extra>",
            text=[name(prefixes, node, short_form=True) if wide[node] else "" for node in range(len(prefixes))],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"color": [_readable(colour) for colour in colours.of]},
            marker={
                "color": colours.of,
                "line": {"width": wide.astype(int), "color": _GAP},
            },
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            showlegend=False,
        )
    )
    for colour, title in colours.legend:
        fig.add_scatter(
            x=[None], y=[None], mode="markers", name=label(short(title, 18)),
            marker={"color": colour, "symbol": "square", "size": 11},
        )  # fmt: skip
    if colours.scale is not None:
        low, high = colours.scale
        ticks = np.linspace(low, high, 4)
        fig.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            showlegend=False,
            marker={
                "color": [low],
                "cmin": low,
                "cmax": high,
                "colorscale": SCALE,
                "showscale": True,
                "colorbar": {
                    "orientation": "h", "y": -0.02, "yanchor": "top", "thickness": 10, "outlinewidth": 0, "len": 0.7,
                    "tickvals": ticks, "ticktext": [f"{10**tick:,.0f}" for tick in ticks],
                    "title": {"text": "mean training events of an item", "side": "bottom", "font": {"size": 12}},
                },
            },
        )  # fmt: skip
    rows = int(depth.max()) + 1
    fig.update_xaxes(visible=False, range=[0, int(sizes[0])], fixedrange=True)
    fig.update_yaxes(visible=False, range=[-rows, 0], fixedrange=True)
    return fig.update_layout(
        height=60 + 70 * rows,
        dragmode=False,
        bargap=0,
        showlegend=bool(colours.legend),
        uniformtext={"minsize": 9, "mode": "hide"},
        legend={"orientation": "h", "yanchor": "top", "y": -0.01, "x": 0, "itemclick": False, "itemdoubleclick": False},
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
    )


def _prefix_hover(tree: Tree, node: int, words: str, titles: Sequence[str], events: Ints) -> str:
    items = tree.items[node]
    known = items[np.argsort(-events[items], kind="stable")[:_TITLES]]
    lines = [label(name(tree, node)), f"{count(len(items), 'item')} · {label(words, 60)}"]
    lines += [label(short(titles[item], 36)) for item in known]
    return "<br>".join(lines)


def _readable(colour: str) -> str:
    """Black or white, whichever is read better on a colour such as rgb(1, 2, 3)."""
    red, green, blue = (int(part) / 255 for part in colour[4:-1].split(","))
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in (red, green, blue)
    ]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if light > 0.179 else "#ffffff"
