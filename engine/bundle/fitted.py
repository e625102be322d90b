"""Which events a model was fitted on; asked of runs, where pydantic may be missing, and of bundles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAKS = "was fitted on validation events, too, so nothing that learns from it could be validated; name the run it is a refit of"
"""Why no training starts from a refit, and no tokenizer learns from one."""
TRAINING = "training"
"""Training events alone: every run and bundle that does not say otherwise."""
WITH_VALIDATION = "training and validation"
"""A refit (engine/training/refit.py): the validation events, too, after they had chosen the number of epochs."""


def refitted(facts: Mapping[str, Any]) -> bool:
    """Whether a refit is described. facts: a run's record (run.json) or `training` of a bundle's manifest."""
    return facts.get("fitted_on", TRAINING) != TRAINING
