"""The graph that a model learnt along, for the page that shows its paths: who has what, and the vectors before any layer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from engine.bundle.manifest import Graph
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError
from engine.export.draft import Draft
from engine.models.graph import GraphRecommender
from engine.runtime.graph_paths import EMBEDDINGS, PEOPLE, InteractionGraph, Paths

MOST_EDGES = 5_000_000
"""Of a graph that a bundle carries: more would take longer to walk than a page waits."""


def write(model: GraphRecommender, draft: Draft) -> None:
    """people.parquet and, where scores are sums over paths, embeddings.npy; nothing where the graph is too large to be carried.

    Raises SeqscopeError where the paths do not add up to the model's scores.
    """
    everybody = Ragged(model.propagation.user_items.numpy(), model.propagation.user_offsets.numpy().astype(np.int64))
    if len(everybody.values) > MOST_EDGES:
        return
    with_items = np.flatnonzero(everybody.lengths)
    people = everybody.take(with_items)
    column = pa.ListArray.from_arrays(pa.array(people.offsets, pa.int32()), pa.array(people.values))
    pq.write_table(
        pa.table({"items": column}),
        draft.folder / PEOPLE,
        compression="zstd",
        compression_level=19,
        use_dictionary=False,
    )
    depth = len(model.layers()) - 1
    draft.graph = Graph(layers=depth, people=len(people), edges=len(people.values), layer_dim=model.layer_dim)
    if not model.sums_paths:
        return
    of_items, of_people = model.items.weight.detach().numpy(), model.users.weight.detach().numpy()[with_items]
    np.save(draft.folder / EMBEDDINGS, np.concatenate([of_items, of_people]).astype(np.float32))
    _check(model, Paths(InteractionGraph.of(people, model.num_items), of_items, of_people, depth))
    draft.graph = draft.graph.model_copy(update={"dim": of_items.shape[1]})


def _check(model: GraphRecommender, paths: Paths) -> None:
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
