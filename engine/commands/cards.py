"""Print what models and tokenizers declare of themselves, as JSON (docs/extending.md).

With --write the copy that the app reads, engine/cards.json, is renewed: after a change of a declaration, or of the title or the
batch size of a default recipe.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
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
    """Of all classes, with what their default recipes say. Raises UsageError where one names a recipe that is not there."""
    from engine.cards import Declaration, Declarations
    from engine.registry import MODELS
    from engine.tokenizers import recipe as tokenizer_recipes
    from engine.tokenizers.base import tokenizers
    from engine.training import recipe as model_recipes

    return Declarations(
        models={
            name: Declaration(
                card=_filled_in(kind.card, model_recipes.load),
                needs=kind.needs,
                learns=kind.objective != "counts",
                kind=kind.kind,
                needs_log=kind.needs_log,
                unseen_items=kind.unseen_items,
            )
            for name, kind in MODELS.items()
        },
        tokenizers={
            name: Declaration(card=_filled_in(kind.card, tokenizer_recipes.load), needs=kind.needs, learns=kind.learns)
            for name, kind in tokenizers().items()
        },
    )


def _filled_in(card: Card, load: Callable[..., Any]) -> Card:
    def recipe(name: str) -> Any:
        return load(name, "default", None, [])

    def page(variant: Variant) -> OnPage | None:
        if variant.page is None:
            return None
        batch = recipe(variant.page.recipe or variant.name).training.batch_size
        first = recipe(variant.page.first).title if variant.page.first else ""
        return replace(variant.page, batch=batch, first_title=first)

    variants = (
        replace(variant, title=recipe(variant.name).title or card.title, page=page(variant))
        for variant in card.variants
    )
    return replace(card, variants=tuple(variants))
