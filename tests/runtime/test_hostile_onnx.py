"""Graphs of bundles that are damaged or malicious, one way each: refused by file and reason, before they run or when they do."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.bundle.onnx_graph import inspect
from engine.runtime import BundleError, Zoo
from tests.runtime.bundles import (
    TOYS,
    Graph,
    amend,
    attention_graph,
    edit,
    encoder_graph,
    flip,
    seal,
    with_gates,
    with_matches,
    with_parts,
)
from tests.runtime.spoil import Cases, Spoil, each, graph, outside, raw, refuses

TOY = TOYS[0]
Change = Callable[[onnx.ModelProto], object]


def encoder(change: Change) -> Spoil:
    model = encoder_graph(TOY)
    change(model)
    return graph(model)


def constant_elsewhere(model: onnx.ModelProto) -> None:
    node = model.graph.node.add(op_type="Constant", output=["c"])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(model.graph.initializer[0])
    outside(attribute.t)


def branch_elsewhere(model: onnx.ModelProto) -> None:
    node = model.graph.node.add(op_type="If", output=["c"])
    attribute = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
    tensor = attribute.g.initializer.add()
    tensor.CopyFrom(model.graph.initializer[0])
    outside(tensor)


def function_elsewhere(model: onnx.ModelProto) -> None:
    node = model.functions.add(name="f", domain="d").node.add(op_type="Constant")
    attribute = node.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.values.CopyFrom(model.graph.initializer[0])
    outside(attribute.sparse_tensor.values)


def nested_branches(model: onnx.ModelProto) -> None:
    inner = model.graph
    for _ in range(40):
        node = inner.node.add(op_type="If", output=["c"])
        inner = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g


def items(kind: int, shape: list[str | int], name: str = "items") -> Spoil:
    value = helper.make_tensor_value_info(name, kind, shape)
    return encoder(lambda model: model.graph.input[0].CopyFrom(value))


def output(name: str, kind: int, shape: list[str | int]) -> Change:
    return lambda model: model.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, kind, shape))


def attention_of_another_rank(folder: Path) -> None:
    model = attention_graph(TOY)
    output("attention", FLOAT, ["b", 2, "p", "p"])(model)
    graph(model, "attention.onnx")(folder)


def refer(
    file: str = "weights.npy",
    shape: Callable[[list[int]], list[int]] = list,
    offset: int = 0,
    length: int | None = None,
    then: Spoil = bool,
) -> Spoil:
    """The first tensor of the encoder lies in another file of the bundle; `shape` spoils its shape."""

    def spoil(folder: Path) -> None:
        model = encoder_graph(TOY)
        tensor = model.graph.initializer[0]
        size = len(numpy_helper.to_array(tensor).tobytes())
        np.save(folder / "weights.npy", np.zeros(size, np.uint8))
        for field in ("raw_data", "float_data", "int64_data", "int32_data"):
            tensor.ClearField(field)  # type: ignore[arg-type]
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", offset), ("length", size if length is None else length)):
            tensor.external_data.add(key=key, value=str(value))
        dims = shape(list(tensor.dims))
        del tensor.dims[:]
        tensor.dims.extend(dims)
        (folder / "encoder.onnx").write_bytes(model.SerializeToString())
        seal(folder, schema_version=5)
        then(folder)

    return spoil


INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT
ENCODER = encoder_graph(TOY).SerializeToString()
last_item_alone = items(INT64, ["batch", 1])
CASES: Cases = {
    "encoder.onnx": {
        "weights elsewhere": ("weights in another file", encoder(lambda m: outside(m.graph.initializer[0]))),
        "constant elsewhere": ("weights in another file", encoder(constant_elsewhere)),
        "branch elsewhere": ("weights in another file", encoder(branch_elsewhere)),
        "function elsewhere": ("weights in another file", encoder(function_elsewhere)),
        "weights of another name": ("weights in another file", refer("map.parquet")),
        "weights beyond the end": ("beyond the end of weights.npy", refer(offset=129)),
        "weights of another size": ("bytes of weights.npy", refer(shape=lambda shape: [*shape, 1 << 40])),
        "weights of nothing": ("cannot be 0 bytes", refer(shape=lambda shape: [0, 1 << 62], length=0)),
        "weights of many dimensions": ("does not say which part", refer(shape=lambda shape: [*shape, *[1] * 64])),
        "weights from a negative place": ("does not say which part", refer(offset=-8)),
        "weights that are not listed": (
            "weights.npy, which the bundle lacks", refer(then=lambda f: ((f / "weights.npy").unlink(), seal(f)))
        ),
        "compiled engine": (
            "an engine compiled elsewhere",
            encoder(lambda m: m.graph.node.add(op_type="EPContext", domain="com.microsoft", output=["c"])),
        ),
        "nested branches": ("nested deeper than", encoder(nested_branches)),
        "another input": (
            "the one input must be called items, not history", items(INT64, ["batch", "length"], "history")
        ),
        "another output": (
            "an output must be called query, not scores", encoder(output("scores", FLOAT, ["batch", 6]))
        ),
        "other numbers": ("input items must be int64", items(TensorProto.INT32, ["batch", "length"])),
        "the last item alone": ("any batch and length, not [any, 1]", last_item_alone),
        "another width": ("query must be [any, 6], not [any, 5]", graph(encoder_graph(replace(TOY, dim=5)))),
        "parts with too few names": (
            "parts must be [any, 2, 6], not [any, 3, 6]", lambda f: with_parts(f, TOY, (0.2, 0.3, 0.5))
        ),
        "matches of fewer items": (
            "output matches must be [any, 6, any], not [any, 3, 2]", lambda f: with_matches(f, TOY, claimed=3)
        ),
        "encoder of noise": ("damaged", raw("encoder.onnx", np.random.default_rng(1).bytes(4000))),
        # merged by protocol buffers, where a reader that takes the first graph would see another than ONNX Runtime does
        "encoder twice": ("not an ONNX model", raw("encoder.onnx", ENCODER * 2)),
        # an empty graph under 7 + 2³², of which protocol buffers keep 32 bits
        "a second graph under another number": (
            "a number of a field that is none", raw("encoder.onnx", ENCODER + b"\xba\x80\x80\x80\x10\x00")
        ),
    },
    "weights.npy": {
        "weights tampered with": ("sha256 differs", refer(then=lambda f: flip(f / "weights.npy"))),
    },
    "manifest.json": {
        "weights of an old version": (
            "weights.npy belongs to schema_version 5", refer(then=lambda f: seal(f, schema_version=1))
        ),
    },
    "attention.onnx": {
        "attention of another rank": ("output attention must have 5 dimensions, not 4", attention_of_another_rank),
    },
}  # fmt: skip


@each(CASES)
def test_refused(path: Path, file: str, says: str, spoil: Spoil) -> None:
    refuses(path, file, says, spoil)


def failing(op: str, **attributes: object) -> onnx.ModelProto:
    g = Graph()
    rows = g.add("Gather", g.constant(-np.abs(TOY.table) - 1, np.float32), "items")
    g.add(op, g.add("ReduceSum", rows, g.ints(1), keepdims=0), output="query", **attributes)
    return g.model("query", ["batch", 6])


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (failing("Log"), "answered with NaN or infinity"),
        (failing("Transpose", perm=[1, 0]), "answered with float32 (6, 1) where float32 [1, 6] was promised"),
    ],
    ids=["nan", "shape"],
)
def test_what_shows_only_when_it_runs(path: Path, model: onnx.ModelProto, says: str) -> None:
    graph(model)(path / "alpha")
    bundle = Zoo.open(path).bundles["alpha"]
    with pytest.raises(BundleError) as caught:
        bundle.recommend_one([1, 2], 3)
    assert caught.value.file == "encoder.onnx" and says in caught.value.reason
    warmed = Zoo.open(path, warm=True)
    assert list(warmed.bundles) == ["beta"] and says in warmed.refused[0].reason


def test_parts_that_do_not_add_up_explain_nothing(path: Path) -> None:
    with_parts(path / "alpha", TOY, (0.5, 0.6))
    bundle = Zoo.open(path).bundles["alpha"]
    assert len(bundle.recommend_one([1, 2], 3).items) == 3
    with pytest.raises(BundleError, match="do not add up to its query"):
        bundle.contributions([1, 2], 3)


def test_gates_are_no_wider_than_open(path: Path) -> None:
    with_gates(path / "alpha", TOY)
    assert Zoo.open(path).bundles["alpha"].gates([1, 2, 30, 4]) == pytest.approx({1: 2 / 120, 2: 0.25, 3: 4 / 120})
    with_gates(path / "alpha", TOY, bias=0.9)
    with pytest.raises(BundleError, match="between 0 and 1"):
        Zoo.open(path).bundles["alpha"].gates([1, 2, 30, 4])


def test_what_is_loaded_is_what_was_looked_into(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be an ONNX model and a file of ONNX Runtime's own format at once, which is loaded where both may be."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(ENCODER, options)
    other = (tmp_path / "model.ort").read_bytes()
    raw("encoder.onnx", other)(path / "alpha")
    monkeypatch.setattr("engine.runtime.sessions.inspect", lambda file: inspect(ENCODER if file == other else file))
    with pytest.raises(BundleError, match="cannot load the graph"):
        Zoo.open(path).bundles["alpha"].scores([1, 2])


def unknown_operator() -> onnx.ModelProto:
    model = encoder_graph(TOY)
    model.graph.node[-1].op_type = "Summon"
    return model


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (unknown_operator(), "ONNX Runtime cannot load the graph"),
        (encoder_graph(replace(TOY, items=10)), "the graph failed"),  # its table is too short for this catalogue
    ],
    ids=["an operator nobody knows", "a gather beyond its table"],
)
def test_what_fails_makes_no_noise(
    path: Path, model: onnx.ModelProto, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    graph(model)(path / "alpha")
    bundle = Zoo.open(path).bundles["alpha"]
    for _ in range(2):  # the second time from memory
        with pytest.raises(BundleError, match=says):
            bundle.recommend_one([30], 3)
    assert capfd.readouterr() == ("", "")


def test_a_model_of_the_last_item_may_fix_the_length(path: Path) -> None:
    folder = path / "alpha"
    last_item_alone(folder)
    (folder / "attention.onnx").unlink()
    edit(folder, attention=None)
    amend(folder, encoder={"max_length": 1}, capabilities={"attention": False})
    bundle = Zoo.open(path).bundles["alpha"]
    np.testing.assert_array_equal(bundle.scores([1, 2]), bundle.scores([2]))
