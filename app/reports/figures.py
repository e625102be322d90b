"""The figures of a report: each drawn as SVG, and again for Plotly where a report may be pointed at and zoomed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from app.analysis import baselines
from app.analysis.map_colouring import GROUPS, NOTHING, OTHER, PALETTE
from app.figures import graph_tree
from app.looks import DASHES
from app.reports import drawn, walks, words
from app.reports.document import Attention, Codes, Estimate, Graph, Map, Part, Position, Report, Walks
from app.reports.tables import titled
from app.text import clean, count, short
from engine.runtime import judge

if TYPE_CHECKING:
    import plotly.graph_objects as go

PALE, NO_VALUE = "#8a9496", "#b9c2c0"
_STRONGEST = 12  # bars of one model's attention
_EVENTS = 24  # rows of the effects


class Figure(NamedTuple):
    """One figure. key: unique in the report."""

    key: str
    part: Part
    about: str
    """The model or tokenizer that it is of; "" where of several."""
    alt: str
    draw: Callable[[str], Markup]
    """font → SVG; "" takes the page's."""
    live: Callable[[], go.Figure]
    wide: bool = False
    """A phone scrolls it rather than making it small."""


def figures(report: Report) -> list[Figure]:
    found: list[Figure] = []
    for make in (_effects, _overlap, _attention, _codes, _graph, _map, _metrics):
        found += make(report)
    return found


def latest(report: Report) -> range:
    """The places of the history whose effects are drawn: the latest ones."""
    effects = report.effects
    length = max((len(one.effect) for one in effects.models), default=0) if effects is not None else 0
    return range(max(0, length - _EVENTS), length)


def event_labels(report: Report) -> list[str]:
    """Place and title of every event; the place alone where the history is not told."""
    history, names = report.asked.history, titled(report)
    if history is None:
        return [str(at + 1) for at in range(max(latest(report), default=-1) + 1)]
    return [f"{at} · {clean(names.get(item_id, item_id), 120)}" for at, item_id in enumerate(history, 1)]


def _effects(report: Report) -> list[Figure]:
    found = report.effects
    able = [one for one in found.models if one.effect] if found is not None else []
    if found is None or not able:
        return []
    places, labels = latest(report), event_labels(report)

    def draw(font: str) -> Markup:
        columns = [
            drawn.Column(
                report.model(one.model).sign,
                report.model(one.model).colour,
                [one.moves[at] for at in places],
                [words.moved_rank(one, at) for at in places],
            )
            for one in able
        ]
        return drawn.effects([labels[at] for at in places], columns, alt, font=font)

    def live() -> go.Figure:
        from app.reports import live

        return live.effects(report, [labels[at] for at in places], places)

    alt = f"What leaving out each item of the history does to the rank of {clean(found.title, 80)}, a column per model"
    return [Figure("effects", "effects", "", alt, draw, live, wide=True)]


def _overlap(report: Report) -> list[Figure]:
    found = report.overlap
    if found is None:
        return []
    called = [words.titles(report)[name] for name in found.models]
    cells = [[value if place < at else None for place, value in enumerate(row)] for at, row in enumerate(found.shared)]
    cells = [row[:-1] for row in cells[1:]]  # each pair once

    def draw(font: str) -> Markup:
        signs = [report.model(name).sign for name in found.models[:-1]]
        return drawn.heatmap(called[1:], signs, cells, alt, top=float(report.asked.k), form="{:.0f}", font=font)

    def live() -> go.Figure:
        from app.reports import live

        return live.overlap(called, cells, report.asked.k)

    alt = f"How many of their first {report.asked.k} items each pair of {len(called)} models shares"
    return [Figure("overlap", "overlap", "", alt, draw, live)]


def _attention(report: Report) -> list[Figure]:
    return [one for found in report.attention or [] if found.cannot is None for one in _looked(report, found)]


def _looked(report: Report, found: Attention) -> list[Figure]:
    model, title, names = report.model(found.model), words.titles(report)[found.model], titled(report)
    labels = [_position(position, names) for position in found.positions]
    positions, weights = found.looked
    looked = [_position(position, names) for position in positions]
    even = sum(weights) / max(len(weights), 1)

    def bars(font: str) -> Markup:
        kept = sorted(sorted(range(len(looked)), key=lambda at: -weights[at])[:_STRONGEST])
        rows = [drawn.Bar(looked[at], weights[at], f"{weights[at]:.3f}") for at in kept]
        return drawn.bars(rows, model.colour, alt, even=even, font=font)

    def cells(font: str) -> Markup:
        own = labels[-len(found.matrix) :]
        numbers = [label.partition(" · ")[0] for label in own]
        top = max((value for row in found.matrix for value in row if value is not None), default=1.0)
        return drawn.heatmap(own, numbers, found.matrix, alt_map, top=top, font=font)

    def live_bars() -> go.Figure:
        from app.reports import live

        return live.looked(found, looked, model.colour)

    def live_cells() -> go.Figure:
        from app.reports import live

        return live.matrix(found, labels)

    alt = f"What {title} looked at, by position, oldest on top"
    alt_map = f"Attention of {title}, position by position: rows look, columns are looked at, oldest first"
    return [
        Figure(f"attention-{found.model}", "attention", found.model, alt, bars, live_bars),
        Figure(f"attention-{found.model}-map", "attention", found.model, alt_map, cells, live_cells),
    ]


