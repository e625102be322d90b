"""PyTorch modules as ONNX graphs with a free batch and a free length."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch
from onnx import TensorProto
from torch import Tensor, nn

from engine.errors import SeqscopeError
from engine.machine import without_collector
from engine.models import Recommender

OPSET = 20


def answers(model: Recommender, items: Tensor) -> dict[str, Tensor]:
    """What the encoder answers, by the names of the outputs (docs/bundle.md), the query first. items: int64 [batch, length]."""
    more = {}
    if model.adds_parts:
        more["parts"] = model.query_parts(items)
        query = more["parts"].sum(1)
    elif model.filter_window is not None:
        query, matches = model.query_with_matches(items)
        more["matches"] = torch.cat(matches, dim=1)
    else:
        query = model.query(items)
    if model.gated is not None:
        more["gates"] = model.gates(items)
    return {"query": query, **more}


def explanations(model: Recommender, items: Tensor) -> dict[str, Tensor]:
    """Of `answers`, what is beside the query."""
    if not model.adds_parts and model.gated is None and model.filter_window is None:
        return {}
    return {name: answer for name, answer in answers(model, items).items() if name != "query"}


def write_encoder(model: Recommender, path: Path) -> None:
    """encoder.onnx: items int64 [batch, length] → query float32 [batch, dim], and what else `answers` has"""
    query = Function(model, lambda items: tuple(answers(model, items).values()))
    save(query, {"items": histories(model)}, [*answers(model, histories(model)[0])], path)


def write_attention(model: Recommender, path: Path) -> None:
    """attention.onnx: the same input → attention float32 [batch, layers, heads, positions, positions]"""
    attention = Function(model, lambda items: model.query_with_attention(items)[1])
    save(attention, {"items": histories(model)}, ["attention"], path)


def histories(model: Recommender) -> tuple[Tensor, dict[int, str]]:
    """An example of the input `items`, int64 [batch, length], and which of its dimensions are free."""
    length = min(6, model.max_length)
    example = torch.arange(2 * length).reshape(2, length) % model.num_items
    return example, {0: "batch"} | ({1: "length"} if model.max_length > 1 else {})


class Function(nn.Module):
    """What is computed with a model as a module, which is all that the exporter takes."""

    def __init__(self, model: nn.Module, forward: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.forward = model, forward


def save(module: nn.Module, inputs: dict[str, tuple[Tensor, dict[int, str]]], outputs: list[str], path: Path) -> None:
    """`module` as a graph. inputs: name → an example and its free dimensions, in the order of the module's arguments. Raises
    SeqscopeError where PyTorch cannot make one."""
    module.eval()  # the exporter would keep dropout in the graph otherwise
    examples = tuple(example for example, _ in inputs.values())
    shapes = tuple(free for _, free in inputs.values())
    with warnings.catch_warnings(), torch.no_grad(), without_collector():
        warnings.simplefilter("ignore")  # about torchvision and pytree internals
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            program = torch.onnx.export(
                module, examples, None, input_names=list(inputs), output_names=outputs, dynamic_shapes=shapes,
                opset_version=OPSET, dynamo=True, external_data=False, verbose=False,
            )  # fmt: skip
        except torch.onnx.OnnxExporterError as error:
            name = type(module.model if isinstance(module, Function) else module).__name__
            reason = " ".join(str(error.__cause__ or error).split())[:500]
            raise SeqscopeError(
                f"{name} cannot be exported: PyTorch makes no graph of it ({reason}). docs/extending.md says what helps."
            ) from error
        finally:
            logging.disable(before)
    assert program is not None
    path.write_bytes(serialised(portable(program.model_proto)))


def portable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph with Max for x.clamp(min=…) of whole numbers: OpenVINO takes a maximum that is missing for one below it."""
    whole = {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.INT64}
    for node in model.graph.node:
        if node.op_type == "Clip" and node.input[1] in whole and not "".join(node.input[2:]):
            del node.input[2:]
            node.op_type = "Max"
    return model


def session(path: Path) -> onnxruntime.InferenceSession:
    """A graph that was written, on the CPU, to be compared."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def serialised(model: onnx.ModelProto) -> bytes:
    """A graph without what the exporter notes of the program it came from: stack traces name files of the machine it ran on."""
    graphs = [model.graph]
    while graphs:
        part = graphs.pop()
        for holder in (part, *part.node, *part.value_info, *part.input, *part.output, *part.initializer):
            holder.ClearField("metadata_props")
        for node in part.node:
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
            graphs += [graph for attribute in node.attribute for graph in attribute.graphs]
    for function in model.functions:
        for holder in (function, *function.node, *function.value_info):
            holder.ClearField("metadata_props")
    return bytes(model.SerializeToString())
