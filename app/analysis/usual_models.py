"""The models that are shown until somebody chooses."""

from __future__ import annotations

from collections import Counter

from engine.cards import KINDS, Kind, declarations
from engine.runtime import Bundle, Zoo

_USUAL = 6


def shown(models: Zoo, chosen: tuple[str, ...] | None) -> list[str]:
    """The names of the models to show, in the zoo's order. chosen: names; None: the usual ones."""
    return usual(models) if chosen is None else [name for name in models.bundles if name in chosen]


def usual(models: Zoo) -> list[str]:
    """The models that are shown until somebody chooses, in the zoo's order: six at most, two that read an order and one of each
    other kind, before a kind has more. Refits only where there is nothing else: they know more of people than the models beside
    them."""
    bundles = {name: bundle for name, bundle in models.bundles.items() if not bundle.manifest.refitted}
    bundles = bundles or models.bundles
    families: set[str] = set()
    of_kind: Counter[Kind] = Counter()  # families so far
    turns = []
    for order, (name, bundle) in enumerate(bundles.items()):
        family, kind = bundle.manifest.family, _kind(bundle)
        if family in families:  # a second model of a family comes after the first of all others
            turns.append((len(bundles), order, name))
            continue
        turns.append((max(0, of_kind[kind] - (kind == "sequential")), order, name))
        families.add(family)
        of_kind[kind] += 1
    first = {name for _, _, name in sorted(turns)[:_USUAL]}
    return [name for name in bundles if name in first]


def by_kind(models: Zoo) -> dict[str, list[str]]:
    """What models go by, as pages call it → the names of those that do, in the zoo's order."""
    kinds = {name: _kind(bundle) for name, bundle in models.bundles.items()}
    return {
        title: some
        for kind, title in KINDS.items()
        if (some := [name for name, known in kinds.items() if known == kind])
    }


def _kind(bundle: Bundle) -> Kind:
    """As its family declares; of one that is not known here, as its bundle has it."""
    about = bundle.manifest
    declared = declarations().models.get(about.family)
    if declared is not None and declared.kind is not None:
        return declared.kind
    if about.generator is not None:
        return "generative"
    if about.text is not None or about.sentence is not None:
        return "text"
    return "sequential" if about.capabilities.reads_order else "collaborative"
