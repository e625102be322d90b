"""The bundles of models that count: weights between items, packed, and a graph that is a few lines of ONNX, written as such.
PyTorch's exporter, which follows a network through its modules, takes seconds to be loaded and seconds for each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import checker, numpy_helper, parser

from engine.bundle.files import Folder
from engine.bundle.manifest import ItemToItem
from engine.export import vectors
from engine.export.graphs import OPSET
from engine.export.staging import Draft, file_of
from engine.models.item_to_item import LEVELS
from engine.models.item_to_item import ItemToItem as ItemToItemModel
from engine.models.popularity import Popularity
from engine.runtime.item_to_item import FILE, bytes_of_gap, unpack


def write_item_to_item(model: ItemToItemModel, draft: Draft) -> None:
    """item_to_item.npz, which engine/runtime/item_to_item.py reads, and index.npy."""
    items, count, file = model.num_items, len(model.entries), draft.folder / FILE
    rows = np.repeat(np.arange(items + 1), np.diff(model.starts.numpy()))
    gaps = np.diff(rows * items + model.entries.numpy(), prepend=-1)
    arrays: dict[str, Any] = {
        "gaps": gaps.astype("<i8").view(np.uint8).reshape(count, 8).T[: bytes_of_gap(items)].copy()
    }
    levels, codes = np.unique(model.weights.numpy(), return_inverse=True)
    few = len(levels) <= LEVELS
    if few:
        arrays |= {"codes": codes.astype(np.uint8), "levels": np.pad(levels, (0, LEVELS - len(levels)))}
    else:
        arrays["weights"] = model.weights.numpy()
    if model.reads_order:
        arrays["position_weights"] = model.position_weights.numpy()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    np.save(draft.folder / "index.npy", model.prior.numpy()[:, None], allow_pickle=False)
    draft.item_to_item, draft.dim = ItemToItem(entries=count, levels=256 if few else 0), items
    longest = model.max_length if model.reads_order else None
    folder = Folder(draft.folder, draft.folder.name)
    weights = unpack(folder, {FILE: file_of(file)}, items, draft.item_to_item, longest)
    draft.checks.append(
        lambda: vectors.compare(draft.folder, model, draft.cases, draft.recipe.training.seed, weights.run)
    )


def write_constant(model: Popularity, draft: Draft) -> None:
    """encoder.onnx of a model that reads nothing: a query of zeros, so that the bias of the index is the score."""
    constant = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : {OPSET}], producer_name: "seqscope">
    encoder (int64[batch, 1] items) => (float[batch, 1] query) {{
        batch_size = Shape <start = 0, end = 1> (items)
        shape = Concat <axis = 0> (batch_size, dim)
        query = ConstantOfShape (shape)
    }}""")
    constant.graph.initializer.append(numpy_helper.from_array(np.array([1]), "dim"))
    checker.check_model(constant)
    (draft.folder / "encoder.onnx").write_bytes(constant.SerializeToString())
