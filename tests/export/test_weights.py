"""Graphs of one folder that hold the same tensors: stored once, and their answers do not change by a bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.export.weights import share

ITEMS, WIDTH = 40, 8
RNG = np.random.default_rng(0)
ROWS, TURN, BIAS = (RNG.normal(size=shape).astype(np.float32) for shape in ((ITEMS, WIDTH), (WIDTH, 64), (64,)))


def graph(path: Path, table: np.ndarray) -> None:
    """items int64 [n] → their rows of `table`, turned: float32 [n, 64]"""
    nodes = [
        helper.make_node("Gather", ["table", "items"], ["rows"]),
        helper.make_node("MatMul", ["rows", "turn"], ["turned"]),
        helper.make_node("Add", ["turned", "bias"], ["out"]),
    ]
    tensors = [
        numpy_helper.from_array(array, name) for name, array in (("table", table), ("turn", TURN), ("bias", BIAS))
    ]
    items = helper.make_tensor_value_info("items", TensorProto.INT64, ["n"])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 64])
    model = helper.make_model(
        helper.make_graph(nodes, "g", [items], [out], tensors),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
    )
    path.write_bytes(model.SerializeToString())


def answers(folder: Path, size: int) -> list[np.ndarray]:
    sessions = [onnxruntime.InferenceSession(str(path)) for path in sorted(folder.glob("*.onnx"))]
    return [session.run(["out"], {"items": np.arange(size)})[0] for session in sessions]


def index(folder: Path) -> None:
    np.save(folder / "index.npy", np.concatenate([ROWS, np.ones((ITEMS, 1), np.float32)], axis=1))


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 2), (1, 0), (1, 1)])
def test_a_table_of_the_indexs_rows_is_read_from_the_index(tmp_path: Path, before: int, after: int) -> None:
    table = np.concatenate([np.full((before, WIDTH), 7, np.float32), ROWS, np.full((after, WIDTH), 9, np.float32)])
    index(tmp_path)
    for name in ("a.onnx", "b.onnx"):
        graph(tmp_path / name, table)
    expected = answers(tmp_path, len(table))
    assert share(tmp_path)
    for path in tmp_path.glob("*.onnx"):
        assert ROWS.tobytes() not in path.read_bytes()
    assert TURN.tobytes() in (tmp_path / "weights.npy").read_bytes()
    assert ROWS.tobytes() not in (tmp_path / "weights.npy").read_bytes()
    for got, wanted in zip(answers(tmp_path, len(table)), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for path in tmp_path.glob("*.onnx"):
        onnx.checker.check_model(str(path))


def test_what_only_one_graph_holds_stays_there(tmp_path: Path) -> None:
    index(tmp_path)
    graph(tmp_path / "a.onnx", ROWS + 1)
    before = (tmp_path / "a.onnx").read_bytes()
    assert not share(tmp_path)
    assert (tmp_path / "a.onnx").read_bytes() == before and not (tmp_path / "weights.npy").exists()
