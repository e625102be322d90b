"""The graph that a model learnt along, for the page that shows its paths: who has what, and the vectors before any layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from engine.errors import SeqscopeError
from engine.models.graph import GraphRecommender
from engine.models.lightgcn import LightGCN
from engine.runtime.manifest import Graph
from engine.runtime.paths import EMBEDDINGS, PEOPLE, InteractionGraph, Paths

MOST_EDGES = 5_000_000
"""Of a graph that a bundle carries: more would take longer to walk than a page waits."""


def write(model: GraphRecommender, folder: Path) -> Graph | None:
    """people.parquet and, where scores are sums over paths, embeddings.npy; None where the graph is too large to be carried.

    Raises SeqscopeError where the paths do not add up to the model's scores.
    """
    counts = np.diff(model.propagation.user_offsets.numpy())
    items = model.propagation.user_items.numpy()
    if len(items) > MOST_EDGES:
        return None
    people = np.flatnonzero(counts)
    offsets = np.concatenate([[0], np.cumsum(counts[people])])
    column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(items))
    pq.write_table(pa.table({"items": column}), folder / PEOPLE, compression="zstd")
    shape = Graph(layers=len(model.layers()) - 1, people=len(people), edges=len(items))
    if not isinstance(model, LightGCN):
        return shape
    of_items, of_people = model.items.weight.detach().numpy(), model.users.weight.detach().numpy()[people]
    np.save(folder / EMBEDDINGS, np.concatenate([of_items, of_people]).astype(np.float32))
    _check(model, Paths(InteractionGraph.of(offsets, items, model.num_items), of_items, of_people, shape.layers))
    return shape.model_copy(update={"dim": of_items.shape[1]})


def _check(model: LightGCN, paths: Paths) -> None:
    rng = np.random.default_rng(0)
    for length in (1, 3, 12):
        history = rng.choice(model.num_items, min(length, model.num_items), replace=False)
        with torch.inference_mode():
            scores = model.scores(torch.from_numpy(history)[None])[0].numpy()
        difference = np.abs(paths.scores(history.tolist()) - scores).max()
        if difference > 1e-4 * max(1.0, np.abs(scores).max()):
            raise SeqscopeError(
                f"the paths through the graph add up to other scores than the model's (off by {difference:.2g})"
            )
