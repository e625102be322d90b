"""How a model looks in every figure, and what an item is called: the same on every page and in every report."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from engine.runtime import Zoo


@dataclass(frozen=True)
class Style:
    """How a model looks in every figure: never by colour alone."""

    colour: str
    """Okabe and Ito's palette."""
    marker: str
    """Plotly's name of a marker."""
    sign: str
    """The same marker as a character."""
    dash: str
    """Plotly's name of a line style."""


_STYLES = {
    "sasrec": Style("#0072b2", "circle", "●", "solid"),
    "bert4rec": Style("#d55e00", "square", "■", "dash"),
    "attrec": Style("#009e73", "diamond", "◆", "dashdot"),
    "markov": Style("#e69f00", "triangle-up", "▲", "dot"),
    "popularity": Style("#8a9496", "cross", "✚", "longdash"),
}
_SPARE = (
    Style("#cc79a7", "star", "★", "longdashdot"),
    Style("#56b4e9", "hexagon", "⬢", "solid"),
    Style("#c9b82e", "triangle-down", "▼", "dash"),
    Style("#7b5ea7", "pentagon", "⬟", "dot"),
    Style("#5b3a1e", "bowtie", "⧓", "dashdot"),
)


def style(zoo: Zoo, model: str) -> Style:
    """The look of a model; those without one of their own take the spare ones in the order of their names."""
    known = _STYLES.get(model)
    if known is not None:
        return known
    others = sorted(name for name in zoo.bundles if name not in _STYLES)
    return _SPARE[others.index(model) % len(_SPARE)] if model in others else _SPARE[0]


def titled(zoo: Zoo, item: int) -> str:
    """Title (year), not escaped."""
    return _titles(zoo)[item]


@functools.lru_cache(maxsize=8)
def _titles(zoo: Zoo) -> list[str]:
    if "year" not in zoo.items.column_names:
        return zoo.titles
    years = zoo.items["year"].to_pylist()
    return [
        f"{title} ({year})" if isinstance(year, int) and not title.endswith(f"({year})") else title
        for title, year in zip(zoo.titles, years, strict=True)
    ]
