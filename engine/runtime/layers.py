"""A score taken apart into layers where a model keeps them side by side (NGCF, equations 9 and 10).

Query and item rows are layers 0 … K, one after the other, so that

    score(i) = Σ_k qᵏ · eᵏ_i        and layer k of a history meets layer k of an item alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from engine.bundle.manifest import Manifest
from engine.runtime.files import Folder
from engine.runtime.index import ItemIndex

Float32 = npt.NDArray[np.float32]


class SideBySide:
    """The layers of a model that scores with all of them side by side."""

    def __init__(self, index: ItemIndex, query: Callable[[Sequence[int]], Float32], layers: int, dim: int) -> None:
        """index: float32 rows [items, (layers + 1) · dim]; query: history → float32 [(layers + 1) · dim]."""
        self.index, self.query, self.layers, self.dim = index, query, layers, dim

    def by_layer(self, history: Sequence[int], item: int) -> Float32:
        """What each layer adds to the item's score, float32 [layers + 1]."""
        products: Float32 = self.query(history) * self.index.rows[item]
        return products.reshape(self.layers + 1, self.dim).sum(1)

    def scores(self, history: Sequence[int], without: int | None = None) -> Float32:
        """Of all items, float32 [items]; `without` one layer: the sum of the others."""
        query = self.query(history).copy()
        if without is not None:
            query[without * self.dim : (without + 1) * self.dim] = 0
        return self.index.scores(query)


def read_layers(
    folder: Folder, manifest: Manifest, index: ItemIndex, query: Callable[[Sequence[int]], Float32]
) -> SideBySide:
    """Raises BundleError where scores have a part that is no layer's."""
    shape = manifest.graph
    assert shape is not None and shape.layer_dim is not None
    if index.table[:, -1].any():
        raise folder.fault("index.npy", "its items have biases, where layers side by side are the whole score")
    return SideBySide(index, query, shape.layers, shape.layer_dim)
