"""Models that add up what each item of a history says of another (engine/models/item_to_item.py): the weights that their bundles
carry, the scores, and a score taken apart into its events, exactly.

    score(h, j) = Σ_p κ(p) · W[h_p, j] + prior[j]

κ is row l − 1 of position_weights for a history of l items, newest first; where a model reads no order, each item of the history
counts 1, once. item_to_item.npz has the entries of W in the order of i · items + j, each as its distance from the one before, the
bytes of these apart, and as the number of its weight among 256 levels: most distances are below 256, few levels are frequent, and
both shrink when they are deflated (docs/bundle.md).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.bundle.files import Folder
from engine.bundle.index import Float32
from engine.bundle.manifest import File, ItemToItem, Manifest
from engine.bundle.tables import CELLS, read_archive, read_matrix
from engine.data.ragged import offsets_of

FILE = "item_to_item.npz"
_SMALL = np.iinfo(np.int16).max
"""Items up to which their numbers are kept as int16."""
_AT_A_TIME = 1 << 18
"""Entries that are unpacked at once."""


def bytes_of_gap(items: int) -> int:
    """Bytes that hold any number up to items²."""
    return ((items * items).bit_length() + 7) // 8


class ItemToItemWeights:
    """W by rows: those of item i are the places starts[i] … starts[i + 1] − 1 of entries (items, ascending) and weights.

    starts: int64 [items + 1]; entries: int [entries]; weights: float16 [entries]; positions: float32 [max_length, max_length],
    None where the model reads no order."""

    provider = "numpy"

    def __init__(
        self,
        starts: npt.NDArray[np.int64],
        entries: npt.NDArray[np.integer],
        weights: npt.NDArray[np.float16],
        positions: Float32 | None,
    ) -> None:
        self.starts, self.entries, self.weights, self.positions = starts, entries, weights, positions

    def run(self, histories: npt.NDArray[np.int64]) -> Float32:
        """Scores without the prior, float32 [batch, items]. histories: int64 [batch, length], padded with the number of items."""
        items = len(self.starts) - 1
        scores = np.zeros((len(histories), items), np.float32)
        for of_history, history in zip(scores, histories, strict=True):
            events = history[history < items]
            if self.positions is None:  # sums do not depend on an order that means nothing
                events = np.unique(events)
            for event, count in zip(events.tolist(), self._counts(events), strict=True):
                row = slice(self.starts[event], self.starts[event + 1])
                of_history[self.entries[row]] += count * self.weights[row]
        return scores

    def contributions(self, events: npt.NDArray[np.int64], item: int) -> Float32:
        """What each of the events that the model reads gives to the item, float32 [events]."""
        given = np.zeros(len(events), np.float32)
        for place, (event, count) in enumerate(zip(events.tolist(), self._counts(events), strict=True)):
            row = slice(self.starts[event], self.starts[event + 1])
            at = np.searchsorted(self.entries[row], item)
            if at < row.stop - row.start and self.entries[row][at] == item:
                given[place] = count * self.weights[row][at]
        return given

    def _counts(self, events: npt.NDArray[np.int64]) -> Float32:
        """What each event counts, float32 [events]."""
        if self.positions is not None:
            return self.positions[len(events) - 1, : len(events)][::-1]
        # an item that is there twice counts once: where it was last
        last = len(events) - 1 - np.unique(events[::-1], return_index=True)[1]
        return np.isin(np.arange(len(events)), last).astype(np.float32)


def read_weights(folder: Folder, manifest: Manifest) -> ItemToItemWeights:
    """Those that a bundle carries. Raises BundleError."""
    assert manifest.item_to_item is not None
    longest = manifest.encoder.max_length if manifest.capabilities.reads_order else None
    read = unpack if FILE in manifest.files else _read_unpacked
    return read(folder, manifest.files, manifest.num_items, manifest.item_to_item, longest)


def unpack(
    folder: Folder, files: dict[str, File], items: int, shape: ItemToItem, longest: int | None
) -> ItemToItemWeights:
    """item_to_item.npz; longest: items read of a history, None where the model reads no order."""
    count, levels = shape.entries, shape.levels
    if count > CELLS:
        raise folder.fault(FILE, f"{count:,} weights are more than the {CELLS:,} that this program unpacks")
    kinds: dict[str, tuple[tuple[int, ...], str]] = {
        "gaps": ((bytes_of_gap(items), count), "|u1"),
        **({"codes": ((count,), "|u1"), "levels": ((levels,), "<f2")} if levels else {"weights": ((count,), "<f2")}),
    }
    if longest is not None:
        kinds["position_weights"] = (longest, longest), "<f4"
    arrays = read_archive(folder, FILE, files[FILE], kinds)
    entries: npt.NDArray[np.integer] = np.empty(count, np.int16 if items <= _SMALL else np.int32)
    lengths, before = np.zeros(items, np.int64), -1
    for begin in range(0, count, _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        gaps = np.zeros(len(entries[part]), np.int64)
        for byte, values in enumerate(arrays["gaps"][:, part]):
            gaps |= values.astype(np.int64) << 8 * byte
        places = before + np.cumsum(gaps)  # the first that is too large is no overflow yet
        if not gaps.all() or places.max() >= items * items:
            raise folder.fault(FILE, "its entries do not ascend, each once, within the catalogue")
        rows, entries[part] = np.divmod(places, items)
        lengths[rows[0] : rows[-1] + 1] += np.bincount(rows - rows[0])
        before = int(places[-1])
    starts = offsets_of(lengths)
    weights = arrays["levels"][arrays["codes"]] if levels else arrays["weights"]
    return ItemToItemWeights(starts, entries, weights, arrays.get("position_weights"))


def _read_unpacked(
    folder: Folder, files: dict[str, File], items: int, shape: ItemToItem, longest: int | None
) -> ItemToItemWeights:
    """As bundles of schema_version 6 have them: each array a file, the numbers as they are used."""
    count = shape.entries

    def read(file: str, shape: tuple[int, ...], kind: str) -> Any:
        return read_matrix(folder, file, files[file], shape, kind)

    starts = read("starts.npy", (items + 2,), "<i8")  # with a row of padding, which is empty
    entries = read("entries.npy", (count,), "<i2" if items <= _SMALL else "<i4")
    weights = read("entry_weights.npy", (count,), "<f2")
    lengths = np.diff(starts)
    if starts[0] != 0 or starts[-1] != count or lengths.min() < 0 or lengths[-1] > 0:
        raise folder.fault("starts.npy", f"its numbers do not ascend from 0 to the {count:,} entries")
    places = np.repeat(np.arange(items), lengths[:-1]) * items + entries
    if count and (entries.min() < 0 or entries.max() >= items or (np.diff(places) <= 0).any()):
        raise folder.fault("entries.npy", "the items of a row do not ascend, each once, within the catalogue")
    positions = None if longest is None else read("position_weights.npy", (longest, longest), "<f4")
    return ItemToItemWeights(starts[:-1], entries, weights, positions)
