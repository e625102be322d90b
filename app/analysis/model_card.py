"""What the card of a model and of its data says: what it can do and why not, the words it knows, what is held out; and which
models are shown until somebody chooses. Plain text."""

import datetime
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from engine import cards
from engine.bundle.manifest import TOO_MANY
from engine.cards import Kind, declarations
from engine.runtime import Bundle, Zoo
from engine.writing import count

_ABLE = {
    "attention": "attention",
    "neighbours": "neighbours",
    "map": "map",
    "unseen_items": "items it has never seen",
    "trained_users": "vectors of trained users",
    "probability": "probabilities",
    "contributions": "exact parts of a score",
}
_WRITES = {
    "cross_attention": "cross-attention of the codes it generates",
    "distinct_items": "unique IDs",
}
"""Of models that write codes; others have nothing to say of them."""
_OF_PATHS = {"paths": "paths through users and items (page Graph)"}
_OF_LAYERS = {"layers": "exact parts of a score by layer (page Graph)"}
"""Of models that carry a graph."""
_SAID_APART = ("unseen_items", "distinct_items")


class Ability(NamedTuple):
    """What a model may be able to do, and why it is not (None where it is)."""

    name: str
    words: str
    cannot: str | None


def abilities(bundle: Bundle) -> list[Ability]:
    phrases = _ABLE if bundle.manifest.generator is None else _ABLE | _WRITES
    if bundle.cannot("paths") is None:
        phrases = phrases | _OF_PATHS
    if bundle.cannot("layers") is None:  # the page Graph has the parts of its scores
        phrases = {name: words for name, words in phrases.items() if name != "contributions"} | _OF_LAYERS
    return [Ability(name, words, cannot(bundle, name)) for name, words in phrases.items()]


def summary(bundle: Bundle) -> str:
    """What the model is: as its family says it now, since a bundle keeps the words of its export; of a family that is not known
    here, as its bundle has it. Foreign text: escape it."""
    about = bundle.manifest
    declared = declarations().models.get(about.family)
    if declared is None:
        return about.summary
    return declared.card.variant(str(about.training.recipe.get("name"))).summary or declared.card.summary


def cannot(bundle: Bundle, capability: str) -> str | None:
    """`Bundle.cannot`, in the words that `summary` has them in. Foreign text: escape it."""
    reason = bundle.cannot(capability)
    declared = declarations().models.get(bundle.manifest.family)
    return reason if reason is None or declared is None else declared.card.reasons.get(capability, reason)


def writes(bundle: Bundle) -> dict[str, str]:
    """Term → what there is to say of a model that writes codes, besides; nothing of others."""
    about = bundle.manifest.generator
    if about is None:
        return {}
    codes = (
        " × ".join(f"{size:,}" for size in about.sizes)
        if len(about.sizes) <= 8
        else f"{max(about.sizes):,} at most each"
    )
    width = bundle.beam(1)
    length = f"{'up to ' if about.ends else ''}{count(about.levels, 'code')} per item ({codes})"
    return {
        "Generates": f"{length}, {'scored for every item' if width is None else f'with a beam of {width}'}",
        "Invalid codes": (
            "none: decoding is constrained to the semantic IDs of items. Unconstrained, it may generate some that no item has; "
            "the beam on Compare counts them"
        ),
        "Ties": bundle.cannot("distinct_items") or "none: no two items share a semantic ID",
    }


def in_short(bundle: Bundle) -> dict[str, str]:
    """Term → words: what the model is, what sets models apart, then what else it shows or does not. Foreign text: escape it."""
    capabilities = abilities(bundle)
    unseen = next(ability.cannot for ability in capabilities if ability.name == "unseen_items")
    unordered = cannot(bundle, "reads_order")
    others = [ability for ability in capabilities if ability.name not in _SAID_APART]
    shows = [ability.words for ability in others if ability.cannot is None]
    return {
        "How it works": summary(bundle),
        **({} if unordered is None else {"Order of the history": unordered}),
        "Items it has never seen": unseen or "It reads item text, so it can also recommend new items.",
        "Ties": "Every item has its own score; ties keep the order of the catalogue.",
        "Invalid codes": "It scores items and generates no codes, so it recommends only items of the catalogue.",
        **{term: f"{words[0].upper()}{words[1:].rstrip('.')}." for term, words in writes(bundle).items()},
        "Can show": f"Its recommendations{''.join(f', {words}' for words in shows)}.",
    } | {f"No {ability.words}": ability.cannot for ability in others if ability.cannot is not None}


FEW_KNOWN = "Many words of this catalogue are unknown to it, so its answers may say little."


def known_words(unknown: object) -> str:
    """unknown: the share that it does not know, as read from a file; "" where that is no share."""
    missing = _unknown_share(unknown)
    if missing is None:
        return ""
    if not missing:
        return "It knows every word of this catalogue."
    known = 1 - missing
    share = "less than 1%" if known < 0.01 else "more than 99%" if missing < 0.01 else f"{known:.0%}"
    return (
        f"It knows {share} of the words of this catalogue; the rest is spelt letter by letter, or has no token at all."
    )


def too_few_known(unknown: object) -> bool:
    """Whether what it says of this catalogue is to be taken with care."""
    missing = _unknown_share(unknown)
    return missing is not None and missing >= TOO_MANY


def _unknown_share(unknown: object) -> float | None:
    if not isinstance(unknown, int | float) or isinstance(unknown, bool) or not 0 <= unknown <= 1:
        return None
    return float(unknown)


_SETS = {
    "given": "given with the data: a set of each user's items for test, the others for training, some of them for "
    "validation",
    "users": "by users: held-out users are not trained on; part of their items is the history, the rest is held out",
}


def split_words(split: Mapping[str, Any]) -> str:
    kind = split.get("kind")
    if kind in _SETS:
        return _SETS[kind]
    if kind != "time":
        return "leave-one-out: last event test, second last validation, rest training"
    moments = [day(split.get(key)) for key in ("valid_from", "test_from")]
    return f"by time: first event from {moments[0]} for validation, from {moments[1]} for test; training before"


def day(seconds: object) -> str:
    """2026-11-20, of seconds since 1970; "unknown" where that is no time."""
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    try:
        return (start + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%d")  # type: ignore[arg-type]
    except (TypeError, OverflowError, ValueError):
        return "unknown"


# --- which models are shown until somebody chooses


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
        family, kind = bundle.manifest.family, bundle.kind
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
    return cards.by_kind({name: bundle.kind for name, bundle in models.bundles.items()})
