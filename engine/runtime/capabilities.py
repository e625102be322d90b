"""What a bundle can do, as far as its manifest says, and why it cannot do the rest."""

from engine.bundle.manifest import Manifest
from engine.runtime.attention import no_rollout
from engine.runtime.leave_one_out import no_probability

_REASONS = {
    "attention": "This model has no attention to show.",
    "neighbours": "This model has no item vectors to compare.",
    "map": "This model has no item vectors to draw on a map.",
    "unseen_items": "This model knows only the items it was trained on.",
    "trained_users": "This model has no user vectors: a user is represented by the history.",
    "identifiers": "This model does not generate semantic IDs; it matches the history with a vector of every item.",
    "words": "This model knows items by their numbers, not by their words.",
    "paths": "This model does not carry a graph of users and items.",
    "layers": "Its scores are no sums over the layers of a graph.",
    "contributions": "Its scores are no sums of parts that mean something.",
    "gates": "This model has no gates to show.",
    "filters": "This model has no filters to show.",
    "matches": "This model has no filters that slide over the history.",
    "cross_attention": "This model has no attention between the codes it generates and the history to show.",
}


_OF_BEFORE = (
    "It reads a history as a set: in any order its list is the same.",  # wrong of a history longer than is read
    "It has no vectors for people; it knows them by their histories.",
    "It writes the identifiers of this catalogue alone.",
)
"""Reasons that bundles of before give, in place of which the usual one is told."""


def cannot(manifest: Manifest, capability: str) -> str | None:
    """None where the model can, else why not, in a sentence a page can show. See `Bundle.cannot`, which knows two more."""
    reasons = manifest.capabilities.reasons
    if capability == "probability":
        return reasons.get(capability) or no_probability(manifest.family, manifest.training.recipe.get("objective"))
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
        "layers": manifest.graph is not None and (manifest.graph.dim or manifest.graph.layer_dim) is not None,
        "identifiers": writes is not None,
        "cross_attention": writes is not None and writes.cross_attention,
    }
    able = parts[capability] if capability in parts else getattr(manifest.capabilities, capability)
    stated = reasons.get(capability)
    return None if able else default if stated in (None, *_OF_BEFORE) else stated


def _unordered(read: int) -> str:
    if read == 1:
        return "It reads the latest item alone."
    return f"It reads the latest {read:,} items of a history as a set: their order makes no difference."
