"""How a model looks in every figure, and what an item is called: the same on every page and in every report."""

import dataclasses
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from app.analysis.cache import cached, of_opened
from app.text import clean
from engine.bundle.items import FEW
from engine.cards import Colour, Kind, colours, declarations
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
    "brown": Style("#a5673f", "x", "✘", "dashdot"),
    "teal": Style("#44aa99", "triangle-right", "►", "longdash"),
    "wine": Style("#882255", "triangle-left", "◄", "longdashdot"),
    "moss": Style("#6f8f3d", "star-diamond", "✦", "solid"),
    "indigo": Style("#5b5fd0", "hexagram", "✶", "dash"),
}

SERIES = tuple(PALETTE[name].colour for name in ("blue", "orange", "green", "pink", "sky", "red", "yellow", "violet"))
"""Of lines, bars and groups that are no models."""
GREY, PALE_GREY = PALETTE["grey"].colour, "#b9c2c0"
"""Of what belongs to no group, and of what has no value."""
SCALE = "Viridis"
"""Of numbers."""

OPEN = {
    "circle": "○", "square": "□", "diamond": "◇", "triangle-up": "△", "cross": "✙", "star": "☆", "hexagon": "⬡",
    "triangle-down": "▽", "pentagon": "⬠", "x": "✕", "triangle-right": "▷", "triangle-left": "◁", "star-diamond": "✧",
    "hexagram": "✲",
}  # fmt: skip
"""The same markers as outlines, as characters; Plotly's name of one ends in -open."""


def space(bundle: Bundle) -> str:
    """What a model's own space is called, where items are near each other or drawn on a map: a model that writes codes has no
    vectors of items, so it is that of the vectors that its codes were made from."""
    title = bundle.manifest.title
    return title if bundle.cannot("identifiers") is not None else f"{title}: its tokenizer's latents"


def named(title: str, look: Style) -> dict[str, str]:
    """A model, or a tokenizer, for widgets: its title, not escaped, its sign and its colour."""
    return {"title": clean(title, 60), "sign": look.sign, "colour": look.colour}


def dotted(look: Style) -> Style:
    """The look of a model that was told more than the history (`analysis.metrics.ranked`), beside the model itself."""
    return dataclasses.replace(look, marker=f"{look.marker}-dot", sign=f"{look.sign}\u00b7")


DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Plotly's names of line styles, one per level of an identifier."""


def style(zoo: Zoo, model: str) -> Style:
    """The look of a model."""
    return _looks(tuple(dict.fromkeys([*zoo.bundles, model])), _colours("models"))[model]


def is_fixed(model: str) -> bool:
    """Whether a model looks the same whichever others there are: no other one declares its colour before it."""
    first: dict[Colour, str] = {}
    for name, colour in _colours("models"):
        first.setdefault(colour, name)
    return model in first.values()


def tokenizer_style(zoo: Zoo, name: str) -> Style:
    """The look of a tokenizer."""
    return _looks(tuple(dict.fromkeys([*zoo.tokenizations, name])), _colours("tokenizers"))[name]


@cache
def _colours(of: Literal["models", "tokenizers"]) -> tuple[tuple[str, Colour], ...]:
    return tuple(colours(getattr(declarations(), of)).items())


@cache
def _kinds() -> dict[str, Kind]:
    models = declarations().models.values()
    return {variant.name: model.kind for model in models if model.kind for variant in model.card.variants}


@lru_cache(64)
def _looks(names: tuple[str, ...], declared: tuple[tuple[str, Colour], ...]) -> dict[str, Style]:
    """By name, no two alike: what it declares where nobody before it has that, else the next that is free; with more names than
    colours the next with an outline, of its own marker first, then of others. While there is one, its colour is none of its kind,
    nor of one that counts, which stand beside every kind."""
    styles = list(PALETTE.values())
    again = [
        dataclasses.replace(styles[at], marker=f"{styles[at - turn].marker}-open", sign=OPEN[styles[at - turn].marker])
        for turn in range(len(styles))
        for at in range(len(styles))
    ]
    looks: dict[str, Style] = {}
    for name, colour in declared:
        if name in names and PALETTE[colour] not in looks.values():
            looks[name] = PALETTE[colour]
    kinds = _kinds()
    for name in names:
        if name not in looks:
            free = [look for look in (*styles, *again) if look not in looks.values()]
            beside = [looks[other] for other in looks if kinds.get(other) in (kinds.get(name), "counting")]
            taken = {part for look in beside for part in (look.colour, look.marker)}
            looks[name] = next((look for look in free if not {look.colour, look.marker} & taken), free[0])
    return {name: looks[name] for name in names}


def titled(zoo: Zoo, item: int) -> str:
    """Title (year), not escaped."""
    return _titles(zoo)[item] if len(zoo) <= FEW else _titled(zoo, item)


def entry(zoo: Zoo, item: int, most: int) -> dict[str, str]:
    """An item as widgets take it: "id", "title" of at most so many letters, and "detail", what `titled` has behind it."""
    title, full = zoo.titles[item], titled(zoo, item)
    return {"id": zoo.item_ids[item], "title": clean(title, most), "detail": full.removeprefix(title).strip()}


@cached(8, by=of_opened)
def _titles(zoo: Zoo) -> list[str]:
    return [_titled(zoo, item) for item in range(len(zoo))]


def _titled(zoo: Zoo, item: int) -> str:
    title = zoo.titles[item]
    year = zoo.items["year"][item].as_py() if "year" in zoo.items.column_names else None
    return f"{title} ({year})" if isinstance(year, int) and not title.endswith(f"({year})") else title
