"""What a model can and cannot do, and why: plain text, for its card on About and its column on Compare."""

from __future__ import annotations

from typing import NamedTuple

from app.text import count
from engine.runtime import Bundle

_ABLE = {
    "attention": "attention",
    "neighbours": "neighbours",
    "map": "map",
    "unseen_items": "items it has never seen",
    "trained_users": "vectors of trained people",
    "probability": "probabilities",
}
_WRITES = {
    "cross_attention": "attention from the codes it writes",
    "distinct_items": "every item told from every other",
}
"""Of models that write codes; others have nothing to say of them."""
_SAID_APART = ("unseen_items", "distinct_items")


class Ability(NamedTuple):
    """What a model may be able to do, and why it is not (None where it is)."""

    name: str
    words: str
    cannot: str | None


def able(bundle: Bundle) -> list[Ability]:
    asked = _ABLE if bundle.manifest.generator is None else _ABLE | _WRITES
    return [Ability(name, words, bundle.cannot(name)) for name, words in asked.items()]


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
    length = f"{'up to ' if about.ends else ''}{count(about.levels, 'code')} per item ({codes})"
    return {
        "Writes": f"{length}, with a beam of {about.beam}",
        "Invalid codes": (
            "none: it is held to identifiers of items at every step. Let free, it may write some that no item has; "
            "the beam on Compare counts them"
        ),
        "Ties": bundle.cannot("distinct_items") or "none: no two items share an identifier",
    }


def in_short(bundle: Bundle) -> dict[str, str]:
    """Term → words: first what sets models apart, then what else it shows or does not."""
    found = able(bundle)
    unseen = next(one.cannot for one in found if one.name == "unseen_items")
    unordered = bundle.cannot("reads_order")
    others = [one for one in found if one.name not in _SAID_APART]
    shows = [one.words for one in others if one.cannot is None]
    return {
        **({} if unordered is None else {"Order of the history": unordered}),
        "Items it has never seen": unseen or "It reads what is said of an item, so it can recommend new ones, too.",
        "Ties": "Every item has a score of its own; equal scores stand in the order of the catalogue.",
        "Invalid codes": "It scores items and writes no codes, so nothing but items can come out.",
        **{term: f"{words[0].upper()}{words[1:].rstrip('.')}." for term, words in writes(bundle).items()},
        "Can show": f"Its recommendations{''.join(f', {words}' for words in shows)}.",
    } | {f"No {one.words}": one.cannot for one in others if one.cannot is not None}
