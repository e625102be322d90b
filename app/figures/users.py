"""Figures of the page Users: how the ranks of held-out items are distributed over users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from app.figures.style import QUIET, laid_out, log_axis, with_legend
from app.styles import Style
from app.text import label


@dataclass(frozen=True)
class Curve:
    """One model's empirical distribution of ranks."""

    title: str
    look: Style
    ranks: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    """[ranks]: of users whose held-out item is among so many first."""


def distribution(curves: list[Curve], k: int, marks: Mapping[str, float], narrow: bool = False) -> go.Figure:
    """The share of users whose held-out item is among the first x, a line per model; k: a line at the top k. marks: title of a
    model → the rank of one user's held-out item, a mark on that model's line. narrow: for a phone."""
    fig = go.Figure()
    for curve in curves:
        fig.add_scatter(
            x=curve.ranks,
            y=curve.shares,
            name=label(curve.title),
            mode="lines",
            line={"color": curve.look.colour, "dash": curve.look.dash, "width": 2},
            hovertemplate=f"{label(curve.title)}<br>%{{y:.1%}} of users in the top %{{x:,}}<extra></extra>",
        )
        rank = marks.get(curve.title)
        if rank is not None and rank <= curve.ranks[-1]:
            fig.add_scatter(
                x=[rank],
                y=[float(np.interp(np.log(rank), np.log(curve.ranks), curve.shares))],
                mode="markers",
                marker={"color": curve.look.colour, "symbol": curve.look.marker, "size": 11},
                showlegend=False,
                hovertemplate=f"{label(curve.title)}<br>this user: rank %{{x:,}}<extra></extra>",
            )  # fmt: skip
    fig.add_vline(x=k, line={"width": 1, "color": QUIET, "dash": "dot"})
    last = max((int(curve.ranks[-1]) for curve in curves), default=1)
    fig.update_xaxes(title="rank of the held-out item", **log_axis([1, last]))
    fig.update_yaxes(title="share of users", tickformat=".0%", rangemode="tozero")
    if narrow:
        return with_legend(fig, 260, narrow)
    legend = {"orientation": "h", "x": 0, "y": -0.42, "yanchor": "top", "font": {"size": 12}}
    return laid_out(fig, 290, showlegend=True, legend=legend)
