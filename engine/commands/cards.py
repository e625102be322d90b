"""Print what models and tokenizers declare of themselves, as JSON (docs/extending.md).

With --write the copy that the app reads, engine/cards.json, is renewed: after a change of a declaration, or of the title or the
batch size of a default recipe.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.cards import Card, Declarations, OnPage, Variant


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="renew engine/cards.json instead of printing")


def run(args: argparse.Namespace) -> int:
    from engine.cards import FILE, write

    text = write(declared())
    if args.write:
        FILE.write_text(text, "utf-8")
    else:
        print(text, end="")
    return 0


def declared() -> Declarations:
    """Of all classes, with what their default recipes say; one that names a recipe that is not there is left out, and a warning
    says so."""
    from engine.cards import Declaration, Declarations
    from engine.registry import MODELS, learns
    from engine.tokenizers import recipe as tokenizer_recipes
    from engine.tokenizers.base import tokenizers
    from engine.training import recipe as model_recipes

    return Declarations(
        models={
            name: Declaration(
                card=card,
                needs=MODELS[name].needs,
                learns=learns(name),
                kind=MODELS[name].kind,
                needs_log=MODELS[name].needs_log,
                unseen_items=MODELS[name].unseen_items,
            )
            for name, card in _cards(MODELS, model_recipes.load).items()
        },
        tokenizers={
            name: Declaration(card=card, needs=tokenizers()[name].needs, learns=tokenizers()[name].learns)
            for name, card in _cards(tokenizers(), tokenizer_recipes.load).items()
        },
    )


def _cards(kinds: Mapping[str, Any], load: Callable[..., Any]) -> dict[str, Card]:
    from engine.errors import SeqscopeError

    cards = {}
    for name, kind in kinds.items():
        try:
            cards[name] = _filled_in(kind.card, load)
        except SeqscopeError as error:
            logging.getLogger(__name__).warning("%s.%s is left out: %s", kind.__module__, kind.__qualname__, error)
    return cards


def _filled_in(card: Card, load: Callable[..., Any]) -> Card:
    from engine.registry import MODELS

    def recipe(name: str) -> Any:
        return load(name, "default", None, [])

    def page(variant: Variant) -> OnPage | None:
        if variant.page is None:
            return None
        settings = recipe(variant.page.recipe or variant.name)
        times = settings.family in MODELS and "times" in MODELS[settings.family].needs_of(settings.model)
        first = recipe(variant.page.first).title if variant.page.first else ""
        return replace(variant.page, batch=settings.training.batch_size, first_title=first, times=times)

    variants = (
        replace(variant, title=recipe(variant.name).title or card.title, page=page(variant))
        for variant in card.variants
    )
    return replace(card, variants=tuple(variants))
