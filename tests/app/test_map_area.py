"""What is selected on a map as a text, and back: the very same items, in few characters."""

from __future__ import annotations

import numpy as np
import pytest

from app.analysis import map_points, semantic_ids
from app.analysis.map_points import Points


def cloud(n: int = 5_000, scale: float = 1.0) -> Points:
    rng = np.random.default_rng(0)
    return Points(*(scale * rng.normal(size=(2, n)) + 3 * scale).astype(np.float32))


def circle(corners: int, radius: float = 1.0, scale: float = 1.0) -> map_points.Outline:
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    return (scale * (3 + radius * np.cos(turn))).tolist(), (scale * (3 + radius * np.sin(turn))).tolist()


@pytest.mark.parametrize("scale", [1e-3, 300.0])
def test_an_outline_keeps_its_items_and_loses_its_corners(scale: float) -> None:
    points = cloud(scale=scale)
    areas = [circle(200, scale=scale), ([0.0, scale], [0.0, 2 * scale])]
    text = map_points.outline_text(points, areas)
    assert text is not None and len(text) < 1_500
    again = map_points.outlines(text)
    assert again is not None and len(again) == 2 and len(again[1][0]) == 2
    assert len(again[0][0]) < 120
    assert np.array_equal(map_points.within(points, again), map_points.within(points, areas))
    assert len(map_points.within(points, areas)) > 500


def test_few_items_need_few_corners_and_some_areas_no_text_can_say() -> None:
    few = Points(np.array([3.0, 9.0], np.float32), np.array([3.0, 9.0], np.float32))
    text = map_points.outline_text(few, [circle(200)])
    assert text is not None and len(text) < 200
    points = cloud(100)
    assert map_points.outline_text(points, []) is None
    assert map_points.outline_text(points, [([1.0], [2.0])]) is None
    assert map_points.outline_text(points, [([0.0, 1.0], [0.0, 1.0])] * 11) is None
    nowhere = Points(np.full(3, np.nan, np.float32), np.full(3, np.nan, np.float32))
    assert map_points.outline_text(nowhere, [circle(9)]) is None


def test_outlines_and_prefixes() -> None:
    assert [map_points.split(text) for text in ("a.b~1-2~3", "x")] == [("a.b", "1-2~3"), ("x", "")]
    assert map_points.outlines("-1.5_2_3_-0.25") == [([-1.5, 3.0], [2.0, -0.25])]
    few = ("", "1_2", "1_2_3_4_5", "1_2_3_4~")
    for wrong in (*few, "nan_0_1_1", "1e9_0_1_1", "٣_0_1_1", "1_2_3_4 ", "1.2345678901_0_1_1"):
        assert map_points.outlines(wrong) is None
    assert map_points.prefix("12-200") == (12, 200) and map_points.prefix("x-7") == (None, 7)
    for wrong in ("", "x", "7-", "-7", "7-x", "1--2", "99999999999", "٣"):
        assert map_points.prefix(wrong) is None
    codes = np.array([[1, 2], [1, 3], [4, 2], [1, -1]])
    assert semantic_ids.with_prefix(codes, (None, 2)).tolist() == [0, 2]  # others: test_semantic_ids.py
