"""A training that goes on: what it has learned so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

_LOSS, _NDCG = "#0072b2", "#d55e00"


def curve(entries: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """epoch, loss, ndcg of a run's curve.json; what is no number is left out."""
    columns = {"epoch": "epoch", "loss": "loss", "valid_ndcg": "ndcg"}
    table = pd.DataFrame(list(entries), columns=list(columns)).rename(columns=columns)
    return table.apply(pd.to_numeric, errors="coerce").dropna(subset=["epoch"]).reset_index(drop=True)


def figure(table: pd.DataFrame) -> go.Figure:
    """Loss, and beside it validation NDCG, along the epochs. table: of `curve`."""
    fig = make_subplots(1, 2, subplot_titles=("training loss", "validation NDCG@10"), horizontal_spacing=0.12)
    for column, name, colour in ((1, "loss", _LOSS), (2, "ndcg", _NDCG)):
        part = table.dropna(subset=[name])
        fig.add_scatter(
            x=part["epoch"], y=part[name], mode="lines+markers" if len(part) < 60 else "lines", line={"color": colour},
            hovertemplate="epoch %{x}<br>%{y:.4f}<extra></extra>", row=1, col=column,
        )  # fmt: skip
    fig.update_xaxes(title="epoch", rangemode="tozero")
    fig.update_layout(height=260, showlegend=False, margin={"l": 48, "r": 8, "t": 32, "b": 44})
    return fig


def span(seconds: float) -> str:
    """A duration for people, as coarse as it is known."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5_400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3_600:.1f} h"
