"""Figures of studies: differences as dots with their intervals, sweeps as lines. A sweep's values stand at equal distances."""

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.figures.style import QUIET, difference_dot, error_bars, laid_out, named_rows, open_where_level
from app.styles import PALETTE
from app.text import label, short
from engine.runtime.studies import MEASURES

COLOUR, PALE = PALETTE["blue"].colour, "#b9d6e8"
Span = tuple[float, float]


def differences(results: pd.DataFrame, singles: Mapping[str, Sequence[float]], metric: str, baseline: str) -> go.Figure:
    """Each variant's difference to the baseline, in the study's order; small: single seeds. results: of `table`."""
    part = results[results["verdict"] != "baseline"]
    fig = go.Figure()
    for place, row in enumerate(part.itertuples()):
        if len(singles[row.variant]) > 1:
            fig.add_scatter(
                x=list(singles[row.variant]),
                y=[place + 0.22] * len(singles[row.variant]),
                mode="markers",
                marker={"color": QUIET, "symbol": "line-ns-open", "size": 9, "line": {"width": 2}},
                hovertemplate="one seed: %{x:+.4f}<extra></extra>",
            )
        difference_dot(fig, place, label(row.title), row, (row.lowest, row.highest), COLOUR, 12, 1.5)
    fig.add_vline(x=0, line={"width": 1, "color": QUIET})
    named_rows(fig, [label(short(title, 30)) for title in part["title"]])
    fig.update_xaxes(
        title=f"{metric} minus that of {label(short(baseline, 24))}",
        tickformat="+.3f",
        labelalias={"+0.000": "0.000"},
        nticks=6,
    )
    return laid_out(fig, 84 + 40 * len(part))


def sweep(results: pd.DataFrame, metric: str, axis: str, reach: Span) -> go.Figure:
    """The metric along a setting, with intervals over people; the recipe's own value is a diamond. results: of `table`."""
    part = results.sort_values("value").reset_index(drop=True)
    fig = go.Figure()
    fig.add_scatter(
        x=part.index,
        y=part["mean"],
        error_y=error_bars(part["mean"], part["low"], part["high"], COLOUR, 1.5),
        mode="lines+markers",
        line={"color": COLOUR, "width": 1.5},
        marker={
            "symbol": ["diamond" if verdict == "baseline" else "circle" for verdict in part["verdict"]],
            "color": [PALE if verdict == "level" else COLOUR for verdict in part["verdict"]],
            "size": [13 if verdict == "baseline" else 10 for verdict in part["verdict"]],
            "line": {"width": 2, "color": COLOUR},
            "opacity": 1,
        },
        customdata=part[["title", "low", "high", "verdict"]].assign(title=part["title"].map(label)).to_numpy(),
        hovertemplate=(
            f"{label(axis)} %{{customdata[0]}}<br>{metric} %{{y:.4f}} (%{{customdata[1]:.4f}} – %{{customdata[2]:.4f}})<br>"
            "%{customdata[3]}<extra></extra>"
        ),
    )
    _along(fig, list(part["title"]), axis)
    fig.update_yaxes(range=list(reach), title=metric, nticks=5)
    return laid_out(fig, 260)


