"""Vectors of items that no model owns, such as those of their words: exports/<dataset>/spaces/<name>/, beside the bundles.

    about.json      `SpaceAbout`: what the folder says of itself
    vectors.npy     float16 [items, dim]; a row of zeros: this item has none
    map.parquet     item, x, y: the items that have one, on a plane

Nothing is believed until it is checked. `pca` draws vectors that come without a map.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, model_validator

from engine.bundle.files import Catalogue, Folder, Lazy, read_about
from engine.bundle.index import Neighbours, nearest
from engine.bundle.manifest import File, Name, Order, Projection, Sha256, Strict
from engine.bundle.tables import read_matrix, read_places

ABOUT, VECTORS, MAP = "about.json", "vectors.npy", "map.parquet"
_FILES = {VECTORS, MAP}


class SpaceAbout(Strict):
    schema_version: Literal[1] = 1
    name: Name
    """The name of its folder."""
    title: str = Field(min_length=1, max_length=60)
    summary: str = Field(max_length=2_000)
    """What nearness says here, in a sentence or two."""
    source: str = Field(max_length=2_000)
    """Where the vectors come from."""
    licence: str = Field(max_length=2_000)
    order: Order = 100
    dataset: str
    fingerprint: Sha256
    num_items: int = Field(ge=1)
    dim: int = Field(ge=1, le=65_536)
    geometry: Literal["cosine", "euclidean"]
    without: int = Field(ge=0)
    """Items that have no vector: their rows are zeros, and they are not on the map."""
    projection: Projection
    """How map.parquet was made."""
    created: str
    created_by: str
    files: dict[str, File]

    @model_validator(mode="after")
    def _complete(self) -> SpaceAbout:
        if set(self.files) != _FILES:
            raise ValueError(f"the files should be {MAP}, {VECTORS}, not {', '.join(sorted(self.files)) or 'none'}")
        return self


class Space:
    """Vectors of the items of one catalogue. All methods may be called from many threads at once.

    Attributes: name, the folder's name; about (`SpaceAbout`); digest, hex, changes with any content (for cache keys). The files
    are read on first use, which raises BundleError where one is damaged.
    """

    def __init__(self, folder: Folder, about: SpaceAbout, digest: str) -> None:
        self.folder, self.about, self.digest = folder, about, digest
        self.name, self.order = about.name, about.order
        self._vectors = Lazy(self._read)
        self._map = Lazy(lambda: read_places(folder, MAP, about.files[MAP], about.num_items))

    @classmethod
    def open(cls, path: Path, catalogue: Catalogue) -> Space:
        """Raises BundleError where about.json or a file it names is missing, of another size, or of another catalogue."""
        folder = Folder(path, f"spaces/{path.name}")
        return cls(folder, *read_about(folder, ABOUT, SpaceAbout, 1, catalogue, "space", "embed the items again"))

    def __repr__(self) -> str:
        return f"Space({self.name!r}, {self.about.title!r})"

    def warm(self) -> None:
        """Reads vectors and map now."""
        _ = self.vectors, self.map_table()

    @property
    def vectors(self) -> npt.NDArray[np.float16]:
        """float16 [items, dim]; a row of zeros where an item has no vector."""
        return self._vectors.value()

    def neighbours(self, item: int, k: int) -> Neighbours:
        """The k items nearest to `item`, by exact comparison with all. Raises QuestionError where it has no vector."""
        return nearest(self.vectors, item, k, self.about.geometry)

    def map_table(self) -> pa.Table:
        """item int32 (each at most once), x float32, y float32."""
        return self._map.value()

    def _read(self) -> npt.NDArray[np.float16]:
        about = self.about
        vectors: npt.NDArray[np.float16] = read_matrix(
            self.folder, VECTORS, about.files[VECTORS], (about.num_items, about.dim), "<f2"
        )
        empty = int((~vectors.any(axis=1)).sum())
        if empty != about.without:
            raise self.folder.fault(VECTORS, f"{empty:,} rows are zeros where {ABOUT} announces {about.without:,}")
        return vectors


# --- principal components

_NUMBERS = 1 << 22  # widened to float64 at a time


class Plane(NamedTuple):
    """Vectors on the plane that shows the most of their variance."""

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
