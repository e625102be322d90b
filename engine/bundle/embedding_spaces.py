"""Vectors of items that no model owns, such as those of their words: exports/<dataset>/spaces/<name>/, beside the bundles.

    about.json      `SpaceAbout`: what the folder says of itself
    vectors.npy     float16 [items, dim]; a row of zeros: this item has none
    map.parquet     item, x, y: the items that have one, on a plane

Nothing is believed until it is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

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
