"""The bundles of models that count: their graphs are a few lines of ONNX, written as such. PyTorch's exporter, which follows a
network through its modules, takes seconds to be loaded and seconds for each of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper, parser

from engine.bundle.manifest import ItemToItem
from engine.bundle.onnx_graph import ENTRIES, ENTRY_WEIGHTS, POSITION_WEIGHTS, STARTS
from engine.export.graphs import OPSET
from engine.export.staging import Draft
from engine.models.item_to_item import ItemToItem as ItemToItemModel
from engine.models.popularity import Popularity

_ORDERED = """
    count = Cast <to = 7> (real)
    read = ReduceSum <keepdims = 0> (count, axis_1)
    others = Sub (read, one)
    row = Max (others, zero)
    kappa = Gather <axis = 0> (position_weights, row)
    width = Shape <start = 1, end = 2> (latest)
    length = Squeeze (width)
    oldest = Sub (length, one)
    event = Range (zero, length, one)
    age = Sub (oldest, event)
    kappa_of = Gather <axis = 1> (kappa, age)
    items_read = Identity (latest)
    is_real = Cast <to = 1> (real)
    counts = Mul (kappa_of, is_real)
"""
"""What each event counts: κ of its age, in the row of as many items as there are. A range that falls would do for the ages, but
ONNX Runtime makes a slice of it that ends at −1, the last place."""
_UNORDERED = """
    width = Shape <start = 1, end = 2> (latest)
    items_read, place_before = TopK <axis = 1, largest = 0, sorted = 1> (latest, width)
    shifted = Pad (items_read, shift, minus_one)
    again = Equal (items_read, shifted)
    new = Not (again)
    is_padding = Equal (items_read, padding)
    is_item = Not (is_padding)
    counted = And (new, is_item)
    counts = Cast <to = 1> (counted)
"""
"""The same where no order is read: 1, of an item that is there twice once. In the order of item numbers, so that sums do not
depend on another."""
_ADDED = """
    begin = Gather <axis = 0> (starts, items_read)
    next = Add (items_read, one)
    end = Gather <axis = 0> (starts, next)
    lengths = Sub (end, begin)
    rows = Unsqueeze (begin, axis_2)
    beyond = Add (rows, ahead)
    place = Min (beyond, last)
    lengths_of = Unsqueeze (lengths, axis_2)
    inside = Less (ahead, lengths_of)
    is_inside = Cast <to = 1> (inside)
    half = Gather <axis = 0> (entry_weights, place)
    weight = Cast <to = 1> (half)
    weight_of = Mul (weight, is_inside)
    counts_of = Unsqueeze (counts, axis_2)
    given = Mul (counts_of, weight_of)
    entry = Gather <axis = 0> (entries, place)
    entry_of = Cast <to = 7> (entry)
    gives = Flatten <axis = 1> (given)
    to = Flatten <axis = 1> (entry_of)
    query = ScatterElements <axis = 1, reduction = "add"> (zeros, to, gives)
"""
"""What each event gives to each item, added up. Every row of W is read as far as the longest goes."""


def write_item_to_item(model: ItemToItemModel, draft: Draft) -> None:
    """encoder.onnx and the weights between items as arrays, to which it refers where they are large."""
    arrays = {STARTS: model.starts, ENTRIES: model.entries, ENTRY_WEIGHTS: model.weights}
    if model.reads_order:
        arrays[POSITION_WEIGHTS] = model.position_weights
    for file, tensor in arrays.items():
        np.save(draft.folder / file, tensor.numpy(), allow_pickle=False)
    draft.item_to_item = ItemToItem(entries=len(model.entries))
    constants: dict[str, npt.ArrayLike] = {file.removesuffix(".npy"): tensor.numpy() for file, tensor in arrays.items()}
    constants |= {
        "one": 1, "minus_one": -1, "zero": 0, "axis_1": [1], "axis_2": [2], "padding": model.pad, "shift": [0, 1, 0, -1],
        "first": [-model.max_length], "all": [np.iinfo(np.int64).max], "last": len(model.entries) - 1,
        "ahead": np.arange(max(1, int(model.starts.diff().max()))),
    }  # fmt: skip
    body = f"""
    latest = Slice (items, first, all, axis_1)
    equal_padding = Equal (latest, padding)
    real = Not (equal_padding)
    {_ORDERED if model.reads_order else _UNORDERED}
    {_ADDED}
    """
    if not len(model.entries):  # nothing follows from anything: the prior alone
        body = "query = Identity (zeros)"
    length = "length" if model.max_length > 1 else "1"
    (draft.folder / "encoder.onnx").write_bytes(_graph(body, length, model.num_items, constants))


def write_constant(model: Popularity, draft: Draft) -> None:
    """encoder.onnx of a model that reads nothing: a query of zeros, so that the bias of the index is the score."""
    (draft.folder / "encoder.onnx").write_bytes(_graph("query = Identity (zeros)", "1", 1, {}))


def _graph(body: str, length: str, dim: int, constants: dict[str, npt.ArrayLike]) -> bytes:
    """items int64 [batch, length] → query float32 [batch, dim]. body: lines of ONNX's text form, which may use the constants, and
    `zeros` of the shape of the query."""
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : {OPSET}], producer_name: "seqscope">
    encoder (int64[batch, {length}] items) => (float[batch, {dim}] query) {{
        batch_size = Shape <start = 0, end = 1> (items)
        shape = Concat <axis = 0> (batch_size, dim)
        zeros = ConstantOfShape (shape)
        {body}
    }}""")
    used = {name for node in model.graph.node for name in node.input}
    arrays = {name: np.asarray(values) for name, values in {**constants, "dim": [dim]}.items() if name in used}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
