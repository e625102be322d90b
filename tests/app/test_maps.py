"""Attributes of items, and the regions of a map that are named after them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from app.analysis.map_points import Points
from app.analysis.map_regions import Region, attributes, regions, title_words

CORNERS = {"Horror": (0.0, 0.0), "Comedy": (10.0, 0.0), "Western": (0.0, 10.0), "Musical": (10.0, 10.0)}
EACH = 150


def clusters(jitter: float = 0.0) -> Points:
    """A cluster of items around each corner."""
    middles = np.repeat(np.array(list(CORNERS.values())), EACH, axis=0)
    xy = middles + np.random.default_rng(0).normal(size=middles.shape)
    xy += np.random.default_rng(1).normal(scale=max(jitter, 1e-9), size=xy.shape)
    return Points(xy[:, 0].astype(np.float32), xy[:, 1].astype(np.float32))


def catalogue() -> pa.Table:
    n = EACH * len(CORNERS)
    return pa.table(
        {
            "item": range(n),
            "title": [f"The night of {'Potter' if n - 12 <= i else i}" for i in range(n)],
            "genres": [[genre, "Drama"] for genre in CORNERS for _ in range(EACH)],
            "year": [1950 + i % 40 for i in range(n)],
            "price": [float(i) for i in range(n)],
        }
    )


def named(points: Points) -> list[Region]:
    items = catalogue()
    values = [attribute for attribute in attributes(items) if not attribute.ranges]
    return regions(points, [*values, title_words(items["title"].to_pylist())])


def test_a_region_is_named_after_what_its_items_have_and_others_have_not() -> None:
    coarse = {region.terms[0]: region for region in named(clusters()) if region.level == 0}
    assert set(CORNERS) <= set(coarse) and "Drama" not in coarse
    for genre, (x, y) in CORNERS.items():
        assert abs(coarse[genre].x - x) < 2 and abs(coarse[genre].y - y) < 2


def test_the_same_map_has_the_same_names_and_a_jitter_of_its_points_leaves_most() -> None:
    points = clusters()
    before = named(points)
    assert before == named(points)
    coarse = {region.name for region in before if region.level == 0}
    after = {region.name for region in named(clusters(jitter=0.1))}  # 1 % of the map
    assert len(coarse & after) >= 0.8 * len(coarse)


def test_what_is_not_on_the_map_and_words_that_many_titles_have_name_nothing() -> None:
    points = clusters()
    half = np.arange(len(points.x)) < 2 * EACH  # Horror and Comedy
    rest = Points(*(np.where(half, axis, np.float32(np.nan)) for axis in (points.x, points.y)))
    terms = {term for region in named(rest) for term in region.terms}
    assert {"Horror", "Comedy"} <= terms and not {"Western", "Musical"} & terms
    words = title_words(catalogue()["title"].to_pylist())
    assert words.values == ("Potter",) and words.counts(np.ones(600, bool)).tolist() == [12]


@pytest.mark.parametrize(
    "points", [Points(*np.full((2, 600), np.nan, np.float32)), Points(*np.ones((2, 600), np.float32))]
)
def test_a_map_of_no_extent_has_no_regions(points: Points) -> None:
    assert named(points) == []


def test_attributes_are_values_that_items_share_and_numbers_that_differ_are_called_differently() -> None:
    ids = pa.array([782672936283815938 + n for n in range(9)], pa.int64())
    items = pa.table({"postcode": [10115, 10117, 10119] * 3, "tweet": ids, "price": [12341.0 + n for n in range(9)]})
    postcode, *_, price = attributes(items)
    assert postcode.values == ("10,115", "10,117", "10,119") and postcode.having(["10,117"]).sum() == 3
    assert price.name == "price" and len(set(price.values)) == len(price.values) == 5
    genres, year, price = attributes(catalogue())
    assert genres.values[0] == "Drama" and set(genres.values[1:]) == set(CORNERS)
    assert year.values == ("1950s", "1960s", "1970s", "1980s") and not year.ranges
    assert price.ranges and len(price.values) == 5
    everything = np.ones(600, bool)
    assert price.counts(everything).tolist() == [120] * 5 and genres.counts(everything)[0] == 600
    horror = genres.having(["Horror"])
    assert horror.sum() == EACH and year.counts(horror).sum() == EACH
