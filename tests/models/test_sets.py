"""A history is a set: neither order nor repetition changes a bit, in PyTorch or in the graph that the app runs."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from engine.export import graphs
from tests.models.contract import ITEMS, build


@pytest.mark.parametrize("name", [pytest.param("ngcf", marks=pytest.mark.long), "mult-vae"])
def test_a_history_is_a_set(tmp_path: Path, name: str) -> None:
    model = build(name, **({"hidden": 64} if name == "mult-vae" else {"dim": 16}), max_length=60)
    graphs.write_encoder(model, tmp_path / "encoder.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "encoder.onnx")

    def query(history: list[int]) -> tuple[bytes, bytes]:
        items = torch.tensor([history])
        exported = session.run(["query"], {"items": items.numpy()})[0]
        return model.query(items).detach().numpy().tobytes(), bytes(exported)

    rng = np.random.default_rng(0)
    for length in (1, 3, 20):
        history = rng.permutation(ITEMS)[:length].tolist()
        answers = {query(rng.permutation(history).tolist()) for _ in range(8)}
        assert answers == {query([*history, *history, history[0]])} == {query([history[-1], *history[::-1]])}
        assert length == 1 or query(history[1:]) not in answers
