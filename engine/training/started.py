"""Weights to start from that an exported bundle holds: a server has bundles where it has no runs.

Its item encoder is the network as it was when it encoded the items, so histories and items begin alike.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from torch import Tensor

from engine.errors import SeqscopeError

GRAPH = "item_encoder.onnx"
_OURS = "model."


def is_bundle(path: Path) -> bool:
    return (path / "manifest.json").is_file() and (path / GRAPH).is_file()


def weights(path: Path) -> tuple[dict[str, Tensor], str]:
    """The weights by name, and a digest of the files that hold them. Raises SeqscopeError."""
    import onnx  # a bare GPU box has none, and needs none
    from onnx import numpy_helper

    try:
        inside = onnx.load(path, load_external_data=False).graph.initializer
        outside = sorted({entry.value for one in inside for entry in one.external_data if entry.key == "location"})
        graph = onnx.load(path).graph
        arrays = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    except Exception as error:  # protobuf's, onnx's and those of reading
        raise SeqscopeError(f"{path} cannot be read ({error}). Export it again.") from error
    found = {name.removeprefix(_OURS): array for name, array in arrays.items() if name.startswith(_OURS)}
    made = {node.output[0]: node for node in graph.node}
    # PyTorch's exporter keeps every name but those of matrices, which it turns over: the bias that is added says whose they are
    for node in graph.node:
        if node.op_type != "Add":
            continue
        for bias, product in (node.input, reversed(node.input)):
            source = made.get(product)
            if source is None or source.op_type != "MatMul" or source.input[1] not in arrays:
                continue
            if bias in arrays and bias.startswith(_OURS):
                found[bias.removeprefix(_OURS).removesuffix("bias") + "weight"] = arrays[source.input[1]].T
    digest = hashlib.sha256()
    for file in (path.name, *outside):
        digest.update(path.with_name(file).read_bytes())
    return {name: torch.from_numpy(array.copy()) for name, array in found.items()}, digest.hexdigest()
