"""The figures of a report as SVG, from numbers and plain texts: bars, signed bars, dots with intervals, cells, lines, points."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from app.figures.graph_paths import PathTree
from app.figures.style import ticks
from app.reports.svg import FILL, WIDTH, Svg, fit, readable, viridis
from app.styles import PALETTE


class Bar(NamedTuple):
    label: str
    value: float
    words: str
    """The value, as it is written beside the bar."""


def bars(rows: Sequence[Bar], colour: str, alt: str, *, even: float | None = None, font: str = "") -> Markup:
    """Horizontal bars from 0, the first on top. even: where a dotted line says what an even share would be."""
    left, right, step = 190, 56, 24
    svg = Svg(step * len(rows) + (22 if even is not None else 6))
    top = max([row.value for row in rows] + [even or 0, 1e-12])
    wide = WIDTH - left - right
    if even is not None:
        x = left + wide * even / top
        svg.line(x, 0, x, step * len(rows) + 2, dash="2 3")
        svg.text(x, step * len(rows) + 16, "even share", "quiet", size=11, anchor="middle")
    for at, row in enumerate(rows):
        y = at * step
        svg.text(left - 8, y + 16, fit(row.label, left - 12), anchor="end")
        _bar(svg, left, y, max(wide * row.value / top, 0.5), colour, f"{row.label}: {row.words}")
        svg.text(WIDTH - 4, y + 16, row.words, "quiet", size=12, anchor="end")
    return svg.done(alt, font)


def _bar(svg: Svg, x: float, row: float, length: float, colour: str, hint: str) -> None:
    """row: where the row of the bar begins."""
    svg.add("rect", hint=hint, x=x, y=row + 4, width=length, height=15, fill=colour)


class Column(NamedTuple):
    sign: str
    colour: str
    values: Sequence[float | None]
    words: Sequence[str]
    """What each bar says to who points at it."""
    figures: Sequence[str]
    """What is written beside each bar, where there is room."""


def effects(labels: Sequence[str], columns: Sequence[Column], alt: str, *, font: str = "") -> Markup:
    """Signed bars: one row per event, one column per model, all on one scale."""
    left, step, head = 190, 24, 22
    wide = max(44.0, min(96.0, (2 * WIDTH - left) / max(len(columns), 1)))
    svg = Svg(head + step * len(labels) + 4, max(WIDTH, left + wide * len(columns)))
    reach = max((abs(value) for column in columns for value in column.values if value is not None), default=0.0) or 1.0
    for at, words in enumerate(labels):
        svg.text(left - 8, head + at * step + 16, fit(words, left - 12), anchor="end")
    for place, column in enumerate(columns):
        middle = left + wide * (place + 0.5)
        svg.text(middle, 15, column.sign, anchor="middle", fill=column.colour)
        svg.line(middle, head, middle, head + step * len(labels))
        for at, value in enumerate(column.values):
            if value is not None:
                y, right = head + at * step, value >= 0
                long = (wide / 2 - 4) * abs(value) / reach
                begins = middle if right else middle - long
                _bar(svg, begins, y, long, column.colour, f"{labels[at]}: {column.words[at]}")
                if len(column.figures[at]) * 6 <= wide / 2 - 6:  # the bar's other side is empty
                    x, anchor = (middle - 4, "end") if right else (middle + 4, "start")
                    svg.text(x, y + 15, column.figures[at], "quiet", size=10, anchor=anchor)
    return svg.done(alt, font)


class Dot(NamedTuple):
    label: str
    mean: float
    low: float
    high: float
    colour: str
    marker: str
    note: str


def dots(rows: Sequence[Dot], words: str, alt: str, *, floor: float | None = None, font: str = "") -> Markup:
    """One dot per row with its interval, on one axis. words: what the axis measures. floor: where a dotted line
    says what counting alone reaches."""
    left, right, step = 172, 16, 28
    svg = Svg(step * len(rows) + 44)
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    span = (high - low) or 1.0
    low, high = max(0.0, low - 0.05 * span) if low >= 0 else low - 0.05 * span, high + 0.3 * span

    def at(value: float) -> float:
        return left + (WIDTH - left - right) * (value - low) / (high - low)

    bottom = step * len(rows) + 4
    for tick in ticks(low, high, 5):
        svg.line(at(tick), 0, at(tick), bottom, dash="1 4")
        svg.text(at(tick), bottom + 15, f"{tick:.10g}", "quiet", size=11, anchor="middle")
    if floor is not None:
        svg.line(at(floor), 0, at(floor), bottom, dash="2 3")
    for place, row in enumerate(rows):
        y = place * step + step / 2
        svg.text(left - 10, y + 4, fit(row.label, left - 14), anchor="end")
        svg.text(at(row.high) + 10, y + 4, row.note, "quiet", size=11)
        svg.line(at(row.low), y, at(row.high), y, row.colour, width=2)
        hint = f"{row.label}: {row.mean:.4f} ({row.low:.4f} – {row.high:.4f})"
        svg.marker(at(row.mean), y, row.marker, row.colour, hint=hint)
    svg.text(left + (WIDTH - left - right) / 2, bottom + 34, words, "quiet", size=12, anchor="middle")
    return svg.done(alt, font)


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    alt: str,
    *,
    top: float,
    form: str = "",
    font: str = "",
) -> Markup:
    """Cells from 0 (dark) to `top` (bright), blank where a value is None. form: how the number in a cell is written, if it is."""
    left, foot = 150, 22
    size = min(40.0, max(7.0, (WIDTH - left) / max(len(columns), 1)))
    svg = Svg(size * len(rows) + foot)
    every = max(1, math.ceil(13 / size))  # labels need some room
    for at, words in enumerate(rows):
        if (len(rows) - 1 - at) % every == 0:
            svg.text(left - 8, at * size + size / 2 + 4, fit(words, left - 12), size=12, anchor="end")
        for place, value in enumerate(values[at]):
            if value is None:
                continue
            x, y, share = left + place * size, at * size, value / top if top > 0 else 0.0
            written = form.format(value) if form else f"{value:.3f}"
            gap = 1.0 if size > 12 else 0.0
            hint, side = f"{words}, {columns[place]}: {written}", size - gap
            svg.add("rect", hint=hint, x=x, y=y, width=side, height=side, fill=viridis(share))
            if form:
                svg.text(x + size / 2, y + size / 2 + 4, written, size=12, anchor="middle", fill=readable(share))
    skip = max(1, math.ceil(26 / size))
    for place, words in enumerate(columns):
        if (len(columns) - 1 - place) % skip == 0:
            x, y = left + (place + 0.5) * size, size * len(rows) + 15
            svg.text(x, y, fit(words, size * skip), "quiet", size=11, anchor="middle")
    return svg.done(alt, font)


class Series(NamedTuple):
    name: str
    colour: str
    dash: str
    values: Sequence[float]


_DASHES = {
    "solid": "",
    "dash": "7 4",
    "dot": "2 3",
    "dashdot": "7 3 2 3",
    "longdash": "11 4",
    "longdashdot": "11 3 2 3",
}


def lines(
    series: Sequence[Series],
    across: str,
    upwards: str,
    alt: str,
    *,
    even: Sequence[tuple[float, int]] = (),
    font: str = "",
) -> Markup:
    """Values by their place, from 1. even: flat dotted lines, (height, last place) each."""
    left, deep, head = 52, 170, 20 * math.ceil(len(series) / 2) + 20
    svg = Svg(head + deep + 40)
    most = max(len(line.values) for line in series)
    top = max([max(line.values, default=0) for line in series] + [height for height, _ in even]) or 1.0
    wide = WIDTH - left - 10

    def at(x: float, y: float) -> tuple[float, float]:
        return left + wide * x / max(most - 1, 1), head + deep * (1 - y / top)

    for tick in ticks(0, top, 4):
        _, y = at(0, tick)
        svg.line(left, y, WIDTH - 10, y, dash="1 4")
        svg.text(left - 6, y + 4, f"{tick:,.6g}", "quiet", size=11, anchor="end")
    for tick in sorted({1, *(int(t) for t in ticks(1, most, 6) if t >= 1)}):
        svg.text(at(tick - 1, 0)[0], head + deep + 15, f"{tick:,}", "quiet", size=11, anchor="middle")
    for height, last in even:
        svg.line(*at(0, height), *at(last - 1, height), dash="2 3")
    for place, line in enumerate(series):
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in (at(i, value) for i, value in enumerate(line.values)))
        look = {"stroke_dasharray": _DASHES[line.dash]} if _DASHES.get(line.dash) else {}
        svg.add("path", look, d=path, fill="none", stroke=line.colour, stroke_width=2)
        x, y = left + (place % 2) * wide / 2, 20 * (place // 2) + 12
        svg.add("line", look, x1=x, y1=y - 4, x2=x + 22, y2=y - 4, stroke=line.colour, stroke_width=2)
        svg.text(x + 28, y, fit(line.name, wide / 2 - 40), size=12)
    svg.text(left + wide / 2, head + deep + 34, across, "quiet", size=12, anchor="middle")
    svg.text(0, head - 8, upwards, "quiet", size=12)
    return svg.done(alt, font)


_COLUMNS = (84.0, 180.0, 448.0, 566.0)  # of a tree
_TREE, _ROW, _TOP, _PEOPLE = 820.0, 32, 22, 84


def tree(tree: PathTree, alt: str, *, font: str = "") -> Markup:
    """History → its items → their people → items of these."""
    svg = Svg(_TOP + _ROW * tree.rows, _TREE)

    def down(height: float) -> float:
        return _TOP + _ROW * (height - 0.2)

    for line in tree.lines:
        begins, stops = _COLUMNS[line.column], _COLUMNS[line.column + 1]
        first, last, middle = down(line.begins), down(line.stops), (begins + stops) / 2
        way = f"M{begins:.1f} {first:.1f}C{middle:.1f} {first:.1f} {middle:.1f} {last:.1f} {stops:.1f} {last:.1f}"
        svg.add("path", d=way, fill="none", stroke=line.shade, stroke_width=line.width, stroke_opacity=0.5)
    for node in tree.nodes:
        x, y = _COLUMNS[node.column], down(node.height)
        svg.add("circle", hint=f"{node.name}: {node.more}" if node.more else "", cx=x, cy=y, r=5, fill=node.shade)
        if node.column == 0:
            svg.text(x - 9, y + 4, node.name, size=12, anchor="end")
        elif node.column == 1:  # both names between an item and its people stand on the line that joins them
            svg.text(x + 3, y - 8, fit(node.name, _COLUMNS[2] - x - _PEOPLE, 12), size=12)
        elif node.column == 2:
            svg.text(x + 3, y - 8, node.name, size=12, anchor="end")
        else:
            svg.text(x + 9, y + 4, fit(node.name, _TREE - x - 10, 12), size=12)
    return svg.done(alt, font)


class Spot(NamedTuple):
    x: float
    y: float
    words: str
    hint: str


def points(
    x: Sequence[float],
    y: Sequence[float],
    colours: Sequence[str],
    alt: str,
    *,
    path: Sequence[Spot] = (),
    following: Sequence[Spot] = (),
    accent: str = PALETTE["blue"].colour,
    hints: Sequence[str] = (),
    font: str = "",
) -> Markup:
    """Points from 0 to 1,000 upwards, each with its colour; on top a numbered path, and numbered rings for what follows."""
    wide, edge = 640.0, 14.0
    tall = max([*y, *(spot.y for spot in (*path, *following)), 1.0])
    scale = (wide - 2 * edge) / 1_000
    svg = Svg(tall * scale + 2 * edge, wide)

    def at(px: float, py: float) -> tuple[float, float]:
        return edge + px * scale, edge + (tall - py) * scale

    for place, (px, py, colour) in enumerate(zip(x, y, colours, strict=True)):
        cx, cy = at(px, py)
        svg.add("circle", hint=hints[place] if hints else "", cx=cx, cy=cy, r=2.4, fill=colour, fill_opacity=0.55)
    for before, after in itertools.pairwise(path):
        (x1, y1), (x2, y2) = at(before.x, before.y), at(after.x, after.y)
        svg.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="path", stroke=FILL["ink"], stroke_width=1.4)
    for spot in following:
        cx, cy = at(spot.x, spot.y)
        svg.add(
            "circle", hint=spot.hint, class_="ring", cx=cx, cy=cy, r=9.5, fill=FILL["paper"], stroke=accent, stroke_width=2.5
        )  # fmt: skip
        svg.text(cx, cy + 3.6, spot.words, size=10, anchor="middle")
    for spot in path:
        cx, cy = at(spot.x, spot.y)
        svg.add("circle", hint=spot.hint, class_="step", cx=cx, cy=cy, r=9.5, fill=FILL["ink"])
        svg.text(cx, cy + 4, spot.words, "paper", size=11, anchor="middle")
    return svg.done(alt, font)
