"""identifiers.parquet of a folder nobody vouches for: every item's codes, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from engine.bundle.manifest import File
from engine.data.identifiers import NONE, Identifiers
from engine.runtime.files import Folder
from engine.runtime.tables import Column, read_table

FILE = "identifiers.parquet"
CELLS = 1 << 26
"""Items times levels that are read."""


class Shape(Protocol):
    """What a manifest says of identifiers; see `engine.bundle.manifest.Generator`."""

    @property
    def levels(self) -> int: ...
    @property
    def sizes(self) -> Sequence[int]: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def shared(self) -> bool: ...
    @property
    def ends(self) -> bool: ...


def read_identifiers(folder: Folder, expected: File, items: int, shape: Shape) -> Identifiers:
    """The identifiers of all `items`, read-only. Raises BundleError where they are not what `shape` announces."""
    if items * shape.levels > CELLS:
        raise folder.fault(FILE, f"{items:,} items of {shape.levels} codes are more than are read here")
    wanted = {
        "item": Column(pa.int32(), 0, items - 1),
        "codes": Column(pa.list_(pa.int32()), 0, max(shape.sizes) - 1),
    }
    table = read_table(folder, FILE, wanted, expected=expected)
    if not np.array_equal(table["item"].to_numpy(), np.arange(items)):
        raise folder.fault(FILE, f"row i must be item i, for all {items:,} items")
    rows = table["codes"].combine_chunks()
    lengths = np.diff(rows.offsets.to_numpy())
    if lengths.min() < 1 or lengths.max() > shape.levels:
        raise folder.fault(FILE, f"identifiers have {lengths.min()} to {lengths.max()} codes, not 1 to {shape.levels}")
    codes = np.full((items, shape.levels), NONE, np.int32)
    codes[np.arange(shape.levels) < lengths[:, None]] = rows.flatten().to_numpy()
    try:
        found = Identifiers(codes, tuple(shape.sizes), shape.shared, tuple(shape.names))
    except ValueError as error:
        raise folder.fault(FILE, f"these are no identifiers ({error})") from None
    if found.ends != shape.ends:
        words = "some" if found.ends else "none"
        raise folder.fault(FILE, f"{words} of the identifiers are short, the manifest says otherwise")
    codes.flags.writeable = False
    return found
