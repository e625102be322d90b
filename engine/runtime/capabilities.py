"""What a bundle can do, as far as its manifest says, and why it cannot do the rest."""

from __future__ import annotations

from engine.bundle.manifest import Manifest
from engine.runtime.attention import no_rollout
from engine.runtime.leave_one_out import no_probability

_REASONS = {
    "attention": "This model has no attention to show.",
    "neighbours": "This model has no item vectors to compare.",
    "map": "This model has no item vectors to draw on a map.",
    "unseen_items": "This model knows only the items it was trained on.",
    "trained_users": "This model has no vectors for people; it knows them by their histories.",
    "identifiers": "This model does not write identifiers; it matches the history with a vector of every item.",
    "words": "This model knows items by their numbers, not by their words.",
    "paths": "This model does not carry a graph of people and items.",
    "contributions": "Its scores are no sums of parts that mean something.",
    "gates": "This model has no gates to show.",
    "filters": "This model has no filters to show.",
    "matches": "This model has no filters that slide over the history.",
    "cross_attention": "This model has no attention between what it writes and the history to show.",
}


_AS_A_SET = "It reads a history as a set: in any order its list is the same."
"""What bundles of before give as the reason for not reading order, of a history longer than is read wrongly."""


def cannot(manifest: Manifest, capability: str) -> str | None:
    """None where the model can, else why not, in a sentence a page can show. See `Bundle.cannot`, which knows two more."""
    reasons = manifest.capabilities.reasons
    if capability == "probability":
        return reasons.get(capability) or no_probability(manifest.family)
    if capability == "rollout":
        return cannot(manifest, "attention") or no_rollout(manifest)
    default = _unordered(manifest.encoder.max_length) if capability == "reads_order" else _REASONS[capability]
    if capability == "words":
        return default if manifest.text is None else cannot(manifest, "attention")
    writes = manifest.generator
    parts = {
        "contributions": manifest.item_to_item is not None or bool(manifest.index.parts),
        "gates": manifest.encoder.gates is not None,
        "filters": manifest.encoder.filters is not None,
        "matches": manifest.encoder.matches is not None,
        "paths": manifest.graph is not None,
        "identifiers": writes is not None,
        "cross_attention": writes is not None and writes.cross_attention,
    }
    able = parts[capability] if capability in parts else getattr(manifest.capabilities, capability)
    stated = reasons.get(capability)
    return None if able else default if stated in (None, _AS_A_SET) else stated


def _unordered(read: int) -> str:
    if read == 1:
        return "It reads the latest item alone."
    return f"It reads the latest {read:,} items of a history as a set: their order makes no difference."
