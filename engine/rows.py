"""Arrays on disk that another run goes on with: written as a whole, and not trusted to be sound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.files import replacing

Float32 = npt.NDArray[np.float32]


def write_rows(path: Path, rows: Float32) -> None:
    with replacing(path) as staged, staged.open("wb") as file:
        np.save(file, rows, allow_pickle=False)


def read_rows(path: Path, shape: tuple[int, int]) -> Float32 | None:
    """float32 `shape`; None where there is no such array, a damaged one, or one with numbers that are not finite."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    sound = isinstance(array, np.ndarray) and array.dtype == np.float32 and array.shape == shape
    return array if sound and np.isfinite(array).all() else None
