"""What a bundle answers with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.runtime.index import Float32, Int32


class Recommendations(NamedTuple):
    """The answer to a batch of histories; row r belongs to history r, best item first."""

    items: Int32
    """[batch, k]; −1 after the last valid one."""
    scores: Float32
    """[batch, k]; −inf after the last valid one. Comparable within one model alone."""
    valid: npt.NDArray[np.int64]
    """[batch]: how many of a row are recommendations; fewer than k where the catalogue is used up."""


class Ranked(NamedTuple):
    """Items best first, and their scores."""

    items: Int32
    scores: Float32


class Neighbours(NamedTuple):
    """The items nearest to one item in the model's own space, nearest first."""

    items: Int32
    similarity: Float32
    """Cosine (−1 to 1) where measure is "cosine"; minus the distance where it is "euclidean". Higher is nearer."""
    measure: str
