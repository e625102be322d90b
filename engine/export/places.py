"""Places of vectors on a plane: made once, at export, and written with what is known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.export import projection
from engine.runtime.manifest import Projection

SEED = 42


Which = npt.NDArray[np.int64]


def found(
    rows: npt.NDArray[np.float32], geometry: str, centred: bool = False
) -> tuple[Which, npt.NDArray[np.float32], Projection]:
    """(which rows have a place, float32 [those, 2] by UMAP, how it was made). Needs more than `projection.NEIGHBOURS` rows.

    centred: nearness is that of rows less their mean."""
    which = projection.drawn(len(rows))
    part = rows[which] - rows.mean(0, dtype=np.float64).astype(np.float32) if centred else rows[which]
    xy, parameters = projection.umap(part, geometry, SEED)
    trust = projection.trustworthiness(part, xy, geometry, projection.NEIGHBOURS, SEED)
    near = min(projection.NEIGHBOURS, (len(part) - 1) // 2)  # so many are asked about
    return which, xy, Projection(method="UMAP", parameters=parameters, trustworthiness=trust, neighbours=near)


def write(path: Path, xy: npt.NDArray[np.float32], **names: npt.NDArray[Any]) -> None:
    """names: what stands at each place, as int32: item, or level and code."""
    table = {name: values.astype(np.int32) for name, values in names.items()}
    pq.write_table(pa.table({**table, "x": xy[:, 0], "y": xy[:, 1]}), path, compression="zstd")
