"""The beam as a figure: steps from left to right, likely prefixes broad, those not followed faint, items at the right."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from app.analysis.beam_search import BeamTree
from app.figures.style import AGAINST, NAMED_TICKS, QUIET, WIDTHS, bend
from app.text import apart, clean, label, wide

LINE = 26  # pixels of an identifier with its title: a code above a node is clear of the broadest line
TITLE, NARROW = 28, 22  # characters of a title, on a phone
_FADED = 0.35  # of what was kept for a while and then given up
_BENDS = 15  # points of a line between two steps


def beam(tree: BeamTree, colour: str, levels: Sequence[str], narrow: bool = False) -> dict[str, Any]:
    """A figure. levels: what the steps are called. narrow: on a phone."""
    trace = tree.trace
    share = np.exp(trace.scores.astype(float))
    root = float(np.nanmean([tree.heights[row] for row in _roots(tree)] or [0.5]))
    traces: list[dict[str, Any]] = []
    quiet = [row for row in range(len(trace)) if tree.drawn[row] and not trace.kept[row]]
    traces.append(_lines(tree, quiet, root, QUIET, 1.0, "dot", 0.5))
    thick = np.clip(np.searchsorted((0.002, 0.01, 0.05, 0.15, 0.4), share), 0, len(WIDTHS) - 1)
    alive = tree.alive
    for place, width in enumerate(WIDTHS):
        for which, opacity in ((trace.kept & ~alive, _FADED), (alive, 0.85)):
            rows = np.flatnonzero(which & (thick == place)).tolist()
            traces.append(_lines(tree, rows, root, colour, width, "solid", opacity))
    traces = [drawn_trace for drawn_trace in traces if drawn_trace["x"]]
    last = set(tree.ends)
    kept = np.flatnonzero(trace.kept).tolist()
    wrong = [row for row in kept if row in last and not len(trace.items[row])]
    right = [row for row in kept if row not in wrong]
    sizes = 6 + 12 * np.sqrt(share)
    for rows, look, text in (
        (quiet, {"color": QUIET, "opacity": 0.6, "size": 5, "symbol": "circle-open"}, False),
        (
            right,
            {
                "color": colour,
                "size": sizes[right].tolist(),
                "opacity": np.where(alive[right], 1, _FADED).tolist(),
                "line": {"width": 0},
            },
            True,
        ),
        (wrong, {"color": AGAINST, "size": 9, "symbol": "x"}, True),
    ):
        if rows:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers+text" if text else "markers",
                    "x": trace.depths[rows].tolist(),
                    "y": tree.heights[rows].tolist(),
                    "marker": look,
                    "textposition": "top center",
                    "textfont": {"size": 10},
                    "cliponaxis": False,
                    "customdata": [_hover(tree, row, share[row]) for row in rows],
                    "hovertemplate": "%{customdata}<extra></extra>",
                }
            )
            if text:
                traces[-1]["text"] = [label(tree.paths[row][-1], 20) for row in rows]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [0],
            "y": [root],
            "marker": {"color": QUIET, "size": 10, "symbol": "square"},
            "hovertemplate": "the history, before anything is generated<extra></extra>",
        }
    )
    steps = len(trace.considered)
    heads = [_head(trace, step, levels) for step in range(steps)]
    room = NARROW if narrow else TITLE
    titles = iter(apart([tree.titles[row][0] for row in tree.ends if len(trace.items[row])], room))
    ends = [clean(_end(tree, row, titles), 60) for row in tree.ends]
    return {
        "data": traces,
        "layout": {
            "xaxis": {
                **NAMED_TICKS,
                "range": [-0.15, steps + 0.12],
                "tickvals": list(range(steps + 1)),
                "ticktext": ["history", *heads],
                "tickfont": {"size": 11},
                "tickangle": 0,
                "side": "top",
            },
            "yaxis": {
                **NAMED_TICKS,
                "range": [tree.height + 0.2, -0.5],
                "tickvals": [float(tree.heights[row]) for row in tree.ends],
                "ticktext": [label(end) for end in ends],
                "tickfont": {"size": 11},
                "side": "right",
                "automargin": True,
            },
            "height": int(104 + LINE * max(tree.height, 4)),
            # With room for its labels from the start, a figure is not drawn a second time.
            "margin": {"l": 18, "r": 18 + max((wide(end, 11) for end in ends), default=0), "t": 70, "b": 8},
            "showlegend": False,
            "hoverlabel": {"align": "left"},
            "dragmode": False,
        },
    }


def _roots(tree: BeamTree) -> list[int]:
    rows = np.flatnonzero(tree.drawn & (tree.trace.parents < 0))
    alive = rows[tree.trace.kept[rows]]
    return (alive if len(alive) else rows).tolist()


def _lines(
    tree: BeamTree, rows: list[int], root: float, colour: str, width: float, dash: str, opacity: float
) -> dict[str, Any]:
    """The ways to these prefixes from those before them, as one trace."""
    along = np.linspace(0, 1, _BENDS)
    rise = bend(along)
    across: list[float | None] = []
    down: list[float | None] = []
    for row in rows:
        parent, depth = int(tree.trace.parents[row]), int(tree.trace.depths[row])
        start, end = root if parent < 0 else float(tree.heights[parent]), float(tree.heights[row])
        if abs(end - start) < 1e-6:
            across += [depth - 1, depth, None]
            down += [start, end, None]
            continue
        across += [*(depth - 1 + along).round(3).tolist(), None]
        down += [*(start + (end - start) * rise).round(3).tolist(), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": across,
        "y": down,
        "line": {"color": colour, "width": width, "dash": dash},
        "opacity": opacity,
        "hoverinfo": "skip",
    }


def _head(trace: Any, step: int, levels: Sequence[str]) -> str:
    kept = int(np.count_nonzero((trace.depths == step + 1) & trace.kept))
    name = label(levels[step], 16) if step < len(levels) else f"code {step + 1}"
    return f"{name}<br>{kept} of<br>{trace.considered[step]:,}"  # in lines: on a phone steps are close together


def _end(tree: BeamTree, row: int, titles: Iterator[str]) -> str:
    items, place = tree.trace.items[row], int(tree.trace.places[row]) + 1
    if not len(items):
        return f"{place}. no item"
    more = f" +{len(items) - 1}" if len(items) > 1 else ""
    return f"{place}. {next(titles)}{more}{' †' if tree.known[row] else ''}"


def _hover(tree: BeamTree, row: int, share: float) -> str:
    trace = tree.trace
    fate = "generated" if trace.places[row] >= 0 else "kept" if trace.kept[row] else "dropped"
    number = len(trace.items[row]) or int(trace.below[row])
    titles = "".join(f"<br>· {label(title, 60)}" for title in tree.titles[row])
    have = (
        "no item has these codes" if not number else f"{number:,} {'item begins' if number == 1 else 'items begin'} so:"
    )
    return (
        f"<b>{label(' · '.join(tree.paths[row]), 80)}</b> ({fate})<br>last code {float(trace.probabilities[row]):.1%}, "
        f"all of them {share:.2%}<br>{have}{titles}{'<br>† in the history already' if tree.known[row] else ''}"
    )
