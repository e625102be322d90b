"""Whether validation had settled when a training ended; asked of runs, where pydantic may be missing, and of bundles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

STILL_IMPROVING = "still improving when stopped"
"""What is said where validation had not settled when training ended."""


def improving(best_epoch: int, validated: Iterable[int]) -> bool | None:
    """True where the last of the validated epochs is the best one: more epochs might have found better. None where nothing was
    validated. best_epoch 0: the model before its first step."""
    last = max(validated, default=None)
    return None if last is None else best_epoch >= last


def validated(curve: Iterable[Mapping[str, Any]]) -> list[int]:
    """The validated epochs of a run's curve (curve.json)."""
    return [entry["epoch"] for entry in curve if entry["valid_ndcg"] is not None]
