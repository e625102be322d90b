"""How a model looks in every figure, and what an item is called: the same on every page and in every report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.analysis.cache import cached
from engine.bundle.items import FEW
from engine.cards import Colour, colours, declarations
from engine.runtime import Bundle, Zoo


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


PALETTE: dict[Colour, Style] = {
    "blue": Style("#0072b2", "circle", "●", "solid"),
    "red": Style("#d55e00", "square", "■", "dash"),
    "green": Style("#009e73", "diamond", "◆", "dashdot"),
    "orange": Style("#e69f00", "triangle-up", "▲", "dot"),
    "grey": Style("#8a9496", "cross", "✚", "longdash"),
    "pink": Style("#cc79a7", "star", "★", "longdashdot"),
    "sky": Style("#56b4e9", "hexagon", "⬢", "solid"),
    "yellow": Style("#c9b82e", "triangle-down", "▼", "dash"),
    "violet": Style("#7b5ea7", "pentagon", "⬟", "dot"),
    "brown": Style("#a5673f", "x", "✖", "dashdot"),
    "teal": Style("#44aa99", "triangle-right", "▶", "longdash"),
    "wine": Style("#882255", "triangle-left", "◀", "longdashdot"),
    "moss": Style("#6f8f3d", "star-diamond", "✦", "solid"),
    "indigo": Style("#5b5fd0", "hexagram", "✶", "dash"),
}

_DOTTED = {"●": "◉", "■": "▣", "◆": "◈", "▶": "▷", "◀": "◁"}


def space(bundle: Bundle) -> str:
    """What a model's own space is called, where items are near each other or drawn on a map: a model that writes codes has no
    vectors of items, so it is that of the vectors that its codes were made from."""
    title = bundle.manifest.title
    return title if bundle.cannot("identifiers") is not None else f"{title}: its tokenizer's latents"


def with_users(look: Style) -> Style:
    """The look of a model that knows its users by vectors of their own, beside the model itself."""
    dotted = look.sign in _DOTTED
    return dataclasses.replace(
        look, marker=f"{look.marker}-dot" if dotted else look.marker, sign=_DOTTED.get(look.sign, look.sign)
    )


DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Plotly's names of line styles, one per level of an identifier."""


def style(zoo: Zoo, model: str) -> Style:
    """The look of a model."""
    spare: tuple[Colour, ...] = ("brown", "teal", "pink", "sky", "yellow", "violet", "moss")
    return _style(model, colours(declarations().models), zoo.bundles, spare)


def tokenizer_style(zoo: Zoo, name: str) -> Style:
    """The look of a tokenizer."""
    return _style(name, colours(declarations().tokenizers), zoo.tokenizations, ("pink", "orange", "sky", "brown"))


def _style(name: str, known: Mapping[str, Colour], names: Iterable[str], spare: Sequence[Colour]) -> Style:
    """Those without a colour of their own take the spare ones that no other has, in the order of their names."""
    if name in known:
        return PALETTE[known[name]]
    taken = {known[other] for other in names if other in known}
    free = [colour for colour in spare if colour not in taken] or spare
    others = sorted(other for other in names if other not in known)
    return PALETTE[free[others.index(name) % len(free)] if name in others else free[0]]


def titled(zoo: Zoo, item: int) -> str:
    """Title (year), not escaped."""
    return _titles(zoo)[item] if len(zoo) <= FEW else _titled(zoo, item)


@cached(8)
def _titles(zoo: Zoo) -> list[str]:
    return [_titled(zoo, item) for item in range(len(zoo))]


def _titled(zoo: Zoo, item: int) -> str:
    title = zoo.titles[item]
    year = zoo.items["year"][item].as_py() if "year" in zoo.items.column_names else None
    return f"{title} ({year})" if isinstance(year, int) and not title.endswith(f"({year})") else title
