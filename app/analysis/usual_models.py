"""The models that are shown until somebody chooses."""

from __future__ import annotations

from collections import Counter

from app.analysis import floor
from engine.runtime import Bundle, Zoo

_MOST_LISTS = 9
_USUAL = 6


def shown(models: Zoo, chosen: tuple[str, ...] | None) -> list[str]:
    """The names of the models to show, in the zoo's order. chosen: names; None: the usual ones."""
    return usual(models) if chosen is None else [name for name in models.bundles if name in chosen]


def usual(models: Zoo) -> list[str]:
    """The models that are shown until somebody chooses, in the zoo's order: all where they are nine or fewer, else six: two that
    read an order and one of each other kind, before a kind has more. Refits only where there is nothing else: they know more of
    people than the models beside them."""
    bundles = {name: bundle for name, bundle in models.bundles.items() if not bundle.manifest.refitted}
    bundles = bundles or models.bundles
    if len(bundles) <= _MOST_LISTS:
        return list(bundles)
    families: set[str] = set()
    of_kind: Counter[str] = Counter()  # families so far
    turns = []
    for order, (name, bundle) in enumerate(bundles.items()):
        family, kind = bundle.manifest.family, _kind(bundle)
        if family in families:  # a second model of a family comes after the first of all others
            turns.append((len(bundles), order, name))
            continue
        turns.append((max(0, of_kind[kind] - (kind == "order")), order, name))
        families.add(family)
        of_kind[kind] += 1
    first = {name for _, _, name in sorted(turns)[:_USUAL]}
    return [name for name in bundles if name in first]


def _kind(bundle: Bundle) -> str:
    about = bundle.manifest
    if not floor.needs_training(about.family):
        return "counts"
    if about.generator is not None:
        return "codes"
    if about.text is not None or about.sentence is not None:
        return "words"
    return "order" if about.capabilities.reads_order else "sets"
