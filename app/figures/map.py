"""The map as a figure: all items as points, and on top what stands out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from app.analysis.map_colouring import Colouring
from app.analysis.map_points import ALL, SAMPLE, Ints, Marks, Points, sample
from app.styles import GREY, PALE_GREY, SCALE
from app.text import label
from engine.writing import count

TITLED = 20_000  # points whose titles travel with them; of more, the item id alone
LEGEND = 10  # groups up to which there is a legend; of more, every point says its own
MARK = "mark"  # meta of what stands out, which the names of regions leave free
COLOUR_BAR = {
    "orientation": "h", "thickness": 10, "lenmode": "pixels", "len": 260, "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom",
    "outlinewidth": 0,
}  # fmt: skip
_BINS = 400
_FEWEST = 3  # numbers beside a colour scale
_CHANNEL = "seqscope"  # the same in every figure: Plotly keeps the view while it stays the same

Range = tuple[float, float, float, float]


@dataclass(frozen=True)
class Look:
    """Colours that depend on the theme and the model."""

    ink: str
    quiet: str
    paper: str
    accent: str
    next: str
    next_marker: str

    @classmethod
    def of(cls, dark: bool, colour: str, marker: str) -> Look:
        if dark:
            return cls("#f2f6f5", "#a3b0b1", "#111718", "#ff9d5c", colour, marker)
        return cls("#0f181a", "#556264", "#fcfcfb", "#b3261e", colour, marker)


def figure(
    points: Points,
    colours: Colouring | None,
    marks: Marks,
    look: Look,
    titles: Sequence[str],
    ids: Sequence[str],
    *,
    height: float | None = None,
    view: Range | None = None,
    shown: npt.NDArray[np.bool_] | None = None,
    backdrop: bool = True,
    legend: bool = True,
) -> go.Figure:
    """titles, ids: of every item, not escaped. view: (x0, x1, y0, y1) to show; None: everything. shown: bool [items]; None: all.
    backdrop: whether the others are faint instead of absent. legend: of the colours' groups, where they are few."""
    many = len(points) > ALL
    drawn = (
        sample(points, None if colours is None or colours.group is None else colours.group, marks.forced, SAMPLE)
        if many
        else points.items
    )
    fig = go.Figure()
    if many:
        _density(fig, points)
    if shown is not None:
        if backdrop:
            _backdrop(fig, points, drawn[~shown[drawn]])
        drawn = drawn[shown[drawn]]
    chosen = np.zeros(len(points.x), bool)
    chosen[list(marks.selection)] = True
    _crowd(fig, points, colours, drawn, chosen if marks.selection else None, titles, ids)
    _overlay(fig, points, marks, look, titles, ids)
    legend = legend and colours is not None and colours.group is not None and len(colours.groups) <= LEGEND
    return lay_out(fig, height, view, look, legend=legend)


def lay_out(fig: go.Figure, height: float | None, view: Range | None, look: Look, *, legend: bool) -> go.Figure:
    """How every map lies on the screen: one scale without axes, moved with the mouse, its view kept while it is redrawn.

    height: in pixels; None: that of the place where it is drawn.
    """
    return fig.update_layout(
        height=height,
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        dragmode="pan",
        hovermode="closest",
        uirevision=_CHANNEL,
        selectionrevision=_CHANNEL,
        showlegend=legend,
        legend={
            "orientation": "h",
            "yanchor": "top",
            "y": -0.01,
            "x": 0,
            "itemsizing": "constant",
            "itemclick": "toggleothers",
            "itemdoubleclick": "toggle",
            "title": {"text": ""},
        },
        xaxis={**_axis(view[:2] if view else None), "constraintoward": "left"},  # the bars lie over its right edge
        yaxis={**_axis(view[2:] if view else None), "scaleanchor": "x", "scaleratio": 1},
        newselection={"line": {"color": look.accent, "width": 1.5}},
    )


def as_svg(fig: go.Figure) -> go.Figure:
    """The map where there is no WebGL to draw its points with."""
    drawn = fig.to_dict()
    for trace in drawn["data"]:
        trace["type"] = trace["type"].removesuffix("gl")
    return go.Figure(drawn)


def alt(place: str, points: Points, colours: Colouring | None, marks: Marks) -> str:
    """The map in a sentence."""
    coloured = f", coloured by {colours.title.lower()}" if colours else ""
    parts = [f"Map of {count(len(points), 'item')} {place}{coloured}"]
    if history := points.at(marks.history):
        parts.append(f"the history's {count(len(history), 'item')} numbered in order")
    if following := points.at(marks.following):
        parts.append(f"the {count(len(following), 'item')} recommended next marked")
    return "; ".join(parts) + "."


