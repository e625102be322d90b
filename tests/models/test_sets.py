"""A history is a set: neither order nor repetition changes a bit, in PyTorch or in the graph that the app runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from engine.export import graphs
from tests.models.contract import ITEMS, build


@pytest.mark.parametrize(
    ("name", "exported"),
    [("lightgcn", False), ("ngcf", False), ("ngcf", True), ("mult-vae", False), ("mult-vae", True)],
)
def test_a_history_is_a_set(tmp_path: Path, name: str, exported: bool) -> None:
    model, session = build(name, **({"hidden": 64} if name == "mult-vae" else {"dim": 16}), max_length=60), None
    if exported:
        graphs.write_encoder(model, tmp_path / "encoder.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "encoder.onnx")

    def query(history: list[int]) -> bytes:
        items = torch.tensor([history])
        if session is not None:
            return bytes(session.run(["query"], {"items": items.numpy()})[0])
        return model.query(items).detach().numpy().tobytes()

    rng = np.random.default_rng(0)
    for length in (1, 2, 3, 10, 20):
        history = rng.permutation(ITEMS)[:length].tolist()
        answers = {query(rng.permutation(history).tolist()) for _ in range(8)}
        assert answers == {query([*history, *history, history[0]])} == {query([history[-1], *history[::-1]])}
        assert length == 1 or query(history[1:]) not in answers
