"""Figures of words: bars of items split by attribute, told apart by colour and by pattern, and effects of an item's own words."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from app.analysis.word_attention import Parts
from app.figures.attention import OF_ATTRIBUTES, ROW, events_of, hovers, rows_downwards, ticks
from app.figures.style import AGAINST, FOR, QUIET, laid_out
from app.styles import SERIES
from app.text import label, short

_PATTERNS = ("", "/", ".", "x", "-", "\\")
_HATCHED = {"fgcolor": "rgba(255,255,255,.75)", "fillmode": "overlay", "size": 6}


def stacked(parts: Parts) -> list[go.Bar]:
    """One trace per attribute, one row per item."""
    pointed = hovers(parts.numbers, parts.titles)
    return [
        go.Bar(
            x=parts.weights[:, at],
            y=list(range(len(parts))),
            orientation="h",
            name=label(name, 40),
            marker={
                "color": SERIES[at % 6],
                "pattern": {"shape": _PATTERNS[at % len(_PATTERNS)], **_HATCHED},
            },
            customdata=[[hover, label(name, 40)] for hover in pointed],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]} %{x:.1%}<extra></extra>",
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
        hovertemplate="if every word got the same %{x:.1%}<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=[1.03 * top] * len(parts), y=places, mode="text", text=[f"{total:.1%}" for total in parts.totals],
        textposition="middle right",
        cliponaxis=False, showlegend=False, hoverinfo="skip",
    )  # fmt: skip
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, range=[0, top * 1.2])
    rows_downwards(fig, ticks(parts.numbers, parts.titles, 20 if narrow else 44))
    return laid_out(
        fig,
        56 + ROW * len(parts),
        meta={"rows": events_of(parts.numbers, parts.titles)},
        barmode="stack",
        bargap=0.3,
        showlegend=len(parts.attributes) > 1,
        legend={**OF_ATTRIBUTES, "y": 1, "yanchor": "top"},
        margin={"l": 8, "r": 24, "t": 40, "b": 8},
    )


def token_ablation(shown: pd.DataFrame) -> go.Figure:
    """What leaving out an attribute, or one word of it, does to the score. shown: attribute, word, effect, rank_without."""
    places = list(range(len(shown)))
    names, pointed = [], []
    for row in shown.itertuples():
        names.append(label(short(str(row.word), 22) if row.word else f"{row.attribute}, all of it", 60))
        pointed.append(label(f"{row.word} ({row.attribute})" if row.word else f"all of {row.attribute}", 120))
    signs = ["raises the score" if effect >= 0 else "lowers the score" for effect in shown["effect"]]
    fig = go.Figure(
        go.Bar(
            x=shown["effect"],
            y=places,
            orientation="h",
            marker={
                "color": [FOR if effect >= 0 else AGAINST for effect in shown["effect"]],
                "pattern": {"shape": ["" if word else "/" for word in shown["word"]], **_HATCHED},
            },
            customdata=list(zip(pointed, signs, shown["rank_without"], strict=True)),
            hovertemplate="without %{customdata[0]}<br>%{customdata[1]}: %{x:+.4f}<br>rank then %{customdata[2]:,.0f}"
            "<extra></extra>",
        )
    )
    fig.update_xaxes(nticks=6, zeroline=True, zerolinecolor=QUIET, showgrid=False, title="effect on the score")
    rows_downwards(fig, names)
    margin = {"l": 8, "r": 12, "t": 8, "b": 44}
    return laid_out(fig, 64 + ROW * len(shown), bargap=0.3, margin=margin)