def _axis(bounds: Sequence[float] | None) -> dict[str, Any]:
    axis: dict[str, Any] = {"visible": False, "showgrid": False, "zeroline": False, "automargin": False}
    if bounds is not None:
        axis["range"] = [float(bounds[0]), float(bounds[1])]
    return axis


def _density(fig: go.Figure, points: Points) -> None:
    items = points.items
    counts, x, y = np.histogram2d(points.x[items], points.y[items], bins=_BINS)
    image = np.where(counts > 0, np.log1p(counts), np.nan).T.astype(np.float32)
    fig.add_heatmap(
        z=image,
        x=(x[:-1] + x[1:]) / 2,
        y=(y[:-1] + y[1:]) / 2,
        colorscale="Greys",
        reversescale=False,
        zsmooth=False,
        showscale=False,
        hoverinfo="skip",
        opacity=0.6,
        name="Density",
    )


def _backdrop(fig: go.Figure, points: Points, items: Ints) -> None:
    """Items that pass no filter, which cannot be pointed at."""
    fig.add_scattergl(
        x=points.x[items],
        y=points.y[items],
        mode="markers",
        name="Others",
        marker={"size": 3, "opacity": 0.25, "color": GREY},
        hoverinfo="skip",
        showlegend=False,
        unselected={"marker": {"opacity": 0.25}},
    )


def _crowd(
    fig: go.Figure,
    points: Points,
    colours: Colouring | None,
    drawn: Ints,
    selection: np.ndarray | None,
    titles: Sequence[str],
    ids: Sequence[str],
) -> None:
    size = 6.0 if len(drawn) < 3_000 else 5.0 if len(drawn) < 20_000 else 3.0
    opacity = 0.7 if len(drawn) < 20_000 else 0.55

    def add(items: Ints, name: str, marker: dict[str, Any], extra: list[str] | None = None) -> None:
        if not len(items):
            return
        hover: dict[str, Any] = {"hovertemplate": "%{customdata}<extra></extra>"}
        if len(drawn) > TITLED and any(set("<&$") & set(ids[i]) for i in items):
            hover = {"text": [label(ids[i], 80) for i in items], "hovertemplate": "%{text}<extra></extra>"}
        elif len(drawn) <= TITLED:
            words = [label(titles[i], 80) for i in items]
            if extra is not None:
                words = [f"{word}<br>{more}" for word, more in zip(words, extra, strict=True)]
            hover = {"text": words, "hovertemplate": "%{text}<extra></extra>"}
        picked = {} if selection is None else {"selectedpoints": np.flatnonzero(selection[items])}
        fig.add_scattergl(
            x=points.x[items],
            y=points.y[items],
            mode="markers",
            name=name,
            customdata=[ids[i] for i in items],
            marker={"size": size, "opacity": opacity, "line": {"width": 0}, **marker},
            unselected={"marker": {"opacity": 0.12}},
            selected={"marker": {"opacity": 1}},
            **hover,
            **picked,
        )

    if colours is None:
        add(drawn, "Items", {"color": "#7d8f92"})
    elif colours.numbers is not None:
        values = colours.numbers[drawn]
        some = np.isfinite(values)
        add(drawn[~some], "No value", {"color": PALE_GREY})
        told = [f"{label(colours.title)}: {_told(value)}" for value in values[some]]
        add(
            drawn[some],
            colours.title,
            {
                "color": colours.shades(values[some]).astype(np.float32),
                "colorscale": SCALE,
                "colorbar": _bar(colours, values[some]),
            },
            told,
        )
    elif colours.group is not None:
        for place in range(len(colours.groups)):
            name = label(colours.groups[place], 28)
            items = drawn[colours.group[drawn] == place]
            marker = {"color": colours.colour(place), "symbol": colours.symbol(place)}
            add(items, name, marker, [f"{label(colours.title)}: {name}"] * len(items))


def _bar(colours: Colouring, values: np.ndarray) -> dict[str, Any]:
    title = label(colours.title) + ("" if colours.scale == "linear" else f" ({colours.scale})")
    bar: dict[str, Any] = {**COLOUR_BAR, "title": {"text": title, "side": "top"}}
    if colours.scale != "linear" and len(values):
        if colours.scale == "log":
            tens = 10.0 ** np.arange(8)
            labelled = np.concatenate([[0], np.outer(tens, (1, 3)).ravel()])
            labelled = labelled[(labelled >= values.min()) & (labelled <= values.max())]
            if len(labelled) < _FEWEST:  # of years, say: all of them lie between two of these
                even = np.linspace(values.min(), values.max(), 5)
                labelled = np.unique(even.round() if (values == values.round()).all() else even)
        else:
            labelled = np.unique(np.quantile(values, (0, 0.25, 0.5, 0.75, 1), method="nearest"))
        bar["tickvals"] = colours.shades(labelled).tolist()
        group = "" if colours.years else ","
        bar["ticktext"] = [f"{value:{group}{'.4g' if value % 1 else '.0f'}}" for value in labelled.tolist()]
    elif len(values) and (values == values.round()).all():
        bar["tickformat"] = "d"
    return bar