def sweep_of_codes(
    results: pd.DataFrame, names: Sequence[str], axis: str, default: float, reach: Mapping[str, Span]
) -> go.Figure:
    """Figures of a tokenizer along a setting, a panel for each; dots are seeds, the line their mean. results: of `measured`."""
    values = sorted(results["value"].unique())
    titles = list(results.drop_duplicates("value").set_index("value").loc[values, "variant"])
    fig = make_subplots(
        len(names), 1, shared_xaxes=True, vertical_spacing=0.07,
        subplot_titles=[MEASURES[name].title for name in names],
    )  # fmt: skip
    for row, name in enumerate(names, 1):
        part = results[results["measure"] == name]
        form = MEASURES[name].form
        mean = part.groupby("value")["figure"].mean().loc[values]
        fig.add_scatter(
            x=[values.index(value) for value in part["value"]],
            y=part["figure"],
            mode="markers",
            marker={"color": QUIET, "size": 5},
            customdata=part["seed"],
            hovertemplate=f"seed %{{customdata}}: %{{y:{form}}}<extra></extra>",
            row=row,
            col=1,
        )
        fig.add_scatter(
            x=list(range(len(values))),
            y=mean,
            mode="lines+markers",
            line={"color": COLOUR, "width": 1.5},
            marker={
                "symbol": ["diamond" if value == default else "circle" for value in values],
                "size": [12 if value == default else 7 for value in values],
                "color": COLOUR,
            },
            customdata=[label(title) for title in titles],
            hovertemplate=f"{label(axis)} %{{customdata}}<br>{MEASURES[name].title} %{{y:{form}}}<extra></extra>",
            row=row,
            col=1,
        )
        fig.update_yaxes(range=list(reach[name]), nticks=4, row=row, col=1)
    _along(fig, titles, axis, last=len(names))
    fig.update_annotations(font_size=12)
    return laid_out(fig, 60 + 140 * len(names), margin={"l": 8, "r": 12, "t": 28, "b": 44})


def beside(table: pd.DataFrame, here: str, there: str, narrow: bool) -> go.Figure:
    """How far variants are from the baseline, in per cent of it: what was measured here, with intervals, and what a
    paper has. A panel each with a scale of its own, since these are two measurements; narrow: one below the other. table: of
    app.analysis.studies.beside."""
    part = table[table["change"].notna() | table["published_change"].notna()].reset_index(drop=True)
    each = 76 + 34 * len(part)
    fig = make_subplots(
        *((2, 1) if narrow else (1, 2)), shared_yaxes=not narrow, horizontal_spacing=0.05,
        vertical_spacing=84 / (2 * each - 32) if narrow else 0.0,
        subplot_titles=[label(short(here, 44)), label(short(there, 44))],
    )  # fmt: skip
    between = part["lowest"].notna()
    fig.add_scatter(
        x=part["change"],
        y=part.index,
        error_x=error_bars(
            part["change"],
            part["lowest"].where(between, part["change"]),
            part["highest"].where(between, part["change"]),
            COLOUR,
            1.5,
        ),
        mode="markers",
        marker=open_where_level(False, COLOUR, 12)
        | {"color": ["rgba(0,0,0,0)" if ns else COLOUR for ns in part["level"]]},
        customdata=[label(title) for title in part["title"]],
        hovertemplate="%{customdata}<br>%{x:+.1f}% here<extra></extra>",
        row=1,
        col=1,
    )
    fig.add_scatter(
        x=part["published_change"],
        y=part.index,
        mode="markers",
        marker={"symbol": "square", "color": QUIET, "size": 11},
        customdata=[label(title) for title in part["title"]],
        hovertemplate="%{customdata}<br>%{x:+.1f}% in the paper<extra></extra>",
        row=2 if narrow else 1,
        col=1 if narrow else 2,
    )
    fig.add_vline(x=0, line={"width": 1, "color": QUIET})
    named_rows(fig, [label(short(title, 30)) for title in part["title"]])
    fig.update_xaxes(
        tickformat="+.3~g",
        ticksuffix=" %",
        labelalias={"+0 %": "0 %"},
        nticks=5,
        title="difference to its own baseline",
    )
    fig.update_annotations(font_size=12)
    return laid_out(fig, 2 * each + 40 if narrow else each + 20, margin={"l": 8, "r": 12, "t": 28, "b": 44})


def reach(values: Sequence[float] | pd.Series) -> Span:
    """The part of an axis that shows all values, with some room; wide enough that noise does not look like a trend."""
    low, high = float(min(values)), float(max(values))
    wide = max(high - low, 0.1 * abs(high), 1e-6)
    middle = (low + high) / 2
    return middle - 0.58 * wide, middle + 0.58 * wide


def _along(fig: go.Figure, titles: Sequence[str], axis: str, last: int | None = None) -> None:
    where = {} if last is None else {"row": last, "col": 1}
    fig.update_xaxes(tickvals=list(range(len(titles))), range=[-0.4, len(titles) - 0.6], showgrid=False, zeroline=False)
    fig.update_xaxes(ticktext=[label(title) for title in titles], title=label(axis), **where)
