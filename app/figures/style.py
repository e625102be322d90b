"""What figures share: quiet colours, legends, ticks and logarithmic axes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from app.styles import GREY
from app.text import short
from engine.runtime import judge

Floats = npt.NDArray[np.float64]

QUIET = GREY
"""Of lines and marks, never of text: on white it has 3 : 1. Text without a colour gets the theme's."""
FOR, AGAINST = "#8073ac", "#b35806"
"""Of bars and lines of numbers above and below 0."""
WIDTHS = (1.0, 1.6, 2.6, 4.2, 6.4, 9.0)
"""Of lines, by what they stand for."""
NAMED_TICKS = {
    "tickmode": "array", "ticklabeloverflow": "allow", "showgrid": False, "zeroline": False, "fixedrange": True,
}  # fmt: skip
"""Of an axis along which things have names."""
LEGEND = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0}
_BELOW = {
    "orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "xref": "container", "x": 0, "maxheight": 1,
    "entrywidthmode": "fraction", "font": {"size": 11},
}  # fmt: skip
_LINE = 21  # pixels of a line of it
_LETTERS = 48  # that a line of it has on a phone, about
_WIDE = 900  # pixels that a legend above a figure has, about
_MOST = 7  # labels of an axis
_STEPS: tuple[tuple[int, ...], ...] = ((1, 2, 5), (1, 3), (1,))  # labelled within each power of ten, the most first


def signed_scale(dark: bool) -> dict[str, Any]:
    """Of a heat map of numbers below and above 0, near the colour of the page where they are small, and of what is written in its
    cells: 4.5 : 1 on every one of them."""
    text = "#ffffff" if dark else "#111111"
    scale = ("#a85c18", "#263133", "#7566b8") if dark else ("#d68a3c", "#e4e8e7", "#9b8fcb")
    return {"colorscale": tuple(zip((0.0, 0.5, 1.0), scale, strict=True)), "textfont": {"color": text}}


def bend(along: Floats) -> Floats:
    """How far a line has risen that leaves and arrives level; along: 0 to 1."""
    return np.asarray(along * along * (3 - 2 * along))


def error_bars(
    mean: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, colour: str, thickness: float
) -> dict[str, object]:
    """Around means, or one of them."""
    middle, bottom, top = (np.atleast_1d(np.asarray(ends, float)) for ends in (mean, low, high))
    return {
        "type": "data", "symmetric": False, "array": (top - middle).tolist(), "arrayminus": (middle - bottom).tolist(),
        "color": colour, "thickness": thickness, "width": 0,
    }  # fmt: skip


def open_where_level(level: bool, colour: str, size: int) -> dict[str, object]:
    """A circle, open where a difference is not significant."""
    fill = "rgba(0,0,0,0)" if level else colour
    return {"color": fill, "symbol": "circle", "size": size, "line": {"width": 2, "color": colour}}


def difference_dot(
    fig: go.Figure, place: int, name: str, row: Any, ends: tuple[float, float], colour: str, size: int, thickness: float
) -> None:
    """A difference with its interval, open where it is not significant. name: escaped; row: difference, verdict and holm."""
    low, high = ends
    fig.add_scatter(
        x=[row.difference],
        y=[place],
        error_x=error_bars(row.difference, low, high, colour, thickness),
        mode="markers",
        marker=open_where_level(row.verdict == "level", colour, size),
        hovertemplate=(
            f"{name}<br>%{{x:+.4f}} ({judge.signed(low)} … {judge.signed(high)})<br>{row.verdict}, "
            f"adjusted p {row.holm:.3g}<extra></extra>"
        ),
    )


def named_rows(fig: go.Figure, names: Sequence[str]) -> None:
    """From the top."""
    fig.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.4, -0.6], showgrid=False, automargin=True,
        zeroline=False,
    )  # fmt: skip


def ticks(low: float, high: float, many: int) -> list[float]:
    """About so many round numbers from low to high."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / many
    power = 10 ** math.floor(math.log10(raw))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(step * at, 12) for at in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high (both above 0) for a logarithmic axis: 1, 2, 5, 10 …, where that is too many 1, 3, 10 …,
    then powers of ten alone; evenly spaced numbers where the axis is too short for these."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in _STEPS:
        labelled = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        labelled = [tick for tick in labelled if low * 0.999 <= tick <= high * 1.001]
        if len(labelled) <= _MOST:
            break
    if len(labelled) < 2:
        labelled = [tick for tick in ticks(low, high, 4) if tick > 0]
    return labelled[:: math.ceil(len(labelled) / _MOST)]


def log_axis(values: Sequence[float]) -> dict[str, Any]:
    """What makes a Plotly axis logarithmic with labels that can be read; Plotly's own are single digits between its powers of
    ten ("3 2 100 9 8"). values: what is drawn; those that are not above 0 have no place on it."""
    shown = [value for value in values if value > 0] or [1.0]
    labelled = log_ticks(min(shown), max(shown))
    return {
        "type": "log",
        "tickvals": labelled,
        "ticktext": [f"{tick:,.10g}" for tick in labelled],
        "minor": {"ticks": ""},
    }


def laid_out(fig: go.Figure, height: int, **more: object) -> go.Figure:
    look: dict[str, object] = {"showlegend": False, "margin": {"l": 8, "r": 12, "t": 12, "b": 44}, **more}
    return fig.update_layout(height=height, dragmode=False, **look)


def with_legend(fig: go.Figure, height: int, narrow: bool, columns: int = 2, **more: object) -> go.Figure:
    """With its legend above what is drawn. narrow: for a phone, with the legend below in some columns, and the title of the
    vertical axis above it. The figure is higher by the legend's lines: wide, by all but the first."""
    names = [trace.name or "" for trace in fig.data if trace.showlegend is not False]
    if not narrow:
        columns = _WIDE // (48 + 6 * max(map(len, names), default=0)) or 1  # an entry is as wide as the longest
        room = _LINE * max(0, math.ceil(len(names) / columns) - 1)
        return laid_out(fig, height + room, showlegend=True, legend=LEGEND, **more)
    room = _LINE * math.ceil(len(names) / columns)
    title = {
        "text": fig.layout.yaxis.title.text,
        "x": 0,
        "xref": "paper",
        "y": 1,
        "yanchor": "top",
        "pad": {"t": 4},
        "font": {"size": 13, "weight": 400},
    }
    fig.update_yaxes(title=None)
    fig.for_each_trace(lambda trace: trace.update(name=short(trace.name or "", _LETTERS // columns, isolate=False)))
    margin = {"l": 8, "r": 12, "t": 32, "b": 60 + room}
    legend = {**_BELOW, "entrywidth": 1 / columns - 0.01}
    return laid_out(fig, height + room, showlegend=True, legend=legend, margin=margin, title=title, **more)