def _position(position: Position, names: dict[str, str]) -> str:
    if position.place is None:
        return "next · the next item"
    title = names.get(position.item_id or "")
    return f"{position.place} · {clean(title, 120)}" if title else str(position.place)


def _codes(report: Report) -> list[Figure]:
    return [_usage(one, at) for at, one in enumerate(report.codes or []) if one.levels]


def _usage(found: Codes, at: int) -> Figure:
    levels = found.levels[: len(DASHES)]

    def draw(font: str) -> Markup:
        series = [
            drawn.Series(f"level {place}", PALETTE[(place - 1) % len(PALETTE)], DASHES[place - 1], level.counts)
            for place, level in enumerate(levels, 1)
        ]
        return drawn.lines(
            series, "codes, the most used first", "items", alt, even=sum(levels[0].counts) / levels[0].size, font=font
        )

    def live() -> go.Figure:
        from app.reports import live

        return live.usage(levels)

    alt = f"Items per code of {clean(found.title, 60)}, the most used first, a line per level"
    return Figure(f"codes-{found.tokenizer}", "codes", found.tokenizer, alt, draw, live)


def _graph(report: Report) -> list[Figure]:
    found = report.graph
    return [] if found is None else [_tree(report, found, one) for one in found.models if one.branches]


def _tree(report: Report, found: Graph, one: Walks) -> Figure:
    again, colour = walks.drawn(found, one), report.model(one.model).colour

    def draw(font: str) -> Markup:
        return drawn.tree(graph_tree.tree(again.branches, again.item, again.titles, colour), alt, font=font)

    def live() -> go.Figure:
        from app.reports import live

        return live.tree(again, colour)

    title = words.titles(report)[one.model]
    alt = f"{title}: a tree of paths from the history through its items and their people to {clean(found.title, 80)} and others"
    return Figure(f"graph-{one.model}", "graph", one.model, alt, draw, live, wide=True)


def group_colours(found: Map) -> list[str]:
    """A colour per group, as the page Map has them."""
    return [
        NO_VALUE if name == NOTHING else PALE if name == OTHER or at >= GROUPS else PALETTE[at]
        for at, name in enumerate(found.groups)
    ]


def _map(report: Report) -> list[Figure]:
    found = report.map
    if found is None or found.cannot is not None:
        return []
    model = report.model(found.model)

    def draw(font: str) -> Markup:
        palette = group_colours(found)
        colours = [palette[at] for at in found.group] or ["#7d8f92"] * len(found.x)
        steps = [drawn.Spot(at.x, at.y, str(at.place), f"{at.place} · {short(at.title, 80)}") for at in found.history]
        rings = [
            drawn.Spot(at.x, at.y, str(at.place), f"list, {at.place}: {short(at.title, 80)}") for at in found.following
        ]
        return drawn.points(
            found.x,
            found.y,
            colours,
            alt,
            path=steps,
            following=rings,
            accent=model.colour,
            hints=found.titles,
            font=font,
        )

    def live() -> go.Figure:
        from app.reports import live

        return live.place(found, model)

    alt = f"Map of {found.total:,} items by {words.space(found, report)}, with the history and its list"
    return [Figure("map", "map", found.model, alt, draw, live, wide=True)]


def _metrics(report: Report) -> list[Figure]:
    found = report.metrics
    if found is None:
        return []
    name, called = f"{judge.HEADLINE}@{found.k}", words.judged_rows(report)
    best_first = sorted((one for one in found.estimates if one.metric == name), key=lambda one: -one.mean)
    own = {words.views_row(one.model, one.users): one for one in best_first}
    families = words.families(report, own)
    part = [own[row] for row in baselines.first(own, families)]
    counted = baselines.best({row: one.mean for row, one in own.items()}, families)
    marks = {"best": "best", "level": "level with the best", "": ""}

    def draw(font: str) -> Markup:
        rows = []
        for one in part:
            model = report.model(one.model)
            marker = f"{model.marker}-dot" if one.users else model.marker
            title = called[one.model, one.users]
            rows.append(drawn.Dot(title, *_span(one), model.colour, marker, marks[one.mark]))
        return drawn.dots(rows, name, alt, floor=None if counted is None else counted[1], font=font)

    def live() -> go.Figure:
        from app.reports import live

        return live.judged(report, part, name)

    models = count(len({one.model for one in part}), "model")
    alt = f"{name} of {models} with 95 % intervals: popularity and the Markov chain, then best on top"
    return [Figure("metrics", "metrics", "", alt, draw, live)] if part else []


def _span(one: Estimate) -> tuple[float, float, float]:
    return one.mean, one.low, one.high
