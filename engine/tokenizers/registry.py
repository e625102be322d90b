"""Every tokenizer that a recipe may name: those of this package, and those of other packages (docs/extending.md)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from engine.cards import TOKENIZERS, Card
from engine.plugins import classes
from engine.tokenizers.base import Tokenizer


@cache
def tokenizers() -> dict[str, type[Tokenizer]]:
    return classes(Tokenizer, ("engine.tokenizers",), TOKENIZERS)


def card(name: str, family: str) -> Card | None:
    """Of the run `name` of a tokenizer; None where there is no such family."""
    kind = tokenizers().get(family)
    if kind is None:
        return None
    variant = kind.card.variant(name)
    return replace(
        kind.card,
        order=kind.card.order if variant.order is None else variant.order,
        summary=variant.summary or kind.card.summary,
        paper=variant.paper or kind.card.paper,
    )
