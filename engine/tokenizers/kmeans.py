"""k-means: plain, with limits on the size of a cluster, and level after level over what is left over, which is a tokenizer."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from engine.cards import Card, OnPage, Variant
from engine.tokenizers.base import Codes, Learning, Material, Scaling, Tokenizer, Vectors

CHUNK = 4096

Labels = npt.NDArray[np.int64]
EXACT = 1024
"""Up to so many places (clusters × largest size) the assignment of a round is the best there is; above it, a good one."""


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
        return {"mean": self.scaling.mean, "scale": self.scaling.scale, **books}, {}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        books = [arrays[f"book.{level}"] for level in range(config.levels)]
        return cls(config, Scaling(arrays["mean"], arrays["scale"]), books)


# --- k-means whose clusters keep within a smallest and a largest size (Bradley, Bennett & Demiriz 2000).
#
# LETTER groups the rows of every codebook with it, and starts its codebooks from it.


def limits(points: int, clusters: int) -> tuple[int, int]:
    """Smallest and largest size of a cluster of codes: the authors' 10 and 60 for 256 codes in 10 clusters, and the same shares
    of the mean size for other numbers; the smallest is never above 10."""
    mean = points / clusters
    return max(1, min(10, int(mean / 2))), max(int(np.ceil(mean)), round(mean * 60 / 25.6))


def cluster(
    points: Vectors, clusters: int, smallest: int, largest: int, generator: np.random.Generator, rounds: int = 10
) -> tuple[Vectors, Labels]:
    """Centres float32 [clusters, d] and the cluster of each point, int64 [points].

    Raises ValueError where the sizes cannot be kept: clusters · smallest ≤ points ≤ clusters · largest must hold.
    """
    if clusters < 1 or smallest < 0 or not clusters * smallest <= len(points) <= clusters * largest:
        raise ValueError(f"{len(points)} points do not go into {clusters} clusters of {smallest} to {largest}")
    centres = points[_spread(points, clusters, generator)]
    labels: Labels = np.full(len(points), -1)
    assign = _best if clusters * largest <= EXACT else _good
    for _ in range(rounds):
        costs = (points * points).sum(1)[:, None] - 2 * points @ centres.T + (centres * centres).sum(1)
        before, labels = labels, assign(costs.astype(np.float64), smallest, largest)
        sizes = np.bincount(labels, minlength=clusters)
        sums = np.zeros(centres.shape)
        np.add.at(sums, labels, points)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres).astype(np.float32)
        if np.array_equal(before, labels):
            break
    return centres, labels


def codebook(points: Vectors, codes: int, generator: np.random.Generator) -> Vectors:
    """float32 [codes, d]: centres of clusters of LETTER's sizes: at least min(points / 2 · codes, 50), at most four times that,
    as far as the number of points allows it."""
    smallest = min(len(points) // (2 * codes), 50)
    largest = max(4 * smallest, -(-len(points) // codes))
    return cluster(points, codes, smallest, largest, generator)[0]


def _spread(points: Vectors, clusters: int, generator: np.random.Generator) -> Labels:
    """k-means++: each further start is drawn by its squared distance to those before. Returns rows of `points`."""
    chosen = [int(generator.integers(len(points)))]
    near = np.square(points - points[chosen[0]], dtype=np.float64).sum(1)
    for _ in range(clusters - 1):
        weights = near + 1e-12 * max(near.max(), 1.0)
        weights[chosen] = 0
        if not weights.any():
            weights[:] = 1
        chosen.append(int(generator.choice(len(points), p=weights / weights.sum())))
        near = np.minimum(near, np.square(points - points[chosen[-1]], dtype=np.float64).sum(1))
    return np.array(chosen)


def _best(costs: npt.NDArray[np.float64], smallest: int, largest: int) -> Labels:
    """The assignment of least total cost. Every cluster offers `largest` places; points fill all places that must be taken, and
    blanks, which cost nothing, fill what is left of the others."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    points, clusters = costs.shape
    places = clusters * largest
    must = np.tile(np.arange(largest) < smallest, clusters)
    square = np.zeros((places, places))
    square[:points] = np.repeat(costs - costs.min(), largest, axis=1)
    square[points:, must] = (square.max() + 1) * places
    _, columns = linear_sum_assignment(square)
    return (columns[:points] // largest).astype(np.int64)


def _good(costs: npt.NDArray[np.float64], smallest: int, largest: int) -> Labels:
    """Each point to its nearest cluster that has room, those first that would lose most by their second choice; then clusters
    that are too small take the points that lose least by coming."""
    points, clusters = costs.shape
    order = np.argsort(costs, axis=1, kind="stable")
    sorted_costs = np.take_along_axis(costs, order, 1)
    regret = sorted_costs[:, min(1, clusters - 1)] - sorted_costs[:, 0]
    labels, sizes = np.full(points, -1), np.zeros(clusters, np.int64)
    for point in np.argsort(-regret, kind="stable"):
        for choice in order[point]:
            if sizes[choice] < largest:
                labels[point] = choice
                sizes[choice] += 1
                break
    for small in np.argsort(sizes, kind="stable"):
        if sizes[small] >= smallest:
            continue
        extra = costs[:, small] - costs[np.arange(points), labels]
        for point in np.argsort(extra, kind="stable"):
            if sizes[small] >= smallest:
                break
            if labels[point] != small and sizes[labels[point]] > smallest:
                sizes[labels[point]] -= 1
                labels[point] = small
                sizes[small] += 1
    return labels
