"""A zoo in which models that write codes stand beside one that does not."""

from pathlib import Path

import numpy as np

from tests.runtime.bundles import TOYS, entries, make_zoo, seal
from tests.runtime.generators import ToyGenerator, ragged, with_attention, with_vectors, write_generator

WRITER = ToyGenerator("writer", cross=True, lead=1)
RAGGED = ToyGenerator("ragged", identifiers=ragged(), seed=5)


def make_writers(root: Path, name: str = "writers") -> Path:
    """alpha: with vectors of items. writer: all that a generator may have. ragged: identifiers of several lengths, no more."""
    path = make_zoo(root, TOYS[:1], name=name)
    folder = write_generator(path, WRITER)
    with_attention(folder, WRITER, whole=True)
    rng = np.random.default_rng(0)
    with_vectors(
        folder, rng.standard_normal((40, 6)).astype(np.float32), rng.standard_normal((3, 6, 6)).astype(np.float32)
    )
    (folder / "map.parquet").write_bytes((path / "alpha" / "map.parquet").read_bytes())
    seal(
        folder,
        projection=entries(path / "alpha")["projection"],
        capabilities=entries(folder)["capabilities"] | {"map": True},
        metrics={"full": {"NDCG@10": 0.5, "outside@5": 0.25}},
    )
    write_generator(path, RAGGED)
    return path
