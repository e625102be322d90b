"""Principal components of vectors: the plane that shows the most of their variance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_NUMBERS = 1 << 22  # widened to float64 at a time


class Plane(NamedTuple):
    places: npt.NDArray[np.float32]
    """[rows, 2], NaN for a row that stands for nothing."""
    shares: tuple[float, float]
    """Of the variance, that each of the two axes shows."""


def pca(rows: npt.NDArray[np.floating[Any]], geometry: str) -> Plane:
    """The first two principal components of float [rows, dim], exact and always the same.

    geometry: under "cosine" every row counts at length 1, and one of zeros stands for nothing; else rows count as they are.
    An axis points to where its largest loading is positive.
    """
    dim = rows.shape[1]
    total, products, some = np.zeros(dim), np.zeros((dim, dim)), 0
    for part in _compared(rows, geometry):
        part = part[np.isfinite(part[:, 0])]
        total += part.sum(0)
        products += part.T @ part
        some += len(part)
    mean = total / max(some, 1)
    variances, axes = np.linalg.eigh(products / max(some, 1) - np.outer(mean, mean))
    axes = axes[:, ::-1][:, :2]
    axes *= np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    places = np.zeros((len(rows), 2), np.float32)
    places[:, : axes.shape[1]] = np.concatenate([(part - mean) @ axes for part in _compared(rows, geometry)])
    places[np.isnan(places[:, 0])] = np.nan
    shares = np.append(np.maximum(variances[::-1], 0), 0.0)[:2] / max(float(variances.sum()), 1e-300)
    return Plane(places, (float(shares[0]), float(shares[1])))


def _compared(rows: npt.NDArray[np.floating[Any]], geometry: str) -> Iterator[npt.NDArray[np.float64]]:
    """The rows as they are compared, some at a time."""
    step = max(1, _NUMBERS // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step].astype(np.float64)
        if geometry == "cosine":
            with np.errstate(invalid="ignore"):
                part /= np.linalg.norm(part, axis=1, keepdims=True)
        yield part
