"""k-means, and identifiers from it alone: residual k-means (levels of centres over what the levels before left over).

A strong and simple baseline: no network, no dead codes (GRID of Snap Research ships it beside RQ-VAE).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from engine.cards import Card, OnPage, Variant
from engine.tokenizers.base import Codes, Learning, Material, Tokenizer, Vectors
from engine.tokenizers.scaling import Scaling

CHUNK = 4096


@dataclass(frozen=True)
class ResidualKMeansConfig:
    levels: int = 3
    codes: int = 256
    """Centres per level."""
    standardise: bool = False
    """Scale every dimension of the item vectors to mean 0 and deviation 1 first."""
    iterations: int = 50
    """At most so many rounds of k-means per level."""


def centres(
    points: Vectors, codes: int, generator: np.random.Generator, iterations: int = 50, starts: int = 1
) -> Vectors:
    """float32 [codes, d]: k-means++ and Lloyd's rounds over all of `points`, the best of `starts`.

    Fewer distinct points than codes: the codes that are left over stand beside a point each, and stay unused until moved.
    One thread, so that the result is the same in every run.
    """
    distinct = np.unique(points, axis=0)
    if len(distinct) <= codes:
        spread = points.std(0, dtype=np.float64).astype(np.float32) * 0.01 + 1e-6
        beside = distinct[generator.integers(0, len(distinct), codes - len(distinct))]
        noise = generator.standard_normal(beside.shape).astype(np.float32)
        return np.concatenate([distinct, beside + noise * spread]).astype(np.float32)
    from sklearn.cluster import KMeans  # takes a second: not for those who only read identifiers

    with threadpool_limits(1):
        seed = int(generator.integers(2**31))
        fitted = KMeans(codes, n_init=starts, max_iter=iterations, random_state=seed).fit(points)
    return np.asarray(fitted.cluster_centers_, np.float32)


def nearest(points: Vectors, book: Vectors) -> Codes:
    """int32 [points]: the row of `book` nearest to each; ties go to the first."""
    half = (book * book).sum(1) / 2
    chunks = [
        (half - points[start : start + CHUNK] @ book.T).argmin(1) for start in range(0, max(len(points), 1), CHUNK)
    ]
    return np.concatenate(chunks).astype(np.int32)


class ResidualKMeans(Tokenizer):
    name = "residual-kmeans"
    Config = ResidualKMeansConfig
    card = Card(
        title="Residual k-means",
        order=30,
        summary="k-means over the items' text vectors, then over what its centres leave over, and so on. Nothing is "
        "learned by gradient; the plain baseline of RQ-VAE.",
        paper="After Rajput et al., NeurIPS 2023, who compare with other ways to make codes",
        variants=(Variant("residual-kmeans", "green", OnPage()),),
    )
    needs = ("vectors",)

    def __init__(self, config: ResidualKMeansConfig, scaling: Scaling, books: list[Vectors]) -> None:
        self.config, self.scaling, self.books, self.record = config, scaling, books, {}

    @classmethod
    def fit(
        cls, material: Material, config: ResidualKMeansConfig, generator: np.random.Generator, learning: Learning
    ) -> Self:
        scaling = Scaling.of(material.of("vectors"), config.standardise)
        residual, books = scaling(material.of("vectors")), []
        for _ in range(config.levels):
            books.append(centres(residual, config.codes, generator, config.iterations))
            residual = residual - books[-1][nearest(residual, books[-1])]
        return cls(config, scaling, books)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.config.codes,) * self.config.levels

    def identify(self, material: Material) -> Codes:
        residual, codes = self.latents(material), []
        for book in self.books:
            codes.append(nearest(residual, book))
            residual = residual - book[codes[-1]]
        return np.stack(codes, 1)

    def latents(self, material: Material) -> Vectors:
        return self.scaling(material.of("vectors"))

    def quantised(self, codes: Codes) -> Vectors:
        return np.sum([book[codes[:, level]] for level, book in enumerate(self.books)], axis=0, dtype=np.float32)

    def codebooks(self) -> Vectors:
        return np.stack(self.books)

    def last(self, material: Material, codes: Codes) -> Vectors:
        """float32 [items, codes]: squared distance of each item's last residual to every code of the last level."""
        residual = self.latents(material)
        for level, book in enumerate(self.books[:-1]):
            residual = residual - book[codes[:, level]]
        book = self.books[-1]
        return (residual * residual).sum(1, keepdims=True) - 2 * residual @ book.T + (book * book).sum(1)

    def lost(self, material: Material, codes: Codes) -> float:
        vectors = self.latents(material)
        return self.scaling.lost(vectors, self.quantised(codes))

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        books = {f"book.{level}": book for level, book in enumerate(self.books)}
        return {"mean": self.scaling.mean, "scale": self.scaling.scale, **books}, {"config": asdict(self.config)}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        books = [arrays[f"book.{level}"] for level in range(config.levels)]
        return cls(config, Scaling(arrays["mean"], arrays["scale"]), books)
