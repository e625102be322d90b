"""What has to be said of a training: whether validation had settled when it ended, and which events it was fitted on. Asked of
runs, where pydantic may be missing, of bundles and of results."""

from collections.abc import Iterable, Mapping
from typing import Any

STILL_IMPROVING = "still improving when stopped"
"""What is said where the last validation was the best."""
NOT_SETTLED = "stopped before validation had settled"
"""What is said where it was not, and training ended before patience ran out."""
LEAKS = "was fitted on validation events, too, so nothing that learns from it could be validated; name the run it is a refit of"
"""Why no training starts from a refit, and no tokenizer learns from one."""
TRAINING = "training"
"""Training events alone: every run and bundle that does not say otherwise."""
WITH_VALIDATION = "training and validation"
"""A refit (engine/training/refit.py): the validation events, too, after they had chosen the number of epochs."""


def improving(best_epoch: int, validated: Iterable[int]) -> bool | None:
    """True where the last of the validated epochs is the best one: more epochs might have found better. None where nothing was
    validated. best_epoch 0: the model before its first step."""
    last = max(validated, default=None)
    return None if last is None else best_epoch >= last


def unsettled(best_epoch: int, validated: Mapping[int, float], recipe: Mapping[str, Any]) -> str | None:
    """What has to be said of a training that ended before validation had settled: STILL_IMPROVING or NOT_SETTLED.

    validated: epoch → steps by then. recipe: its tables. None where patience ran out, where nothing was validated, and where
    the recipe of a training that was not improving has no patience.
    """
    if improving(best_epoch, validated):
        return STILL_IMPROVING
    training, optimiser = (_table(recipe, name) for name in ("training", "optimiser"))
    patience = training.get("patience")
    if not validated or not isinstance(patience, int):
        return None
    worse = [epoch for epoch, steps in validated.items() if epoch > best_epoch and steps > climb(optimiser)]
    return None if 0 < patience <= len(worse) else NOT_SETTLED


def climb(optimiser: Mapping[str, Any]) -> int:
    """Steps in which the rate grows: until they are done, what validation says is no verdict. optimiser: a recipe's table."""
    steps = optimiser.get("warmup_steps")
    return steps if isinstance(steps, int) and optimiser.get("decay") != "inverse-sqrt" else 0


def validated(curve: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """The validated epochs of a run's curve (curve.json), each with the steps by then."""
    return {entry["epoch"]: entry["step"] for entry in curve if entry["valid_ndcg"] is not None}


def refitted(facts: Mapping[str, Any]) -> bool:
    """Whether a refit is described. facts: a run's record (run.json) or `training` of a bundle's manifest."""
    return facts.get("fitted_on", TRAINING) != TRAINING


def _table(recipe: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Of a bundle's recipe nothing is known but that it is JSON."""
    table = recipe.get(name)
    return table if isinstance(table, dict) else {}
