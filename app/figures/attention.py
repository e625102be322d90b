"""Figures of attention. Titles come in escaped (`ticks`, `Names.hovers`); colours of text and ground are the page's."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.analysis.attention import Float, Names, Profile, distances, moves
from app.analysis.word_attention import Parts
from app.figures.style import AGAINST, FOR, QUIET, laid_out, signed_scale
from app.styles import DASHES, SCALE, SERIES
from app.text import label, ordinal, short, short_title, whole_rank, wide
from engine.runtime import judge
from engine.writing import count, in_percent

ROW = 26  # pixels of a bar with its label
_ROOM, _BESIDE, _NARROW = 44, 36, 28  # characters of a title beside bars: of a figure alone, of one of two, on a phone
_GAP = 60  # pixels between panels one beneath another: numbers of the upper one, title of the lower one
_LABELLED = 40  # positions that still get their titles at the side of a map
_HOVERED = 80  # positions whose cells still carry both titles
_BAR = {"thickness": 12, "outlinewidth": 0}  # of colours
_SHARES = {"tickformat": "~%"}  # of an axis, or a bar of colours
_CELLS = 40  # positions of one small map
OF_ATTRIBUTES = {"orientation": "h", "yref": "container", "x": 0, "xref": "container", "traceorder": "normal"}
"""Of a legend of attributes."""


def bars(
    shown: pd.DataFrame,
    colour: str,
    even: float | None,
    beside: Sequence[pd.DataFrame] = (),
    narrow: bool = False,
    quantity: str = "weight",
) -> go.Figure:
    """What the prediction looked at: one bar per position, oldest on top. shown: position, title and the quantity.

    even: an even share of it; None of what is no share, which bars show of 1. beside: what figures next to it show, on one
    scale with it.
    """
    room = _NARROW if narrow else _BESIDE if beside else _ROOM
    names = ticks(shown["position"], shown["title"], room)
    top = 1.0 if even is None else max(float(frame[quantity].max()) for frame in (shown, *beside))
    labels = [name for frame in beside for name in ticks(frame["position"], frame["title"], room)]
    form = ".3f" if even is None else ".1%"
    fig = go.Figure(
        go.Bar(
            x=shown[quantity],
            y=list(range(len(shown))),
            orientation="h",
            marker={"color": [colour if position else QUIET for position in shown["position"]]},
            customdata=hovers(shown["position"], shown["title"]),
            hovertemplate=f"%{{customdata}}<br>{quantity} %{{x:{form}}}<extra></extra>",
            text=[f"{value:{form}}" if even is None else label(in_percent(value, 1)) for value in shown[quantity]],
            textposition="outside",
            cliponaxis=False,
        )
    )
    if even is not None:
        written = top * (0.4 if narrow else 0.2 if beside else 0.1)  # what a number takes, beyond its bar
        clear = [not even - written < value <= even for value in shown[quantity]]
        fig.add_shape(type="path", path=_past(clear, even), line={"width": 1, "dash": "dot", "color": QUIET})
        fig.add_annotation(
            x=even,
            y=0,
            yref="paper",
            yanchor="top",
            text="even share",
            showarrow=False,
            font={"size": 11},
            yshift=-4,
        )
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, range=[0, top * 1.15])
    rows_downwards(fig, names)
    left = max(map(wide, [*names, *labels]), default=0) if beside else 0  # bars begin where those beside do
    margin = {"l": 8 + left, "r": 24, "t": 8, "b": 28}
    meta = {"rows": events_of(shown["position"], shown["title"])}
    return laid_out(fig, 40 + ROW * len(shown), meta=meta, bargap=0.3, margin=margin)


def _past(clear: Sequence[bool], x: float) -> str:
    """A line down at x, in the units of the figure, that pauses in each row that is not clear."""
    parts = []
    for row, whole in enumerate(clear):
        parts += [(row - 0.5, row + 0.5)] if whole else [(row - 0.5, row - 0.3), (row + 0.3, row + 0.5)]
    return "".join(f"M{x},{begins}L{x},{ends}" for begins, ends in parts)


def heatmap(weights: Float, called: Names, top: float, title: str, narrow: bool = False) -> go.Figure:
    """Rows look, columns are looked at, oldest first; blank where that is impossible. weights: [p, p]; top: where colours end."""
    size = len(called)
    places = list(range(size))
    trace = go.Heatmap(
        z=np.asarray(weights, np.float32).round(5),
        x=places,
        y=places,
        zmin=0,
        zmax=top,
        colorscale=SCALE,
        colorbar=_bar(title, **_SHARES),
        hoverongaps=False,
        xgap=1 if size <= _LABELLED else 0,
        ygap=1 if size <= _LABELLED else 0,
    )
    if size <= _HOVERED:
        pointed = called.hovers()
        trace.customdata = [[[row, column] for column in pointed] for row in pointed]
        trace.hovertemplate = "%{customdata[0]}<br>looks at %{customdata[1]}<br>%{z:.1%}<extra></extra>"
    else:
        trace.hovertemplate = "position %{y} looks at position %{x}<br>%{z:.1%}<extra></extra>"
    fig = go.Figure(trace)
    short_ones = all(number.isdigit() or number == "next" for number in called.numbers)
    long_ones = narrow and any(number.isdigit() and len(number) > 2 for number in called.numbers)
    few = _every(size, 4 if long_ones else 20 if short_ones and not narrow else 10)
    numbers = [label(called.numbers[place]) for place in few]
    fig.update_xaxes(
        tickvals=few, ticktext=numbers, title="key position", showgrid=False, constrain="domain", tickangle=0
    )
    if size <= _LABELLED:
        fig.update_yaxes(tickvals=places, ticktext=ticks(called.numbers, called.titles, 18 if narrow else 32))
    else:
        fig.update_yaxes(tickvals=few, ticktext=numbers, title="query position")
    fig.update_yaxes(autorange="reversed", showgrid=False, automargin=True, zeroline=False)
    fig.update_xaxes(zeroline=False)
    events = events_of(called.numbers, called.titles)
    return laid_out(
        fig,
        max(320, min(640, 110 + 24 * size)),
        meta={"rows": events, "columns": events},
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
    )


def filters(weights: Float, called: Names, narrow: bool = False, dark: bool = False) -> go.Figure:
    """A column per filter, a row per item, oldest on top; colours end alike on both sides of 0. weights: [filters, p]."""
    top = max(float(np.abs(weights).max()), 1e-6)
    numbers = [str(number + 1) for number in range(len(weights))]
    places = list(range(len(called)))
    fig = go.Figure(
        go.Heatmap(
            z=np.asarray(weights.T, np.float32).round(4),
            x=numbers,
            y=places,
            zmin=-top,
            zmax=top,
            **signed_scale(dark),
            colorbar=_bar("weight"),
            showscale=not narrow,
            customdata=[[hover] * len(weights) for hover in called.hovers()],
            hovertemplate="%{customdata}<br>filter %{x}: %{z:.3f}<extra></extra>",
            text=[[judge.signed(weight, ".2f") for weight in row] for row in weights.T],
            texttemplate="" if len(weights) > 8 else "%{text}",
            xgap=1,
            ygap=1,
        )
    )
    rows_downwards(fig, ticks(called.numbers, called.titles, 18 if narrow else 32))
    fig.update_xaxes(showgrid=False, zeroline=False, side="top", type="category", title="filter")
    meta = {"rows": events_of(called.numbers, called.titles)}
    return laid_out(fig, 96 + 32 * len(called), meta=meta, margin={"l": 8, "r": 8, "t": 56, "b": 8})


def steps(shares: Float, called: Names, rows: Sequence[str], narrow: bool = False) -> go.Figure:
    """What each written code looked at: positions downwards, oldest on top, a column per code. shares: [steps, positions]."""
    columns = [label(row.rpartition(": ")[2], 16) for row in rows]
    return _shares(shares, called, columns, rows, "generated codes, first to last", "weight", "looked at ", narrow)


def best_rows(shares: Float, called: Names, narrow: bool = False) -> go.Figure:
    """Which rows of items filters match: the items that rows end with downwards, oldest on top, a column per height of filters.
    shares: [heights, items], NaN where no row ends."""
    heights = [str(height + 1) for height in range(len(shares))]
    rows = [f"{count(height + 1, 'item')}{' in a row' if height else ''}" for height in range(len(shares))]
    return _shares(shares, called, heights, rows, "items in a row", "share", "up to ", narrow)


def _shares(
    shares: Float,
    called: Names,
    columns: Sequence[str],
    rows: Sequence[str],
    title: str,
    quantity: str,
    relation: str,
    narrow: bool,
) -> go.Figure:
    """Shares of each column, positions downwards, oldest on top. shares: [columns, positions]. rows: columns in longer words, as
    hovering has them; relation: of a column to a position, in words between the two."""
    places = list(range(len(called)))
    trace = go.Heatmap(
        z=np.asarray(shares.T, np.float32).round(5),
        x=list(range(len(rows))),
        y=places,
        zmin=0,
        zmax=max(float(np.nanmax(shares)), 1e-6),
        hoverongaps=False,
        colorscale=SCALE,
        colorbar=_bar(quantity, **_SHARES),
        xgap=2,
        ygap=1,
        customdata=[[[label(row, 40), hover] for row in rows] for hover in called.hovers()],
        hovertemplate=f"%{{customdata[0]}}<br>{relation}%{{customdata[1]}}<br>%{{z:.1%}}<extra></extra>",
    )
    fig = go.Figure(trace)
    fig.update_xaxes(
        tickvals=list(range(len(rows))),
        ticktext=columns,
        title=title,
        side="top",
        showgrid=False,
        zeroline=False,
        fixedrange=True,
        tickangle=0,
    )
    rows_downwards(fig, ticks(called.numbers, called.titles, 22 if narrow else _ROOM), fixedrange=True)
    line = ROW if len(called) <= _LABELLED else 16
    meta = {"rows": events_of(called.numbers, called.titles)}
    return laid_out(fig, 84 + line * len(called), meta=meta, margin={"l": 8, "r": 8, "t": 56, "b": 8})


def small_maps(weights: Float, top: float) -> go.Figure:
    """Every layer and head with one scale. weights: [layers, heads, p, p], its latest positions are shown."""
    layers, heads = weights.shape[:2]
    shown = weights[:, :, -_CELLS:, -_CELLS:]
    titles = [f"layer {layer + 1} · head {head + 1}" for layer in range(layers) for head in range(heads)]
    columns = heads if heads > 1 else min(layers, 4)  # a row per layer, unless there is one head alone
    deep = -(-layers * heads // columns)
    fig = make_subplots(deep, columns, subplot_titles=titles, horizontal_spacing=0.03, vertical_spacing=0.24 / deep)
    for at, part in enumerate(shown.reshape(-1, *shown.shape[2:])):
        trace = go.Heatmap(
            z=np.asarray(part, np.float32).round(4),
            coloraxis="coloraxis",
            hoverongaps=False,
            hovertemplate=f"{titles[at]}<br>%{{z:.1%}}<extra></extra>",
        )
        fig.add_trace(trace, at // columns + 1, at % columns + 1)
    fig.update_xaxes(showticklabels=False, ticks="", showgrid=False, zeroline=False, constrain="domain")
    # A square that is narrower than its place stays beneath its title.
    upwards = {"constrain": "domain", "constraintoward": "top"}
    fig.update_yaxes(showticklabels=False, ticks="", showgrid=False, zeroline=False, autorange="reversed", **upwards)
    for at in range(layers * heads):
        fig.update_yaxes(scaleanchor=f"x{at + 1}" if at else "x", row=at // columns + 1, col=at % columns + 1)
    fig.update_annotations(font_size=12)
    below = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", **_BAR, **_SHARES}
    fig.update_layout(coloraxis={"colorscale": SCALE, "cmin": 0, "cmax": top, "colorbar": below})
    tall = min(240, max(150, 720 // columns))
    return laid_out(fig, 96 + tall * deep, margin={"l": 8, "r": 8, "t": 32, "b": 56})


def effects(table: pd.DataFrame, colour: str, split: Sequence[go.Bar] = (), narrow: bool = False) -> go.Figure:
    """Attention on the left where there is any; the rank without each event, from the rank with it; log-probabilities beside.

    The same rows. table: of `attention.beside`. split: the bars of attention by attribute, in place of whole ones. narrow: one
    panel beneath another, for a phone.
    """
    names = ticks(table["position"], table["title"], _NARROW if narrow else _ROOM)
    pointed = hovers(table["position"], table["title"])
    places = list(range(len(table)))
    attends = bool(table["weight"].notna().any())
    probable = bool(table["log_probability"].notna().any())  # of a model that gives no probabilities: its score
    titles = [*(["attention"] if attends else []), "rank without it", "log-probability" if probable else "score"]
    panels = len(titles)
    tall = ROW * max(len(table), 1)
    whole = panels * tall + (panels - 1) * _GAP if narrow else tall
    fig = (
        make_subplots(panels, 1, subplot_titles=titles, vertical_spacing=_GAP / whole)
        if narrow
        else make_subplots(1, panels, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.04)
    )
    ranks, last = ((panels - 1, 1), (panels, 1)) if narrow else ((1, panels - 1), (1, panels))
    for trace in split:
        fig.add_trace(trace, 1, 1)
    if attends and not split:
        trace = go.Bar(
            x=table["weight"], y=places, orientation="h", marker={"color": colour}, customdata=pointed,
            hovertemplate="%{customdata}<br>attention %{x:.1%}<extra></extra>",
        )  # fmt: skip
        fig.add_trace(trace, 1, 1)
    moved = moves(table)
    now = float(table["rank"].iloc[0]) if len(table) else 1.0
    changes = [ordinal(rank) if rank == rank else "no answer" for rank in table["rank_without"]]
    trace = go.Bar(
        x=moved,
        y=places,
        base=math.log10(now),
        orientation="h",
        marker={"color": [FOR if move >= 0 else AGAINST for move in moved]},
        customdata=list(zip(pointed, changes, strict=True)),
        hovertemplate=f"%{{customdata[0]}}<br>{ordinal(now)} → %{{customdata[1]}} without it<extra></extra>",
        text=[change if move else "" for change, move in zip(changes, moved, strict=True)],
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        showlegend=False,
    )
    fig.add_trace(trace, *ranks)
    trace = go.Bar(
        x=table["log_probability" if probable else "score"],
        y=places,
        orientation="h",
        marker={"color": QUIET},
        customdata=list(zip(pointed, beside(table["log_probability"], table["score"]), strict=True)),
        hovertemplate="%{customdata[0]}%{customdata[1]}<extra></extra>",
        showlegend=False,
    )
    fig.add_trace(trace, *last)
    fig.update_xaxes(nticks=4, zeroline=True, zerolinecolor=QUIET, showgrid=False, tickangle=0)
    if attends:
        fig.update_xaxes(**_SHARES, row=1, col=1)
    fig.update_xaxes(**rank_axis(now, table["rank_without"]), zeroline=False, row=ranks[0], col=ranks[1])
    fig.add_vline(x=math.log10(now), line={"width": 1, "color": QUIET}, row=ranks[0], col=ranks[1])
    fig.update_yaxes(autorange="reversed", showgrid=False)
    labelled = {} if narrow else {"row": 1, "col": 1}
    fig.update_yaxes(tickvals=places, ticktext=names, automargin=True, zeroline=False, **labelled)
    fig.update_annotations(font_size=13)
    return laid_out(
        fig,
        (116 if split else 80) + whole,
        meta={"rows": events_of(table["position"], table["title"])},
        bargap=0.3,
        barmode="stack",
        showlegend=bool(split),
        legend={**OF_ATTRIBUTES, "y": 0, "yanchor": "bottom"},
        margin={"l": 8, "r": 12, "t": 32, "b": 64 if split else 28},
    )


def beside(log_probability: Iterable[float | None], score: Iterable[float | None]) -> list[str]:
    """Lines of a hover text: what each event adds to the log-probability, where there is one, and to the score."""
    named = (
        (("log-probability", logarithm), ("score", other))
        for logarithm, other in zip(log_probability, score, strict=True)
    )
    return [
        "".join(
            f"<br>{name} {judge.signed(value)} with it" for name, value in both if value is not None and value == value
        )
        for both in named
    ]


def rank_axis(rank: float, without: Iterable[float]) -> dict[str, Any]:
    """An axis of log10(rank) that reaches from the best of the ranks to the worst, with room for a label at either end."""
    known = [rank, *(tick for tick in without if tick == tick)]
    low, high = math.log10(min(known)), math.log10(max(known))
    low, high = (low, high) if high - low > 0.3 else (max(0.0, low - 0.3), high + 0.3)  # at least a doubling
    decades = range(math.floor(low), math.ceil(high) + 1)
    steps = (1, 2, 5) if high - low < 1.3 else (1,)
    shown = [float(step * 10**power) for power in decades for step in steps]
    shown = [tick for tick in shown if high - low > 0.4 and abs(math.log10(tick) - math.log10(rank)) > 0.15] + [rank]
    shown = [tick for tick in shown if low - 0.01 <= math.log10(tick) <= high + 0.01]
    room = 0.28 * (high - low)
    return {
        "range": [low - room, high + room],
        "tickmode": "array",
        "tickvals": [math.log10(tick) for tick in shown],
        "ticktext": [whole_rank(tick) for tick in shown],
    }


def by_distance(profile: Profile) -> go.Figure:
    """The mean weight by how far back an item is, a line per layer, beside an even spread."""
    fig = go.Figure()
    frame = distances(profile)
    for at, (layer, part) in enumerate(frame.groupby("layer")):
        fig.add_scatter(
            x=part["back"],
            y=part["weight"],
            name=f"layer {layer}",
            mode="lines+markers",
            line={"color": SERIES[at % len(SERIES)], "dash": DASHES[at % len(DASHES)], "width": 2},
            hovertemplate=f"layer {layer}<br>%{{x}} back: %{{y:.1%}}<extra></extra>",
        )
    fig.add_scatter(
        x=profile.back, y=profile.even, name="even spread", mode="lines", line={"color": QUIET, "dash": "dot", "width": 1},
        hovertemplate="even spread %{y:.1%}<extra></extra>",
    )  # fmt: skip
    fig.update_xaxes(
        autorange="reversed",
        title="items back (1 is the latest)",
        showgrid=False,
        dtick=1 if len(profile.back) <= 10 else 2,
    )
    fig.update_yaxes(rangemode="tozero", title="mean weight", **_SHARES)
    legend = {"orientation": "h", "y": 1.12, "x": 0}
    return laid_out(fig, 340, showlegend=True, legend=legend, margin={"l": 8, "r": 8, "t": 8, "b": 44})


def by_position(profile: Profile) -> go.Figure:
    """The paper's figure: mean weight of the latest positions, one square per layer, one scale."""
    layers = len(profile.rows)
    columns = min(layers, 4)
    deep = -(-layers // columns)
    titles = [f"layer {layer + 1}" for layer in range(layers)]
    fig = make_subplots(deep, columns, subplot_titles=titles, horizontal_spacing=0.08)
    back = list(profile.back)
    for layer in range(layers):
        trace = go.Heatmap(
            z=profile.rows[layer].round(5), x=back, y=back, coloraxis="coloraxis", hoverongaps=False,
            hovertemplate="%{y} back looks at %{x} back<br>%{z:.1%}<extra></extra>",
        )  # fmt: skip
        fig.add_trace(trace, layer // columns + 1, layer % columns + 1)
    fig.update_xaxes(autorange="reversed", showgrid=False, nticks=6, title="looked at, items back")
    fig.update_yaxes(showgrid=False, nticks=6)
    fig.update_annotations(font_size=12)
    top = float(np.nanmax(profile.rows))
    fig.update_layout(coloraxis={"colorscale": SCALE, "cmin": 0, "cmax": top, "colorbar": {**_BAR, **_SHARES}})
    return laid_out(fig, 60 + 320 * deep, margin={"l": 8, "r": 8, "t": 32, "b": 44})


def events_of(numbers: Iterable[object], titles: Iterable[str]) -> list[str]:
    """What the rows, or columns, of a figure are, for layout.meta: history.js lights them where the history is pointed at."""
    return [f"{number} · {label(title, 200)}" for number, title in zip(numbers, titles, strict=True)]


def ticks(positions: Iterable[str], titles: Iterable[str], room: int) -> list[str]:
    """Names of rows: the position, "" of what has none, and as much of the title as has room. The position keeps repeated titles
    apart."""
    return [
        label(title, 200) if position in ("", "next") else f"{position} · {label(short_title(title, room), 200)}"
        for position, title in zip(positions, titles, strict=True)
    ]


def hovers(positions: Iterable[str], titles: Iterable[str]) -> list[str]:
    """The same rows to who points at them."""
    return [
        (f"{position} · " if position else "") + label(title, 120)
        for position, title in zip(positions, titles, strict=True)
    ]


def _bar(title: str, **more: object) -> dict[str, object]:
    """Beside a figure, as high as it is."""
    return {**_BAR, "title": {"text": title, "side": "right"}, "len": 1, **more}


def _every(size: int, most: int) -> list[int]:
    """Places evenly apart, the last one among them; about `most`, so that their labels have room."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if size / step <= most or step == 100)
    return list(range(size - 1, -1, -step))[::-1]


def rows_downwards(fig: go.Figure, names: Sequence[str], **more: object) -> None:
    """The rows of a figure are named from the top."""
    fig.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, autorange="reversed", automargin=True, showgrid=False,
        zeroline=False, **more,
    )  # fmt: skip


# --- of words: bars of items split by attribute, told apart by colour and by pattern, and effects of an item's own words


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
            customdata=list(zip(pointed, signs, map(whole_rank, shown["rank_without"]), strict=True)),
            hovertemplate="without %{customdata[0]}<br>%{customdata[1]}: %{x:+.4f}<br>rank then %{customdata[2]}<extra></extra>",
        )
    )
    fig.update_xaxes(nticks=6, zeroline=True, zerolinecolor=QUIET, showgrid=False, title="effect on the score")
    rows_downwards(fig, names)
    margin = {"l": 8, "r": 12, "t": 8, "b": 44}
    return laid_out(fig, 64 + ROW * len(shown), bargap=0.3, margin=margin)
