"""The reader of ONNX files agrees with the onnx package, and never fails otherwise than by saying what is wrong."""

import numpy as np
import onnx
import pytest

from engine.bundle.onnx_graph import FLOAT, GraphFault, Value, inspect
from tests.runtime.bundles import TOYS, attention_graph, encoder_graph


def test_weights_listed_as_inputs_are_none() -> None:
    model = encoder_graph(TOYS[0])
    model.ir_version = 3
    weight = model.graph.initializer[0]
    model.graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
    assert set(inspect(model.SerializeToString()).inputs) == {"items"}


def test_an_open_shape_is_known_to_be_open() -> None:
    model = encoder_graph(TOYS[0])
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert inspect(model.SerializeToString()).outputs["query"] == Value(FLOAT, None)


def test_damage_is_a_fault_or_nothing() -> None:
    content = attention_graph(TOYS[0]).SerializeToString()
    rng = np.random.default_rng(9)
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 5):
            damaged[place] = rng.integers(0, 256)
        for candidate in (bytes(damaged), content[: rng.integers(0, len(content))]):
            try:
                inspect(candidate)
            except GraphFault as fault:
                assert str(fault)


def test_a_file_of_endless_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.bundle.onnx_graph._FIELDS", 1000)
    with pytest.raises(GraphFault, match="more than 1,000 fields"):
        inspect(b"\x08\x01" * 2000)


def test_training_steps_are_refused() -> None:
    model = encoder_graph(TOYS[0])
    model.training_info.add()
    with pytest.raises(GraphFault, match="training steps"):
        inspect(model.SerializeToString())
