"""How a model looks in every figure, and what an item is called: the same on every page and in every report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.analysis.cache import cached
from engine.bundle.items import FEW
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


_BLUE = Style("#0072b2", "circle", "●", "solid")
_RED = Style("#d55e00", "square", "■", "dash")
_GREEN = Style("#009e73", "diamond", "◆", "dashdot")
_ORANGE = Style("#e69f00", "triangle-up", "▲", "dot")
_GREY = Style("#8a9496", "cross", "✚", "longdash")
_PINK = Style("#cc79a7", "star", "★", "longdashdot")
_SKY = Style("#56b4e9", "hexagon", "⬢", "solid")
_YELLOW = Style("#c9b82e", "triangle-down", "▼", "dash")
_VIOLET = Style("#7b5ea7", "pentagon", "⬟", "dot")
_BROWN = Style("#a5673f", "x", "✖", "dashdot")
_TEAL = Style("#44aa99", "triangle-right", "▶", "longdash")
_WINE = Style("#882255", "triangle-left", "◀", "longdashdot")
_MOSS = Style("#6f8f3d", "star-diamond", "✦", "solid")

_MODELS = {
    "sasrec": _BLUE,
    "sasrec-bce": _MOSS,
    "bert4rec": _RED,
    "attrec": _GREEN,
    "lightgcn": _TEAL,
    "ngcf": _WINE,
    "mult-vae": _BROWN,
    "recformer": _SKY,
    "tiger": _YELLOW,
    "letter-tiger": _PINK,
    "lc-rec": _VIOLET,
    "markov": _ORANGE,
    "popularity": _GREY,
}
_TOKENIZERS = {"rqvae": _BLUE, "letter": _RED, "residual-kmeans": _GREEN, "lc-rec-rqvae": _VIOLET, "random": _GREY}

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
    return _style(model, _MODELS, zoo.bundles, (_BROWN, _TEAL, _PINK, _SKY, _YELLOW, _VIOLET, _MOSS))


def tokenizer_style(zoo: Zoo, name: str) -> Style:
    """The look of a tokenizer."""
    return _style(name, _TOKENIZERS, zoo.tokenizations, (_PINK, _ORANGE, _SKY, _BROWN))


def _style(name: str, known: Mapping[str, Style], names: Iterable[str], spare: Sequence[Style]) -> Style:
    """Those without a look of their own take the spare ones that no other has, in the order of their names."""
    if name in known:
        return known[name]
    taken = {known[other] for other in names if other in known}
    free = [look for look in spare if look not in taken] or spare
    others = sorted(other for other in names if other not in known)
    return free[others.index(name) % len(free)] if name in others else free[0]


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
