"""Small tokenizations for tests: exports/<dataset>/identifiers/<name>/ beside the toy bundles, without torch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.identifiers import NONE
from tests.runtime.bundles import FINGERPRINT, MADE, seal

ITEMS, CODES, DIM = 40, 5, 3
PROJECTION = {"method": "by hand", "parameters": {"metric": "euclidean"}, "trustworthiness": 0.9, "neighbours": 4}


def toy_codes(seed: int = 0, items: int = ITEMS) -> np.ndarray:
    """int32 [items, 3]: two levels of own codes, of which the last one of level 2 is dead, and a number that counts."""
    rng = np.random.default_rng(seed)
    own = np.stack([rng.integers(0, CODES, items), rng.integers(0, CODES - 1, items)], axis=1)
    seen: dict[tuple[int, ...], int] = {}
    numbers = []
    for row in map(tuple, own.tolist()):
        numbers.append(seen.get(row, 0))
        seen[row] = numbers[-1] + 1
    return np.column_stack([own, numbers]).astype(np.int32)


def write_tokenization(
    root: Path,
    name: str = "rqvae",
    codes: np.ndarray | None = None,
    *,
    own: tuple[int, ...] = (CODES, CODES),
    vectors: bool = True,
    maps: bool = False,
    seed: int = 0,
    **changes: Any,
) -> Path:
    """root: the dataset's folder. codes: int [items, levels] with −1 in trailing places; `own` levels are the tokenizer's.
    maps: places of codebooks and latents, as format 2 has them. changes: entries of about.json."""
    codes = toy_codes(seed) if codes is None else codes
    folder = root / "identifiers" / name
    folder.mkdir(parents=True)
    table = {
        "item": pa.array(range(len(codes)), pa.int32()),
        "codes": pa.array([[code for code in row if code != NONE] for row in codes.tolist()], pa.list_(pa.int32())),
    }
    pq.write_table(pa.table(table), folder / "identifiers.parquet")
    if vectors:
        rng = np.random.default_rng(seed + 1)
        np.save(folder / "codebooks.npy", rng.normal(size=(len(own), max(own), DIM)).astype(np.float32))
        np.save(folder / "latents.npy", rng.normal(size=(len(codes), DIM)).astype(np.float32))
        places = [(level, code) for level, size in enumerate(own) for code in range(size)]
        plane = {
            "level": pa.array([level for level, _ in places], pa.int32()),
            "code": pa.array([code for _, code in places], pa.int32()),
            "x": pa.array(rng.normal(size=len(places)), pa.float32()),
            "y": pa.array(rng.normal(size=len(places)), pa.float32()),
            "cluster": pa.array([code % 2 for _, code in places], pa.int32()),
        }
        pq.write_table(pa.table(plane), folder / "codes_map.parquet")
    if vectors and maps:
        rng = np.random.default_rng(seed + 2)
        for file, columns in (
            ("codebooks_map.parquet", {"level": plane["level"], "code": plane["code"]}),
            ("latents_map.parquet", {"item": table["item"]}),
        ):
            xy = rng.normal(size=(2, len(next(iter(columns.values())))))
            placed = {name: pa.array(values, pa.float32()) for name, values in zip("xy", xy, strict=True)}
            pq.write_table(pa.table({**columns, **placed}), folder / file)
        changes = {"schema_version": 2, "codebooks_map": PROJECTION, "latents_map": PROJECTION, **changes}
    raw = about(name, codes, own, vectors)
    (folder / "about.json").write_text(json.dumps(raw))
    seal(folder, **changes)
    return folder


def about(name: str, codes: np.ndarray, own: tuple[int, ...], vectors: bool) -> dict[str, Any]:
    base = codes[:, : len(own)]
    different = len(np.unique(base, axis=0))
    sizes = [max(int(column.max()) + 1, *own[at : at + 1], 1) for at, column in enumerate(codes.T)]
    before = {
        "different": different, "excess": 1 - different / len(codes), "sharing": 0.5, "groups": len(codes) - different,
        "largest": 4,
    }  # fmt: skip
    apart = {"different": len(codes), "excess": 0.0, "sharing": 0.0, "groups": 0, "largest": 1}
    plane = {"method": "by hand", "shares": [0.5] * len(own), "clusters": 2, "source": "by hand"}
    return {
        "schema_version": 1, "name": name, "title": name.upper(), "tokenizer": "rqvae", "summary": "Made up for tests.",
        "paper": "None.", "order": 10, "dataset": "toys", "fingerprint": FINGERPRINT, "num_items": len(codes),
        "shape": {
            "levels": codes.shape[1], "sizes": sizes, "names": [], "shared": False,
            "ends": bool((codes == NONE).any()), "own": list(own),
        },
        "policy": "append", "codebooks": DIM if vectors else None, "latents": DIM if vectors else None,
        "plane": plane if vectors else None,
        "figures": {
            "before": before, "after": before if codes.shape[1] == len(own) else apart, "moved": 0,
            "reconstruction": 0.25 if vectors else None,
            "neighbours": {"of": "alpha", "shared": 0.3, "shared_by_cosine": 0.5, "chance": 0.1},
        },
        "recipe": {}, "command": "by hand", "commit": None, "device": "cpu", "seconds": 1.0, "versions": {},
        "started": MADE["created"], "files": {}, **MADE,
    }  # fmt: skip
