"""Had validation settled when training ended?"""

from typing import Any

import pytest

from engine.bundle.curve import NOT_SETTLED, STILL_IMPROVING, unsettled, validated


def curve(scores: list[float | None], steps: int = 10) -> list[dict[str, Any]]:
    """One entry an epoch, of so many steps."""
    return [
        {"epoch": number, "step": steps * number, "valid_ndcg": score} for number, score in enumerate(scores, start=1)
    ]


@pytest.mark.parametrize(
    ("best", "scores", "patience", "expected"),
    [
        (3, [0.1, 0.2, 0.3], 0, STILL_IMPROVING),
        (2, [0.1, 0.2, None], 2, STILL_IMPROVING),  # what came after the last validation was never looked at
        (2, [0.1, 0.3, 0.2], 2, NOT_SETTLED),
        (1, [0.3, 0.2, 0.1], 2, None),  # patience ran out
        (1, [0.3, None, 0.1], 2, NOT_SETTLED),  # patience is of validations, not of epochs
        (1, [0.3, 0.2, 0.1], 0, NOT_SETTLED),  # nothing would have ended it but its epochs
        (0, [0.2, 0.1], 2, None),  # the model before its first step was the best
        (1, [None, None], 2, None),  # nothing validated
    ],
)
def test_settled_where_patience_ran_out(
    best: int, scores: list[float | None], patience: int, expected: str | None
) -> None:
    recipe = {"training": {"patience": patience}, "optimiser": {"warmup_steps": 0, "decay": "none"}}
    assert unsettled(best, validated(curve(scores)), recipe) == expected


@pytest.mark.parametrize(("decay", "expected"), [("none", NOT_SETTLED), ("inverse-sqrt", None)])
def test_validations_while_the_rate_climbs_are_no_verdict(decay: str, expected: str | None) -> None:
    recipe = {"training": {"patience": 2}, "optimiser": {"warmup_steps": 20, "decay": decay}}
    assert unsettled(1, validated(curve([0.3, 0.2, 0.1])), recipe) == expected
    assert unsettled(1, validated(curve([0.3, 0.2, 0.1, 0.1])), recipe) is None


@pytest.mark.parametrize("recipe", [{}, {"training": {"patience": "3"}}, {"training": []}])
def test_a_recipe_without_patience_leaves_it_open(recipe: dict[str, Any]) -> None:
    assert unsettled(1, validated(curve([0.3, 0.2])), recipe) is None
    assert unsettled(2, validated(curve([0.2, 0.3])), recipe) == STILL_IMPROVING
