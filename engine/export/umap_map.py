"""A map of the items: UMAP of the item rows (McInnes et al. 2018), with a figure for how far it can be trusted."""

import contextlib
import operator
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.bundle.manifest import SAMPLE, Projection

SEED = 42
NEIGHBOURS = 15
MOST = 20_000
"""Items that a map has. Of a larger catalogue it is made of so many, drawn at random; pages say how many are missing."""
_EPOCH = "_nb_optimize_layout_euclidean_single_epoch"


def umap_map(
    rows: npt.NDArray[np.float32], geometry: str, centred: bool = False
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], Projection]:
    """(which rows have a place, float32 [those, 2] by UMAP, how it was made). Needs more than NEIGHBOURS rows.

    centred: nearness is that of rows less their mean."""
    which = on_map(len(rows))
    part = rows[which] - rows.mean(0, dtype=np.float64).astype(np.float32) if centred else rows[which]
    xy, parameters = umap(part, geometry, SEED)
    trust = trustworthiness(part, xy, geometry, NEIGHBOURS, SEED)
    near = min(NEIGHBOURS, (len(part) - 1) // 2)  # so many are compared
    return which, xy, Projection(method="UMAP", parameters=parameters, trustworthiness=trust, neighbours=near)


def write_map(path: Path, xy: npt.NDArray[np.float32], **names: npt.NDArray[Any]) -> None:
    """names: what stands at each place, as int32: item, or level and code."""
    table = {name: values.astype(np.int32) for name, values in names.items()}
    pq.write_table(pa.table({**table, "x": xy[:, 0], "y": xy[:, 1]}), path, compression="zstd")


def on_map(count: int) -> np.ndarray:
    """int64: which of `count` items are on the map, ascending; always the same."""
    if count <= MOST:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MOST, replace=False))


def nearest(rows: np.ndarray, k: int, metric: str, queries: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Exact nearest rows of `queries` (all rows where None), itself first: indices and distances, [queries, k].

    rows: float32 [items, dim]; metric: "cosine" or "euclidean". Memory stays at one block of distances.
    """
    base = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) if metric == "cosine" else rows
    from_rows = np.arange(len(rows)) if queries is None else queries
    k = min(k, len(rows))
    indices, distances = np.empty((len(from_rows), k), np.int32), np.empty((len(from_rows), k), np.float32)
    squares = np.einsum("ij,ij->i", base, base)
    for start in range(0, len(from_rows), 1024):
        part = from_rows[start : start + 1024]
        product = base[part] @ base.T
        neighbours = 1 - product if metric == "cosine" else np.maximum(squares[part, None] + squares - 2 * product, 0)
        neighbours[np.arange(len(part)), part] = -1  # itself first, also among duplicates
        order = np.argpartition(neighbours, k - 1, axis=1)[:, :k]
        values = np.take_along_axis(neighbours, order, 1)
        rank = np.lexsort((order, values), axis=1)
        indices[start : start + len(part)] = np.take_along_axis(order, rank, 1)
        sorted_values = np.maximum(np.take_along_axis(values, rank, 1), 0)
        distances[start : start + len(part)] = sorted_values if metric == "cosine" else np.sqrt(sorted_values)
    return indices, distances


def umap(rows: np.ndarray, metric: str, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Coordinates float32 [items, 2] and the parameters they were made with."""
    import umap as umap_learn

    _keep_compiled(umap_learn)
    k = min(NEIGHBOURS, len(rows) - 1)
    parameters: dict[str, Any] = {"n_neighbors": k, "min_dist": 0.1, "metric": metric, "random_state": seed}
    indices, distances = nearest(rows, k, metric)
    # exact neighbours spare the approximate search; below 4,096 items the default branch would take a minute without it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that new items cannot be placed later; nobody asks it to
        reducer = umap_learn.UMAP(
            **parameters, precomputed_knn=(indices, distances, None), force_approximation_algorithm=True, n_jobs=1
        )
        placed = reducer.fit_transform(rows.astype(np.float32))
    return np.asarray(placed, np.float32), parameters | {"version": umap_learn.__version__}


def _keep_compiled(umap_learn: ModuleType) -> None:
    """Numba keeps what it compiles of UMAP's slowest functions, 5 s of work, for the next process: the library asks it to for
    others only. Where no folder can be written, each process compiles them anew."""
    for name in ("umap_.smooth_knn_dist", "umap_.compute_membership_strengths", f"layouts.{_EPOCH}"):
        with contextlib.suppress(AttributeError, RuntimeError):
            compiled = operator.attrgetter(name)(umap_learn)
            if not compiled.signatures:
                compiled.enable_caching()


def trustworthiness(rows: np.ndarray, placed: np.ndarray, metric: str, k: int, seed: int) -> float:
    """1 where all map neighbours are neighbours in the space, 0.5 by chance (Venna & Kaski 2001), over at most SAMPLE items."""
    n = len(rows)
    k = min(k, (n - 1) // 2)
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(n, SAMPLE, replace=False)) if n > SAMPLE else np.arange(n)
    near, _ = nearest(placed, k + 1, "euclidean", sample)
    base = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) if metric == "cosine" else rows
    squares = np.einsum("ij,ij->i", base, base)
    penalty = 0.0
    for place, item in enumerate(sample):
        distance = squares - 2 * (base @ base[item])
        distance[item] = -np.inf
        others = near[place][near[place] != item][:k]
        # rank in the original space, 1 = nearest other item
        ranks = (distance[None, :] < distance[others, None]).sum(1)
        penalty += np.maximum(ranks - k, 0).sum()
    return float(1 - penalty * 2 / (len(sample) * k * (2 * n - 3 * k - 1)))
