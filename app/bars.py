"""What the bars of lists show, wherever lists are drawn."""

from __future__ import annotations

BARS = (
    "Percentage: the model’s probability that the item comes next, out of all items it could recommend. Bar: the same, relative "
    "to the model’s first item. Compare within a list: models are calibrated differently."
)
"""Stands once with every drawing of lists."""
NO_BARS = "gives no probabilities"


def bar(share: float, first: float) -> float:
    """How long an item's bar is, 0 to 1. first: the share of the first item of its list."""
    return min(1.0, share / first) if first > 0 else 0.0
