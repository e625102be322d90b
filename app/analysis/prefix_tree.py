"""The tree of codes: every prefix a node, as wide as it has items; and what its items have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go

from app.analysis.map_colouring import GROUPS, PALETTE, SCALE
from app.analysis.semantic_ids import NONE, Ints, Labels, spelled
from app.text import label, short

NODES = 1_500
"""Of a figure; smaller branches are drawn as one."""
DEEP = 3
QUIET = (138, 148, 150)
_PALE, _INK = "#8a9496", "#0f181a"
_TITLES = 3


@dataclass(frozen=True)
class Tree:
    """Nodes in the order in which they are drawn, the root first."""

    prefix: list[tuple[int, ...]] = field(default_factory=list)
    """Of a node that stands for several branches: that of its parent."""
    parent: list[int] = field(default_factory=list)
    """A place in these lists, −1 of the root."""
    items: list[Ints] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    """1, or how many branches a node stands for."""

    def __len__(self) -> int:
        return len(self.prefix)

    def add(self, prefix: tuple[int, ...], parent: int, items: Ints, branches: int = 1) -> int:
        self.prefix.append(prefix)
        self.parent.append(parent)
        self.items.append(items)
        self.branches.append(branches)
        return len(self.prefix) - 1


def build(codes: Ints, *, deep: int = DEEP, nodes: int = NODES) -> Tree:
    """At most about `nodes` prefixes of up to `deep` codes. Where there are more, branches of few items are drawn as one."""
    deep = min(deep, codes.shape[1])
    counts = [
        np.unique(codes[codes[:, depth] != NONE, : depth + 1], axis=0, return_counts=True)[1] for depth in range(deep)
    ]
    least = 1
    while sum(int((found >= least).sum()) for found in counts) > nodes:
        least += 1
    tree = Tree()
    root = tree.add((), -1, np.arange(len(codes)))
    _grow(tree, codes, root, deep, least)
    return tree


def _grow(tree: Tree, codes: Ints, node: int, deep: int, least: int) -> None:
    prefix, items = tree.prefix[node], tree.items[node]
    depth = len(prefix)
    if depth == deep:
        return
    column = codes[items, depth]
    kept: list[tuple[int, Ints]] = []
    left: list[tuple[int, Ints]] = []
    for code in np.unique(column[column != NONE]):
        part = items[column == code]
        (kept if len(part) >= least else left).append((int(code), part))
    for code, part in sorted(kept, key=lambda entry: (-len(entry[1]), entry[0])):
        _grow(tree, codes, tree.add((*prefix, code), node, part), deep, least)
    if left:
        tree.add(prefix, node, np.concatenate([part for _, part in left]), len(left))


@dataclass(frozen=True)
class Colours:
    """The colour of every node, and what it says."""

    of: list[str]
    words: list[str]
    """Not escaped."""
    legend: tuple[tuple[str, str], ...] = ()
    """(colour, name not escaped) of categories."""
    scale: tuple[float, float] | None = None
    """Of popularity: where the colours end, as the logarithm to base 10 of mean events."""


def by_category(tree: Tree, of: Labels) -> Colours:
    """The commonest category of a node's items; the paler, the smaller its share."""
    colours, words, used = [], [], set()
    for items in tree.items:
        known = of.of[items]
        known = known[known >= 0]
        if not len(known):
            colours.append(_mixed(QUIET, 0.0))
            words.append("no category known")
            continue
        counts = np.bincount(known)
        best = int(counts.argmax())
        share = counts[best] / len(known)
        used.add(min(best, GROUPS))
        hue = PALETTE[best] if best < GROUPS else _PALE
        colours.append(_mixed(_rgb(hue), float(share)))
        words.append(f"{share:.0%} {of.names[best]}")
    legend = [(PALETTE[place], of.names[place]) for place in range(min(GROUPS, len(of.names))) if place in used]
    if GROUPS in used:
        legend.append((_PALE, "Other"))
    return Colours(colours, words, tuple(legend))


def by_popularity(tree: Tree, events: Ints) -> Colours:
    """Mean training events of a node's items, by their logarithm."""
    from plotly.colors import sample_colorscale

    means = np.array([float(events[items].mean()) if len(items) else 0.0 for items in tree.items])
    logs = np.log10(np.maximum(means, 1))
    # of the items, so that the trees of all tokenizers have one scale; few items far out would take all colours
    low, high = (float(end) for end in np.quantile(np.log10(np.maximum(events, 1)), (0.1, 0.9)))
    places = np.clip((logs - low) / (high - low), 0, 1) if high > low else np.full(len(logs), 0.5)
    words = [f"{mean:,.0f} training events an item" for mean in means]
    return Colours(sample_colorscale(SCALE, places.tolist()), words, scale=(low, high))


