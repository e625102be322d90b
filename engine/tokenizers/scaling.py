"""Item vectors brought to a common scale, by the mean and deviation of the catalogue that a tokenizer was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from engine.tokenizers.base import Vectors


@dataclass(frozen=True)
class Scaling:
    """mean, scale: float32 [d]; a vector x becomes (x − mean) · scale."""

    mean: Vectors
    scale: Vectors

    @classmethod
    def of(cls, vectors: Vectors, standardise: bool) -> Self:
        """Mean 0 and deviation 1 per dimension, or nothing at all. A dimension that never changes becomes 0."""
        if not len(vectors):
            raise ValueError("there are no items")
        mean = vectors.mean(0, dtype=np.float64)
        if not standardise:
            return cls(np.zeros_like(mean, np.float32), np.ones_like(mean, np.float32))
        deviation = vectors.std(0, dtype=np.float64)
        flat = deviation < 1e-6 * max(float(deviation.max()), 1e-12)
        scale = np.where(flat, 0.0, 1 / np.where(flat, 1, deviation))
        return cls(mean.astype(np.float32), scale.astype(np.float32))

    def __call__(self, vectors: Vectors) -> Vectors:
        if vectors.shape[1] != len(self.mean):
            raise ValueError(f"vectors have {vectors.shape[1]} dimensions, the tokenizer reads {len(self.mean)}")
        return ((vectors - self.mean) * self.scale).astype(np.float32)

    @staticmethod
    def lost(vectors: Vectors, reconstruction: Vectors) -> float:
        """Share of the variance of `vectors` that `reconstruction` does not reproduce."""
        spread = np.square(vectors - vectors.mean(0), dtype=np.float64).sum()
        return float(np.square(vectors - reconstruction, dtype=np.float64).sum() / max(float(spread), 1e-12))
