"""Tensors that a graph of a bundle shares are stored once, as ONNX external data: in weights.npy where several graphs hold them,
or as rows of index.npy.

A bundle's encoder and its attention are the same network with another output, and the table of items that both begin with is
often the index again. ONNX Runtime and the package onnx find external data beside the graph by themselves.
"""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engine.bundle.files import Folder
from engine.bundle.manifest import File
from engine.bundle.onnx_graph import ARRAYS, INDEX, WEIGHTS
from engine.bundle.tables import ARRAY_BYTES

LEAST = 1 << 10
"""Bytes of the smallest tensor that is moved out of its graph."""
_ALIGNED = 64  # bytes: what numpy aligns the beginning of an array in a file to, and the widest registers want


def share(folder: Path) -> bool:
    """Rewrites the graphs of a folder so that none repeats what another, or index.npy, holds; whether there was anything.

    Values do not change by a bit. Nothing may have been moved out of the graphs before.
    """
    graphs = {path: onnx.load(path) for path in sorted(folder.glob("*.onnx"))}
    rows = _rows(folder / INDEX)
    moved = False
    if rows is not None:
        for model in graphs.values():
            for tensor in _large(model):
                moved |= _from_index(model, tensor, rows, _begin(folder / INDEX))
    held = Counter(_digest(tensor) for model in graphs.values() for tensor in _large(model))
    shared = [tensor for model in graphs.values() for tensor in _large(model) if held[_digest(tensor)] > 1]
    content, places = bytearray(), dict[bytes, int]()
    for tensor in shared:
        if _digest(tensor) not in places:
            content.extend(bytes(-len(content) % _ALIGNED))
            places[_digest(tensor)] = len(content)
            content.extend(tensor.raw_data)
    if content:
        np.save(folder / WEIGHTS, np.frombuffer(bytes(content), np.uint8), allow_pickle=False)
        begin = _begin(folder / WEIGHTS)
        for tensor in shared:
            _refer(tensor, WEIGHTS, begin + places[_digest(tensor)], len(tensor.raw_data))
    if not (content or moved):
        return False
    for path, model in graphs.items():
        path.write_bytes(model.SerializeToString())
    return True


def whole(folder: Folder, files: Mapping[str, File], file: str) -> onnx.ModelProto:
    """A graph of a bundle with all of its tensors. Raises BundleError where a file is not what `files`, the manifest's, says."""
    for part in (file, *ARRAYS):
        if part in files:
            folder.read(part, limit=ARRAY_BYTES, expected=files[part])
    return onnx.load(folder.path / file)


def _large(model: onnx.ModelProto) -> list[TensorProto]:
    """The tensors of a graph that are worth moving and have not been."""
    return [tensor for tensor in model.graph.initializer if not tensor.external_data and len(tensor.raw_data) >= LEAST]


def _digest(tensor: TensorProto) -> bytes:
    return sha256(tensor.raw_data).digest() + tensor.data_type.to_bytes(4, "little")


def _rows(index: Path) -> np.ndarray | None:
    """index.npy, float32 [items, dim + 1], where it has rows."""
    if not index.exists():
        return None
    table: np.ndarray = np.load(index, allow_pickle=False)
    return table if table.shape[1] > 1 else None


def _begin(path: Path) -> int:
    """Where the numbers of a .npy file begin, in bytes."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
        return file.tell()


def _from_index(model: onnx.ModelProto, tensor: TensorProto, index: np.ndarray, begin: int) -> bool:
    """Makes a table of items of the index's rows, where it is that: with what stands before and after them (padding, a mask)."""
    items, width = len(index), index.shape[1] - 1
    if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2 or tensor.dims[1] != width:
        return False
    table, rows = numpy_helper.to_array(tensor), index[:, :-1].tobytes()
    begins = np.flatnonzero((table[: max(0, len(table) - items + 1)] == index[0, :-1]).all(1)).tolist()
    first = next((first for first in begins if table[first : first + items].tobytes() == rows), None)
    if first is None:
        return False
    graph, name = model.graph, tensor.name
    parts = [table[:first], None, table[first + items :]]
    graph.initializer.remove(tensor)
    if not any(other.name == INDEX for other in graph.initializer):
        whole = TensorProto(name=INDEX, data_type=TensorProto.FLOAT, dims=index.shape)
        _refer(whole, INDEX, begin, index.nbytes)
        bounds = [numpy_helper.from_array(np.array([at]), f"{INDEX}.{word}") for at, word in
                  ((0, "start"), (width, "end"), (1, "axis"))]  # fmt: skip
        graph.initializer.extend([whole, *bounds])
        cut = helper.make_node("Slice", [INDEX, *(bound.name for bound in bounds)], [f"{INDEX}.rows"])
        graph.node.insert(0, cut)
    names = []
    for place, part in enumerate(parts):
        if part is None:
            names.append(f"{INDEX}.rows")
        elif len(part):
            names.append(f"{name}.{place}")
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(part), names[-1]))
    graph.node.insert(1, helper.make_node("Concat", names, [name], axis=0))
    return True


def _refer(tensor: TensorProto, file: str, offset: int, length: int) -> None:
    tensor.ClearField("raw_data")
    del tensor.external_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
