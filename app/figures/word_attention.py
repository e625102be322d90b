"""Figures of words: bars of items split by attribute, told apart by colour and by pattern, and effects of an item's own words."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from app.analysis.word_attention import Parts
from app.figures.attention import events_of
from app.figures.style import AGAINST, FOR, QUIET
from app.styles import SERIES
from app.text import label, short, short_title

_PATTERNS = ("", "/", ".", "x", "-", "\\")
_HATCH = "rgba(255,255,255,.75)"
_ROW = 26  # pixels of a bar with its label


def stacked(parts: Parts) -> list[go.Bar]:
    """One trace per attribute, one row per item."""
    hovers = [
        label(f"{number} · {title}" if number else title, 120)
        for number, title in zip(parts.numbers, parts.titles, strict=True)
    ]
    return [
        go.Bar(
            x=parts.weights[:, at],
            y=list(range(len(parts))),
            orientation="h",
            name=label(name, 40),
            marker={
                "color": SERIES[at % 6],
                "pattern": {
                    "shape": _PATTERNS[at % len(_PATTERNS)],
                    "fgcolor": _HATCH,
                    "fillmode": "overlay",
                    "size": 6,
                },
            },
            customdata=[[hover, label(name, 40)] for hover in hovers],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]} %{x:.3f}<extra></extra>",
        )
        for at, name in enumerate(parts.attributes)
    ]


def items(parts: Parts, narrow: bool = False) -> go.Figure:
    """What each item got, oldest on top, split by attribute; a stroke where it would end if every word got the same."""
    places = list(range(len(parts)))
    fig = go.Figure(stacked(parts))
    top = max(float(parts.totals.max(initial=0)), float(parts.even.max(initial=0)), 1e-6)
    fig.add_scatter(
        x=parts.even, y=places, mode="markers", cliponaxis=False, showlegend=False,
        marker={"symbol": "line-ns", "size": 17, "line": {"width": 2, "color": QUIET}},
        hovertemplate="if every word got the same %{x:.3f}<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=[1.03 * top] * len(parts), y=places, mode="text", text=[f"{total:.3f}" for total in parts.totals],
        textposition="middle right",
        cliponaxis=False, showlegend=False, hoverinfo="skip",
    )  # fmt: skip
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, range=[0, top * 1.2])
    fig.update_yaxes(
        tickvals=places,
        ticktext=_ticks(parts.numbers, parts.titles, 20 if narrow else 44),
        autorange="reversed",
        automargin=True,
        showgrid=False,
        zeroline=False,
    )
    return fig.update_layout(
        height=56 + _ROW * len(parts),
        meta={"rows": events_of(parts.numbers, parts.titles)},
        dragmode=False,
        modebar={"orientation": "h"},
        barmode="stack",
        bargap=0.3,
        legend={
            "orientation": "h",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "x": 0,
            "xref": "container",
            "traceorder": "normal",
        },
        margin={"l": 8, "r": 24, "t": 40, "b": 8},
    )


def own(shown: pd.DataFrame) -> go.Figure:
    """What leaving out an attribute, or one word of it, does to the score. shown: attribute, word, effect, rank_without."""
    places = list(range(len(shown)))
    ticks, hovers = [], []
    for row in shown.itertuples():
        ticks.append(label(short(str(row.word), 22) if row.word else f"{row.attribute}, all of it", 60))
        hovers.append(label(f"{row.word} ({row.attribute})" if row.word else f"all of {row.attribute}", 120))
    signs = ["raises the score" if effect >= 0 else "lowers the score" for effect in shown["effect"]]
    fig = go.Figure(
        go.Bar(
            x=shown["effect"],
            y=places,
            orientation="h",
            marker={
                "color": [FOR if effect >= 0 else AGAINST for effect in shown["effect"]],
                "pattern": {
                    "shape": ["" if word else "/" for word in shown["word"]],
                    "fgcolor": _HATCH,
                    "fillmode": "overlay",
                    "size": 6,
                },
            },
            customdata=list(zip(hovers, signs, shown["rank_without"], strict=True)),
            hovertemplate="without %{customdata[0]}<br>%{customdata[1]}: %{x:+.4f}<br>rank then %{customdata[2]:,.0f}"
            "<extra></extra>",
        )
    )
    fig.update_xaxes(nticks=6, zeroline=True, zerolinecolor=QUIET, showgrid=False, title="effect on the score")
    fig.update_yaxes(
        tickvals=places, ticktext=ticks, autorange="reversed", automargin=True, showgrid=False, zeroline=False
    )
    return fig.update_layout(
        height=64 + _ROW * len(shown),
        dragmode=False,
        modebar={"orientation": "h"},
        bargap=0.3,
        showlegend=False,
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
    )


def _ticks(numbers: Sequence[str], titles: Sequence[str], room: int) -> list[str]:
    return [
        label(f"{number} · {short_title(title, room)}" if number else title, 200)
        for number, title in zip(numbers, titles, strict=True)
    ]