def _told(value: float) -> str:
    return f"{value:.4g}" if value % 1 else f"{value:.0f}"


def _overlay(
    fig: go.Figure, points: Points, marks: Marks, look: Look, titles: Sequence[str], ids: Sequence[str]
) -> None:
    def add(
        items: list[int],
        name: str,
        marker: dict[str, Any],
        words: list[str],
        texts: list[str] | None = None,
        **more: Any,
    ) -> None:
        if items:
            fig.add_scattergl(
                x=points.x[items],
                y=points.y[items],
                mode="markers+text" if texts else "markers",
                text=texts,
                hovertext=words,
                hoverinfo="text",
                customdata=[ids[i] for i in items],
                name=name,
                meta=MARK,
                marker=marker,
                showlegend=False,
                unselected={
                    "marker": {"opacity": 1},
                    "textfont": {"color": more.get("textfont", {}).get("color", look.ink)},
                },
                **more,
            )

    def named(item: int) -> str:
        return label(titles[item], 80)

    matches = points.at(marks.matches)
    add(
        matches,
        "Found",
        {"size": 15, "symbol": "circle-open", "color": look.accent, "line": {"width": 2.5}},
        [f"{named(i)}<br>found by the search" for i in matches],
    )
    if marks.chosen is not None and points.at([marks.chosen]):
        near = points.at(marks.near)
        xs, ys = [], []
        for item in near:
            xs += [points.x[marks.chosen], points.x[item], np.nan]
            ys += [points.y[marks.chosen], points.y[item], np.nan]
        if near:
            line = {"color": look.accent, "width": 1}
            add_line(fig, np.array(xs, np.float32), np.array(ys, np.float32), "To neighbours", line)
        add(
            near,
            "Neighbours",
            {"size": 11, "color": look.accent, "line": {"width": 1, "color": look.paper}},
            [f"{named(i)}<br>neighbour {marks.near.index(i) + 1}" for i in near],
        )
    following = points.at(marks.following)
    places = {item: place for place, item in enumerate(marks.following, 1)}
    add(
        following,
        "Next",
        {
            "size": 19,
            # Plotly paints the outline of an open symbol in its own colour, which here is the paper's
            "symbol": look.next_marker.removesuffix("-open"),
            "color": look.paper,
            "line": {"width": 2.5, "color": look.next},
        },
        [f"{named(i)}<br>recommended next, rank {places[i]}" for i in following],
        [str(places[i]) if places[i] < 100 else "" for i in following],
        textposition="middle center",
        textfont={"color": look.ink, "size": 10},
    )
    path_line(fig, points, points.at(marks.history), look)
    steps = named_places(marks.history)
    items = points.at(steps)
    add(
        items,
        "History",
        {"size": 20, "color": look.ink, "line": {"width": 1.5, "color": look.paper}},
        [f"{named(i)}<br>history, place {steps[i]}" for i in items],
        [steps[i].split(", ")[-1] for i in items],
        textposition="middle center",
        textfont={"color": look.paper, "size": 11},
    )
    if marks.chosen is not None and points.at([marks.chosen]):
        add(
            [marks.chosen],
            "Chosen",
            {"size": 18, "symbol": "star", "color": look.accent, "line": {"width": 1.5, "color": look.paper}},
            [f"{named(marks.chosen)}<br>chosen"],
        )


def named_places(history: Sequence[int]) -> dict[int, str]:
    """Item → its places in the history, "2, 5" where it stands there twice."""
    names: dict[int, str] = {}
    for place, item in enumerate(history, 1):
        names[item] = f"{names[item]}, {place}" if item in names else str(place)
    return names


def path_line(fig: go.Figure, points: Points, history: list[int], look: Look) -> None:
    """A line through the history, whose places are numbered. No arrows: Plotly lays each out again in every frame of a pan."""
    if len(history) > 1:
        line = {"color": look.ink, "width": 1.5}
        add_line(fig, points.x[history], points.y[history], "Path", line, opacity=0.7)


def add_line(fig: go.Figure, x: np.ndarray, y: np.ndarray, name: str, line: dict[str, Any], **more: object) -> None:
    """Which cannot be pointed at."""
    fig.add_scattergl(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False, name=name, **more)


def verdict(trustworthiness: float) -> str:
    """What a trustworthiness allows to read off a map."""
    if trustworthiness >= 0.95:
        return "neighbourhoods are reliable."
    if trustworthiness >= 0.85:
        return "most neighbourhoods are reliable."
    return "read neighbourhoods with care; an item's details list its exact nearest items."
