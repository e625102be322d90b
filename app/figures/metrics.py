"""Figures of the pages Metrics and Users: estimates as dots with their intervals, curves of trainings, distributions of ranks.
A model keeps its colour, marker and dash everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.analysis import floor
from app.figures.style import QUIET, difference_dot, error_bars, laid_out, log_axis, named_rows, with_legend
from app.styles import PALETTE, Style
from app.text import label, short

Looks = Mapping[str, Style]
Titles = Mapping[str, str]

MARKS = {"best": "best", "level": "≈ best", "": ""}


def dots(table: pd.DataFrame, metric: str, titles: Titles, looks: Looks, families: Mapping[str, str]) -> go.Figure:
    """One dot per row with its interval: the floor first, and a line where it ends, then the best on top. table: of `standing`,
    one metric; rows without a figure say why."""
    part = ordered(table, "mean", families)
    low, high = (0.0, 1.0) if part["mean"].isna().all() else (float(part["low"].min()), float(part["high"].max()))
    span = (high - low) or 1.0
    fig = go.Figure()
    for place, row in enumerate(part.itertuples()):
        if row.note:
            fig.add_annotation(
                x=low, y=place, text=f"n/a: {label(row.note)}", showarrow=False, xanchor="left", font={"size": 12}
            )  # fmt: skip
            continue
        fig.add_scatter(
            x=[row.mean],
            y=[place],
            error_x=error_bars(row.mean, row.low, row.high, looks[row.model].colour, 2),
            mode="markers",
            marker=_marker(looks[row.model], _size(len(part))),
            hovertemplate=f"{label(titles[row.model])}<br>{metric} %{{x:.4f}}<br>{row.low:.4f} – {row.high:.4f}<extra></extra>",
        )
        if row.mark:
            fig.add_annotation(
                x=row.high, y=place, text=MARKS[row.mark], showarrow=False, xanchor="left", xshift=10,
                font={"size": 12},
            )  # fmt: skip
    named_rows(fig, [label(short(titles[name], 34)) for name in part["model"]])
    best = floor.best(dict(zip(part["model"], part["mean"], strict=True)), families)
    if best is not None:
        fig.add_vline(x=best[1], line={"width": 1, "color": QUIET, "dash": "dot"})
    fig.update_xaxes(title=metric, range=[low - 0.06 * span, high + 0.3 * span])
    return laid_out(fig, _height(len(part)))


def differences(
    table: pd.DataFrame, rows: Sequence[str], baseline: str, metric: str, titles: Titles, looks: Looks
) -> go.Figure:
    """Each row's difference to the baseline, which stands at 0 among them. table: of `against`; rows: as `dots` has them.

    A circle for each: a row has its name, and some models' own markers are open, which says here that a difference is not
    significant."""
    compared = {row.model: row for row in table.itertuples()}
    fig = go.Figure()
    for place, name in enumerate(rows):
        colour = looks[name].colour
        if name == baseline:
            fig.add_scatter(
                x=[0], y=[place], mode="markers", marker={"color": colour, "symbol": "diamond", "size": _size(len(rows))},
                hovertemplate=f"{label(titles[name])}<br>baseline<extra></extra>",
            )  # fmt: skip
            continue
        if name not in compared:
            fig.add_annotation(x=0, y=place, text="n/a", showarrow=False, xanchor="left", xshift=6, font={"size": 12})
            continue
        row = compared[name]
        difference_dot(fig, place, label(titles[name]), row, (row.low, row.high), colour, _size(len(rows)), 2)
    fig.add_vline(x=0, line={"width": 1, "color": QUIET})
    named_rows(fig, [label(short(titles[name], 34)) for name in rows])
    fig.update_xaxes(title=f"Difference in {metric}", tickformat=".3f", nticks=6)
    return laid_out(fig, _height(len(rows)))


def trade_off(
    table: pd.DataFrame, metric: str, k: int, titles: Titles, looks: Looks, narrow: bool = False
) -> go.Figure:
    """Accuracy against coverage, a mark per model. table: model, mean, coverage. narrow: for a phone, here and below."""
    fig = go.Figure()
    for row in table.itertuples():
        fig.add_scatter(
            x=[row.coverage],
            y=[row.mean],
            name=label(titles[row.model]),
            mode="markers",
            marker=_marker(looks[row.model], 13),
            hovertemplate=f"{label(titles[row.model])}<br>Coverage@{k} %{{x:.1%}}<br>{metric} %{{y:.4f}}<extra></extra>",
        )
    fig.update_xaxes(title=f"Coverage@{k}", tickformat=".0%", rangemode="tozero")
    fig.update_yaxes(title=metric, rangemode="tozero")
    return with_legend(fig, 360, narrow)


def slices(table: pd.DataFrame, metric: str, titles: Titles, looks: Looks, narrow: bool = False) -> go.Figure:
    """One band per slice, a dot with its interval per model; pale where fewer than 30 users are in it. table: of `slices`."""
    bands = list(dict.fromkeys(table["slice"]))
    sizes = table.drop_duplicates("slice").set_index("slice")["n"]
    models = list(dict.fromkeys(table["model"]))
    step = 0.7 / max(len(models), 1)
    fig = go.Figure()
    for at, name in enumerate(models):
        part = table[table["model"] == name]
        look = looks[name]
        shift = (at - (len(models) - 1) / 2) * step
        for few in (False, True):  # two traces, so that intervals can be pale as well
            some = part[part["few"] == few]
            if few and some.empty:
                continue
            fig.add_scatter(
                x=some["mean"],
                y=[bands.index(band) + shift for band in some["slice"]],
                error_x=error_bars(some["mean"], some["low"], some["high"], QUIET if few else look.colour, 1.2),
                name=label(titles[name]),
                legendgroup=name,
                showlegend=not few,
                mode="markers",
                opacity=0.45 if few else 1,
                marker={**_marker(look, 8), "color": QUIET if few else look.colour},
                customdata=list(
                    zip([label(band) for band in some["slice"]], some["n"], some["low"], some["high"], strict=True)
                ),
                hovertemplate=(
                    f"{label(titles[name])}<br>%{{customdata[0]}}, n = %{{customdata[1]:,}}<br>{metric} %{{x:.4f}} "
                    "(%{customdata[2]:.4f} – %{customdata[3]:.4f})<extra></extra>"
                ),
            )
    for edge in range(1, len(bands)):
        fig.add_hline(y=edge - 0.5, line={"width": 1, "color": "rgba(138,148,150,0.25)"})
    named_rows(fig, [f"{label(short(band, 22 if narrow else 36))}<br>n = {sizes[band]:,}" for band in bands])
    fig.update_xaxes(title=metric, rangemode="tozero", nticks=6)
    return with_legend(fig, 110 + max(44, 12 * len(models) + 16) * len(bands), narrow, 1)


def validation(
    table: pd.DataFrame, along: str, words: str, titles: Titles, looks: Looks, narrow: bool = False
) -> go.Figure:
    """Validation NDCG of every model while it was trained. table: of `curves`."""
    fig = go.Figure()
    for name, part in table.dropna(subset=["ndcg"]).groupby("model", sort=False):
        look = looks[name]
        fig.add_scatter(
            x=part[along],
            y=part["ndcg"],
            name=label(titles[name]),
            mode="lines+markers",
            line={"color": look.colour, "dash": look.dash, "width": 2},
            marker={"symbol": look.marker, "size": 7},
            hovertemplate=f"{label(titles[name])}<br>%{{x:,.4~g}} {words}<br>NDCG@10 %{{y:.4f}}<extra></extra>",
        )
    fig.update_xaxes(title=words, rangemode="tozero", showgrid=False, dtick=_whole(table, along, 10))
    fig.update_yaxes(title="validation NDCG@10", rangemode="tozero")
    return with_legend(fig, 340, narrow)


def losses(
    table: pd.DataFrame, along: str, words: str, titles: Titles, looks: Looks, narrow: bool = False
) -> go.Figure:
    """Training loss, a panel of its own per model: losses of different models have different units."""
    part = table.dropna(subset=["loss"])
    models = list(dict.fromkeys(part["model"]))
    columns = min(2 if narrow else 4, max(1, len(models)))
    deep = -(-len(models) // columns) or 1
    names = [label(short(titles[name], 34)) for name in models]
    fig = make_subplots(
        deep, columns, subplot_titles=names, horizontal_spacing=0.16 if narrow else 0.08, vertical_spacing=0.44 / deep
    )
    for at, name in enumerate(models):
        curve, look = part[part["model"] == name], looks[name]
        trace = go.Scatter(
            x=curve[along],
            y=curve["loss"],
            mode="lines+markers" if len(curve) < 60 else "lines",
            line={"color": look.colour, "dash": look.dash, "width": 2},
            marker={"symbol": look.marker, "size": 6},
            hovertemplate=f"%{{x:,.4~g}} {words}<br>loss %{{y:.4f}}<extra>{label(titles[name])}</extra>",
        )
        fig.add_trace(trace, at // columns + 1, at % columns + 1)
    title = {"text": words, "standoff": 4, "font": {"size": 12}}
    fig.update_xaxes(showgrid=False, nticks=4, dtick=_whole(table, along, 4), title=title)
    fig.update_yaxes(nticks=4, tickformat=".4~r")
    fig.update_yaxes(title={"text": "loss", "standoff": 4, "font": {"size": 12}}, col=1)
    fig.update_annotations(font_size=13)
    return laid_out(fig, 60 + 170 * deep, margin={"l": 8, "r": 8, "t": 36, "b": 40})


def _whole(table: pd.DataFrame, along: str, few: int) -> int | None:
    """The step between ticks: 1 of few epochs, among which an axis would have halves; None: the axis decides."""
    return 1 if along == "epoch" and table["epoch"].max() <= few else None


def run_curve(entries: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """epoch, loss, ndcg of a run's curve.json; what is no number is left out."""
    columns = {"epoch": "epoch", "loss": "loss", "valid_ndcg": "ndcg"}
    table = pd.DataFrame(list(entries), columns=list(columns)).rename(columns=columns)
    return table.apply(pd.to_numeric, errors="coerce").dropna(subset=["epoch"]).reset_index(drop=True)


