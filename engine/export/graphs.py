"""PyTorch modules as ONNX graphs with a free batch and a free length."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.models import Recommender

OPSET = 20


class _Query(nn.Module):
    def __init__(self, model: Recommender) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor) -> Tensor:
        return self.model.query(items)


class _Attention(nn.Module):
    def __init__(self, model: Recommender) -> None:
        super().__init__()
        self.model = model

    def forward(self, items: Tensor) -> Tensor:
        return self.model.query_with_attention(items)[1]


def write_encoder(model: Recommender, path: Path) -> None:
    """encoder.onnx: items int64 [batch, length] → query float32 [batch, dim]"""
    _write(_Query(model), "query", model, path)


def write_attention(model: Recommender, path: Path) -> None:
    """attention.onnx: the same input → attention float32 [batch, layers, heads, positions, positions]"""
    _write(_Attention(model), "attention", model, path)


def _write(module: nn.Module, output: str, model: Recommender, path: Path) -> None:
    module.eval()  # the exporter would keep dropout in the graph otherwise
    length = min(6, model.max_length)
    example = torch.arange(2 * length).reshape(2, length) % model.num_items
    shapes = {"items": {0: "batch"} | ({1: "length"} if model.max_length > 1 else {})}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about torchvision and pytree internals
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            program = torch.onnx.export(
                module, (example,), None, input_names=["items"], output_names=[output], dynamic_shapes=shapes,
                opset_version=OPSET, dynamo=True, external_data=False, verbose=False,
            )  # fmt: skip
        finally:
            logging.disable(before)
    assert program is not None
    path.write_bytes(program.model_proto.SerializeToString())