def figure(tree: Tree, colours: Colours, titles: Sequence[str], events: Ints, dark: bool) -> go.Figure:
    """An icicle from all items at the top down to the prefixes; a click opens a branch. titles: of every item, not escaped."""
    ink = "#e6ecea" if dark else _INK
    # a line around a box that is hardly wider than the line would be all there is to see
    lines = [1 if len(items) > 0.015 * len(titles) else 0 for items in tree.items]
    fig = go.Figure(
        go.Icicle(
            ids=[str(node) for node in range(len(tree))],
            parents=["" if parent < 0 else str(parent) for parent in tree.parent],
            values=[len(items) for items in tree.items],
            labels=[name(tree, node, short_form=True) for node in range(len(tree))],
            branchvalues="total",
            sort=False,
            maxdepth=3,
            customdata=[_hover(tree, node, colours.words[node], titles, events) for node in range(len(tree))],
            hovertemplate="%{customdata}<extra></extra>",
            text=[name(tree, node, short_form=True) if lines[node] else "" for node in range(len(tree))],
            texttemplate="%{text}",
            textfont={"color": [_readable(colour) for colour in colours.of]},
            marker={"colors": colours.of, "line": {"width": lines, "color": "#111718" if dark else "#fcfcfb"}},
            tiling={"orientation": "v", "pad": 0},
            pathbar={"visible": True, "thickness": 24, "textfont": {"size": 12}},
        )
    )
    for colour, title in colours.legend:
        fig.add_scatter(
            x=[None], y=[None], mode="markers", name=label(short(title, 18)),
            marker={"color": colour, "symbol": "square", "size": 11},
        )  # fmt: skip
    if colours.scale is not None:
        low, high = colours.scale
        ticks = np.linspace(low, high, 4)
        fig.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            showlegend=False,
            marker={
                "color": [low],
                "cmin": low,
                "cmax": high,
                "colorscale": SCALE,
                "showscale": True,
                "colorbar": {
                    "orientation": "h", "y": -0.02, "yanchor": "top", "thickness": 10, "outlinewidth": 0, "len": 0.7,
                    "tickvals": ticks, "ticktext": [f"{10**tick:,.0f}" for tick in ticks],
                    "title": {"text": "mean training events of an item", "side": "bottom", "font": {"size": 12}},
                },
            },
        )  # fmt: skip
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    return fig.update_layout(
        height=440,
        dragmode=False,
        showlegend=bool(colours.legend),
        font={"color": ink},
        uniformtext={"minsize": 9, "mode": "hide"},
        legend={"orientation": "h", "yanchor": "top", "y": -0.01, "x": 0, "itemclick": False, "itemdoubleclick": False},
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
    )


def name(tree: Tree, node: int, *, short_form: bool = False) -> str:
    """What a node is called: its codes, or the last of them."""
    prefix = tree.prefix[node]
    if tree.parent[node] < 0:
        return "all items"
    if tree.branches[node] > 1 or (tree.parent[node] >= 0 and prefix == tree.prefix[tree.parent[node]]):
        number = tree.branches[node]
        return f"{number:,} more" if short_form else f"{spelled(prefix)} and {number:,} more".removeprefix(" and ")
    return str(prefix[-1]) if short_form else spelled(prefix)


def _hover(tree: Tree, node: int, words: str, titles: Sequence[str], events: Ints) -> str:
    items = tree.items[node]
    known = items[np.argsort(-events[items], kind="stable")[:_TITLES]]
    lines = [label(name(tree, node)), f"{len(items):,} items · {label(words, 60)}"]
    lines += [label(short(titles[item], 36)) for item in known]
    return "<br>".join(lines)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _readable(colour: str) -> str:
    """Black or white, whichever is read better on a colour such as rgb(1, 2, 3)."""
    red, green, blue = (int(part) / 255 for part in colour[4:-1].split(","))
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in (red, green, blue)]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if light > 0.179 else "#ffffff"


def _mixed(hue: tuple[int, int, int], share: float) -> str:
    """The hue where the share is 1, grey where it is 0."""
    grey = (196, 203, 203)
    parts = [round(share * full + (1 - share) * pale) for full, pale in zip(hue, grey, strict=True)]
    return f"rgb({parts[0]},{parts[1]},{parts[2]})"
