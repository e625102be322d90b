"""The figures of a report for Plotly: the app's own where they can be had, from the report's numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.analysis import attention, map_colouring, metrics
from app.analysis.map_points import Marks, Points
from app.analysis.semantic_ids import Usage
from app.figures import attention as attention_figures
from app.figures import graph_paths as graph_figures
from app.figures import map as map_views
from app.figures import metrics as metrics_figures
from app.figures import semantic_ids as semantic_ids_figures
from app.looks import DASHES, Style, with_users
from app.reports import words
from app.reports.document import Attention, Effect, Estimate, Level, Map, Model, Report
from app.reports.walks import Drawn
from app.text import clean, label, short


def effects(report: Report, labels: Sequence[str], places: range) -> go.Figure:
    """Signed bars, a column per model, all on one scale."""
    assert report.effects is not None
    able, called = [one for one in report.effects.models if one.effect], words.titles(report)
    wide = 1 / len(able)
    reach = max((abs(one.moves[at] or 0.0) for one in able for at in places), default=0.0) or 1.0
    traces, axes = [], {}
    for column, one in enumerate(able):
        model, number = report.model(one.model), "" if column == 0 else str(column + 1)
        traces.append(
            go.Bar(
                x=[None if value is None else value / reach for value in (one.moves[at] for at in places)],
                y=list(range(len(places))),
                xaxis=f"x{number}",
                orientation="h",
                marker={"color": model.colour},
                customdata=[
                    [label(words_, 120), words.moved_rank(one, at), lines]
                    for words_, at, lines in zip(labels, places, _beside(one, places), strict=True)
                ],
                hovertemplate=f"<b>{label(called[one.model])}</b><br>without %{{customdata[0]}}: %{{customdata[1]}}"
                "%{customdata[2]}<extra></extra>",
            )
        )
        axes[f"xaxis{number}"] = {
            "domain": [column * wide + 0.01, (column + 1) * wide - 0.01],
            "range": [-1.08, 1.08],
            "showticklabels": False,
            "showgrid": False,
            "zeroline": True,
            "fixedrange": True,
            "title": {"text": model.sign, "font": {"color": model.colour}},
            "side": "top",
        }
    fig = go.Figure(traces)
    fig.update_layout(showlegend=False, bargap=0.35, height=70 + 26 * len(labels), margin=_MARGIN, **axes)
    return _rows(fig, labels)


def _beside(one: Effect, places: range) -> list[str]:
    probable = one.log_probability or [None] * len(one.effect)
    return attention_figures.beside([probable[at] for at in places], [one.effect[at] for at in places])


def overlap(called: Sequence[str], cells: Sequence[Sequence[float | None]], k: int) -> go.Figure:
    """How many items each pair of lists shares."""
    down, across = [label(name, 30) for name in called[1:]], [label(name, 30) for name in called[:-1]]
    trace = go.Heatmap(
        z=cells,
        customdata=[[[one, other] for other in across] for one in down],
        zmin=0,
        zmax=k,
        colorscale="Viridis",
        showscale=False,
        xgap=2,
        ygap=2,
        texttemplate="%{z:.0f}",
        hoverongaps=False,
        hovertemplate="%{customdata[0]} and %{customdata[1]}<br>shared items: %{z:.0f}<extra></extra>",
    )
    fig = go.Figure(trace)
    fig.update_xaxes(
        tickvals=list(range(len(across))), ticktext=across, showgrid=False, zeroline=False, fixedrange=True
    )
    fig.update_layout(height=80 + 40 * len(down), margin=_MARGIN)
    return _rows(fig, down)


def looked(found: Attention, labels: Sequence[str], colour: str) -> go.Figure:
    weights = np.array(found.looked[1])
    shown, _ = attention.strongest(weights, _names(labels))
    return attention_figures.bars(shown, colour, float(weights.mean()))


def matrix(found: Attention, labels: Sequence[str]) -> go.Figure:
    weights = np.array([[np.nan if value is None else value for value in row] for row in found.matrix])
    top = max(float(np.nanmax(weights)), 1e-6)
    return attention_figures.heatmap(weights, _names(labels[-len(weights) :]), top, "weight")


def _names(labels: Sequence[str]) -> attention.Names:
    parts = [text.partition(" · ") for text in labels]
    return attention.Names(tuple(part[0] for part in parts), tuple(part[2] or f"place {part[0]}" for part in parts))


def usage(levels: Sequence[Level]) -> go.Figure:
    return semantic_ids_figures.usage(
        [
            (
                semantic_ids_figures.Named(
                    f"level {at}",
                    Style(map_colouring.PALETTE[(at - 1) % len(map_colouring.PALETTE)], "circle", "●", DASHES[at - 1]),
                ),
                Usage(np.array(level.counts, np.int64)),
            )
            for at, level in enumerate(levels, 1)
        ]
    )


def tree(found: Drawn, colour: str) -> go.Figure:
    return graph_figures.tree(found.branches, found.item, found.titles, colour, 3)


def place(found: Map, model: Model) -> go.Figure:
    """As the page Map draws it; as SVG, since WebGL's drawing makes code at run time, which a strict page does not let it."""
    spots = [*found.history, *found.following]
    x = np.array([*found.x, *(at.x for at in spots)], np.float32)
    y = np.array([*found.y, *(at.y for at in spots)], np.float32)
    first = len(found.x)
    titles = [*(found.titles or [""] * first), *(at.title for at in spots)]
    colours = None
    if found.groups:
        known = [*found.group, *[len(found.groups)] * len(spots)]  # marks are drawn on top alone
        colours = map_colouring.Colouring("", found.column, groups=tuple(found.groups), group=np.array(known, np.int16))
    marks = Marks(
        history=tuple(range(first, first + len(found.history))),
        following=tuple(range(first + len(found.history), len(x))),
    )
    look = map_views.Look.of(False, model.colour, model.marker)
    fig = map_views.figure(Points(x, y), colours, marks, look, titles, [""] * len(titles), height=620)
    for trace in fig.data:
        if not found.titles and not trace.hovertext and trace.mode == "markers":
            trace.hoverinfo, trace.hovertemplate = "skip", None
    made = fig.to_plotly_json()
    for trace in made["data"]:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
        trace.pop("customdata", None)
    fig = go.Figure(made)
    fig.update_xaxes(range=[-30, 1_030])
    return fig


def judged(report: Report, part: Sequence[Estimate], metric: str) -> go.Figure:
    rows = [words.views_row(one.model, one.users) for one in part]
    table = pd.DataFrame([one.model_dump() for one in part]).assign(model=rows, note="")
    looks = {one.name: Style(one.colour, one.marker, one.sign, one.dash) for one in report.models}
    shown = {
        row: with_users(looks[one.model]) if one.users else looks[one.model]
        for row, one in zip(rows, part, strict=True)
    }
    called = metrics.titled(words.titles(report), rows)
    return metrics_figures.dots(table, metric, called, shown, words.families(report, rows))


_MARGIN = {"l": 8, "r": 8, "t": 36, "b": 8}


def _rows(fig: go.Figure, labels: Sequence[str]) -> go.Figure:
    return fig.update_yaxes(
        tickvals=list(range(len(labels))),
        ticktext=[label(short(clean(words_), 24)) for words_ in labels],
        autorange="reversed",
        automargin=True,
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
