"""Had validation settled when training ended?"""

from __future__ import annotations

import pytest

from engine.bundle.curve import improving, validated


@pytest.mark.parametrize(
    ("best", "scores", "expected"),
    [
        (3, [0.1, 0.2, 0.3], True),
        (2, [0.1, 0.3, 0.2], False),
        (2, [0.1, 0.2, None], True),  # what came after the last validation was never looked at
        (0, [0.1], False),  # the model before its first step was the best
        (1, [None], None),
    ],
)
def test_improving_where_the_last_validation_is_the_best(
    best: int, scores: list[float | None], expected: bool | None
) -> None:
    curve = [{"epoch": number, "valid_ndcg": score} for number, score in enumerate(scores, 1)]
    assert improving(best, validated(curve)) is expected
