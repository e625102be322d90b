"""Every model that a recipe may name: those that match vectors (engine.models), those that generate identifiers
(engine.generation), and those of other packages (docs/extending.md)."""

from engine.cards import MODELS as GROUP
from engine.cards import place
from engine.models.base import Recommender
from engine.plugins import classes

_EVERY: dict[str, type[Recommender]] = classes(Recommender, ("engine.models", "engine.generation"), GROUP)
MODELS = dict(sorted(_EVERY.items(), key=lambda entry: place(entry[1].kind, entry[1].card.order)))


def learns(family: str) -> bool:
    """Whether it learns step by step, by gradients, and does not just count."""
    return MODELS[family].objective != "counts"
