"""Models that add up what each item of a history says of another (engine/models/item_to_item.py): the weights that their bundles
carry, and a score taken apart into its events, exactly.

    score(h, j) = Σ_p κ(p) · W[h_p, j] + prior[j]

W lies by rows: those of item i are the places starts[i] … starts[i + 1] − 1 of entries (items) and entry_weights. κ is row l − 1
of position_weights for a history of l items, newest first; where a model reads no order, each item of the history counts 1, once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.bundle.files import Folder
from engine.bundle.index import Float32
from engine.bundle.manifest import Manifest
from engine.bundle.onnx_graph import ENTRIES, ENTRY_WEIGHTS, POSITION_WEIGHTS, STARTS
from engine.bundle.tables import read_matrix

SMALL = np.iinfo(np.int16).max
"""Items up to which their numbers are kept as int16."""


@dataclass(frozen=True)
class Contributions:
    """A score as the sum of what each event of the history gave."""

    events: Float32
    """[history], oldest first; 0 for those that the model does not read."""
    prior: float
    """What the item has whatever the history."""

    @property
    def score(self) -> float:
        return float(self.events.sum(dtype=np.float64)) + self.prior


class ItemToItemWeights:
    """starts: int64 [items + 2]; entries: int [entries]; weights: float16 [entries]; positions: float32 [max_length, max_length],
    None where the model reads no order."""

    def __init__(
        self,
        starts: npt.NDArray[np.int64],
        entries: npt.NDArray[np.integer],
        weights: npt.NDArray[np.float16],
        positions: Float32 | None,
    ) -> None:
        self.starts, self.entries, self.weights, self.positions = starts, entries, weights, positions

    def contributions(self, events: npt.NDArray[np.int64], item: int) -> Float32:
        """What each of the events that the model reads gives to the item, float32 [events]."""
        if self.positions is not None:
            counts = self.positions[len(events) - 1, : len(events)][::-1]
        else:  # an item that is there twice counts once: where it was last
            last = len(events) - 1 - np.unique(events[::-1], return_index=True)[1]
            counts = np.isin(np.arange(len(events)), last).astype(np.float32)
        given = np.zeros(len(events), np.float32)
        for place, event in enumerate(events):
            row = slice(self.starts[event], self.starts[event + 1])
            at = np.searchsorted(self.entries[row], item)
            if at < row.stop - row.start and self.entries[row][at] == item:
                given[place] = counts[place] * np.float32(self.weights[row][at])
        return given


def read_weights(folder: Folder, manifest: Manifest) -> ItemToItemWeights:
    """Those that a bundle carries. Raises BundleError."""
    shape, files, items = manifest.item_to_item, manifest.files, manifest.num_items
    assert shape is not None
    starts = read_matrix(folder, STARTS, files[STARTS], (items + 2,), "<i8")
    kind = "<i2" if items <= SMALL else "<i4"
    entries = read_matrix(folder, ENTRIES, files[ENTRIES], (shape.entries,), kind)
    weights = read_matrix(folder, ENTRY_WEIGHTS, files[ENTRY_WEIGHTS], (shape.entries,), "<f2")
    if starts[0] != 0 or starts[-1] != shape.entries or (np.diff(starts) < 0).any() or starts[items] != shape.entries:
        raise folder.fault(STARTS, f"its numbers do not ascend from 0 to the {shape.entries:,} entries")
    if len(entries) and (entries.min() < 0 or entries.max() >= items):
        raise folder.fault(ENTRIES, f"it names items beyond the catalogue's {items:,}")
    begins = np.zeros(len(entries) + 1, bool)
    begins[starts] = True
    if ((np.diff(entries.astype(np.int64)) <= 0) & ~begins[1:-1]).any():
        raise folder.fault(ENTRIES, "the items of a row do not ascend, each once")
    longest = manifest.encoder.max_length
    positions = None
    if manifest.capabilities.reads_order:
        positions = read_matrix(folder, POSITION_WEIGHTS, files[POSITION_WEIGHTS], (longest, longest))
    return ItemToItemWeights(starts, entries, weights, positions)
