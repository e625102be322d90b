"""Every model that a recipe may name: those that match vectors (engine.models), those that generate identifiers
(engine.generation), and those of other packages (docs/extending.md)."""

from __future__ import annotations

from engine.cards import MODELS as GROUP
from engine.models.base import Recommender
from engine.plugins import classes

MODELS: dict[str, type[Recommender]] = classes(Recommender, ("engine.models", "engine.generation"), GROUP)
