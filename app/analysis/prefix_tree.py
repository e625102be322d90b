"""The prefix tree: every prefix a node, as wide as it has items; and what its items have in common."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from app.analysis.map_colouring import GROUPS
from app.analysis.semantic_ids import NONE, Labels, spelled, with_prefix
from app.styles import GREY, SCALE, SERIES
from app.text import percent
from engine.bundle.codes import Ints
from engine.writing import count

NODES = 400
"""Of a figure; smaller branches are drawn as one, and have room once their parent is opened."""
DEEP = 2
"""Levels beneath the root of a figure."""
QUIET = (138, 148, 150)


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


def build(codes: Ints, prefix: tuple[int, ...] = (), *, deep: int = DEEP, nodes: int = NODES) -> Tree:
    """The branch of `prefix`: at most about `nodes` prefixes of up to `deep` codes more. Where there are more, branches of few
    items are drawn as one."""
    deep = min(len(prefix) + deep, codes.shape[1])
    items = with_prefix(codes, prefix)
    branch = codes[items]
    counts = [
        np.unique(branch[branch[:, depth] != NONE, : depth + 1], axis=0, return_counts=True)[1]
        for depth in range(len(prefix), deep)
    ]
    least = 1
    while sum(int((sizes >= least).sum()) for sizes in counts) > nodes:
        least += 1
    tree = Tree()
    root = tree.add(prefix, -1, items)
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
    """The most common category of a node's items; the paler, the smaller its share."""
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
        hue = SERIES[best] if best < GROUPS else GREY
        colours.append(_mixed(bytes.fromhex(hue[1:]), float(share)))
        words.append(f"{percent(share)} {of.names[best]}")
    legend = [(SERIES[place], of.names[place]) for place in range(min(GROUPS, len(of.names))) if place in used]
    if GROUPS in used:
        legend.append((GREY, "Other"))
    return Colours(colours, words, tuple(legend))


def by_popularity(tree: Tree, events: Ints) -> Colours:
    """Mean training events of a node's items, by their logarithm."""
    from plotly.colors import sample_colorscale

    means = np.array([float(events[items].mean()) if len(items) else 0.0 for items in tree.items])
    logs = np.log10(np.maximum(means, 1))
    # of the items, so that the trees of all tokenizers have one scale; few items far out would take all colours
    low, high = (float(end) for end in np.quantile(np.log10(np.maximum(events, 1)), (0.1, 0.9)))
    places = np.clip((logs - low) / (high - low), 0, 1) if high > low else np.full(len(logs), 0.5)
    words = [f"{count(round(mean), 'training event')} per item" for mean in means]
    return Colours(sample_colorscale(SCALE, places.tolist()), words, scale=(low, high))


def name(tree: Tree, node: int, *, short_form: bool = False) -> str:
    """What a node is called: its codes, or the last of them."""
    prefix = tree.prefix[node]
    if tree.parent[node] < 0:
        return spelled(prefix) if prefix else "all items"
    if prefix == tree.prefix[tree.parent[node]]:  # of several branches
        number = tree.branches[node]
        return f"{number:,} more" if short_form else f"{spelled(prefix)} and {number:,} more".removeprefix(" and ")
    return str(prefix[-1]) if short_form else spelled(prefix)


def _mixed(hue: Iterable[int], share: float) -> str:
    """The hue where the share is 1, grey where it is 0."""
    grey = (196, 203, 203)
    parts = [round(share * full + (1 - share) * pale) for full, pale in zip(hue, grey, strict=True)]
    return f"rgb({parts[0]},{parts[1]},{parts[2]})"