def run_so_far(table: pd.DataFrame) -> go.Figure:
    """What a training that goes on has learned so far, along its epochs: loss, and beside it validation NDCG. table: of
    `run_curve`."""
    fig = make_subplots(1, 2, subplot_titles=("training loss", "validation NDCG@10"), horizontal_spacing=0.12)
    for column, name, colour in ((1, "loss", PALETTE["blue"].colour), (2, "ndcg", PALETTE["red"].colour)):
        part = table.dropna(subset=[name])
        fig.add_scatter(
            x=part["epoch"], y=part[name], mode="lines+markers" if len(part) < 60 else "lines", line={"color": colour},
            hovertemplate="epoch %{x}<br>%{y:.4f}<extra></extra>", row=1, col=column,
        )  # fmt: skip
    fig.update_xaxes(title="epoch", rangemode="tozero", dtick=_whole(table, "epoch", 10))
    fig.update_layout(height=260, showlegend=False, margin={"l": 48, "r": 8, "t": 32, "b": 44})
    return fig


@dataclass(frozen=True)
class Curve:
    """One model's empirical distribution of ranks."""

    title: str
    look: Style
    ranks: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    """[ranks]: of users whose held-out item is among so many first."""
    mark: float | None = None
    """The rank of one user's held-out item, a mark on the line."""


def distribution(curves: list[Curve], k: int, narrow: bool = False) -> go.Figure:
    """The share of users whose held-out item is among the first x, a line per model; k: a line at the top k. narrow: for a
    phone."""
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
        rank = curve.mark
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


def _height(rows: int) -> int:
    return 84 + (40 if rows <= 12 else 26) * rows


def _size(rows: int) -> int:
    """Of a marker."""
    return 12 if rows <= 12 else 8


def _marker(look: Style, size: int) -> dict[str, object]:
    marker: dict[str, object] = {"color": look.colour, "symbol": look.marker, "size": size}
    if look.marker.endswith("-dot"):
        marker["line"] = {"width": 1, "color": "#ffffff"}  # of which the dot is drawn
    return marker


def ordered(table: pd.DataFrame, by: str, families: Mapping[str, str]) -> pd.DataFrame:
    """The floor first, then the largest first."""
    part = table.sort_values(by, ascending=False)
    return part.set_index("model", drop=False).loc[floor.first(part["model"], families)]
