"""Small spaces for tests: exports/<dataset>/spaces/<name>/ beside the toy bundles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.runtime.bundles import FINGERPRINT, MADE, seal
from tests.runtime.tokenizations import PROJECTION

ITEMS, DIM = 40, 6


def toy_vectors(seed: int = 0, items: int = ITEMS, without: tuple[int, ...] = ()) -> np.ndarray:
    """float16 [items, DIM] of unit length, rows of zeros where an item is `without` one; item 7 equals item 3."""
    rows = np.random.default_rng(seed).normal(size=(items, DIM))
    rows[7] = rows[3]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[list(without)] = 0
    return rows.astype("<f2")


def write_space(
    root: Path,
    name: str = "minilm",
    *,
    items: int = ITEMS,
    seed: int = 0,
    without: tuple[int, ...] = (),
    **changes: Any,
) -> Path:
    """root: the dataset's folder. changes: entries of about.json."""
    folder = root / "spaces" / name
    folder.mkdir(parents=True)
    vectors = toy_vectors(seed, items, without)
    np.save(folder / "vectors.npy", vectors)
    some = np.flatnonzero(vectors.any(axis=1))
    xy = np.random.default_rng(seed + 1).normal(size=(2, len(some))).astype(np.float32)
    pq.write_table(pa.table({"item": some.astype(np.int32), "x": xy[0], "y": xy[1]}), folder / "map.parquet")
    about = {
        "schema_version": 1, "name": name, "title": f"Words ({name})", "summary": "Made up for tests.",
        "source": "Made up for tests.", "licence": "None needed.", "order": 10, "dataset": "toys",
        "fingerprint": FINGERPRINT, "num_items": len(vectors), "dim": DIM, "geometry": "cosine",
        "without": len(without), "projection": PROJECTION, "files": {}, **MADE,
    }  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about))
    seal(folder, **changes)
    return folder
