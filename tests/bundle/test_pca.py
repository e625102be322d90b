"""Principal components: against numpy's singular values, and rows that stand for nothing."""

import numpy as np
import pytest

from engine.bundle.embedding_spaces import pca

ROWS = np.random.default_rng(0).normal(size=(200, 8)) * np.arange(1, 9) + 3


def test_the_plane_of_the_largest_variance() -> None:
    plane = pca(ROWS, "euclidean")
    centred = ROWS - ROWS.mean(0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(np.abs(plane.places), np.abs(left[:, :2] * singular[:2]), atol=1e-4)
    assert plane.shares == pytest.approx(tuple(singular[:2] ** 2 / (singular**2).sum()))
    assert (plane.places == pca(ROWS, "euclidean").places).all()


def test_by_cosine_lengths_do_not_matter_and_a_row_of_zeros_has_no_place() -> None:
    rows = ROWS.astype(np.float16)
    rows[7] = 0
    plane, longer = pca(rows, "cosine"), pca(rows * np.float16(2), "cosine")
    assert np.isnan(plane.places[7]).all() and np.isfinite(np.delete(plane.places, 7, 0)).all()
    assert np.allclose(plane.places, longer.places, atol=1e-3, equal_nan=True)


def test_one_dimension_and_no_variance_are_drawn_as_well() -> None:
    assert pca(ROWS[:, :1], "euclidean").shares == (1, 0)
    assert pca(np.ones((3, 2)), "euclidean").places.tolist() == [[0, 0]] * 3
