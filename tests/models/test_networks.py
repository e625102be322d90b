"""Sequential networks against their re-derivations in numpy: queries, scores, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.errors import UsageError
from engine.models.gru4rec import GRU4Rec
from engine.training.objectives import sequences
from engine.training.objectives.sequences import NextItem, NextItemConfig
from tests.models import numpy_networks
from tests.models.contract import ITEMS, build, histories, log


def numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


# --- GRU4Rec


@pytest.mark.parametrize("settings", [{}, {"layers": 1}, {"shared_items": False}], ids=str)
def test_the_gru_is_that_of_the_paper(settings: dict[str, Any]) -> None:
    model = build("gru4rec", **settings)
    assert isinstance(model, GRU4Rec)
    layers = [
        (numbers(getattr(model.gru, f"weight_ih_l{n}")), numbers(getattr(model.gru, f"weight_hh_l{n}")))
        for n in range(model.config.layers)
    ]
    for history in histories(model, 4):
        states = numpy_networks.gru(numbers(model.items.weight)[history], layers)
        np.testing.assert_allclose(numbers(model.hidden(torch.tensor([history]))[0]), states, atol=1e-5)
        rows = numbers((model.targets or model.items).weight)[:ITEMS]
        scores = rows @ states[-1] + numbers(model.bias)
        np.testing.assert_allclose(numbers(model.scores(torch.tensor([history]))[0]), scores, atol=1e-4)


# --- negatives that a batch shares


@pytest.mark.parametrize(
    ("loss", "batch_negatives", "shared"),
    [("bpr", True, 0), ("top1", True, 0), ("bpr-max", True, 5), ("top1-max", False, 5), ("sampled-softmax", True, 5)],
)
def test_shared_negatives_give_the_losses_of_the_papers(
    loss: Any, batch_negatives: bool, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of any size; an item is no negative of its own, and a target without any has no loss."""
    model = build("gru4rec")
    config = NextItemConfig(
        loss=loss, batch_negatives=batch_negatives, shared_negatives=shared, score_penalty=0.5, activation="tanh"
    )
    what = NextItem(config, model, *log(), batch_size=9)  # type: ignore[arg-type]
    batch = what.draw(torch.arange(len(what.ends)), torch.Generator().manual_seed(1))
    inputs, targets, drawn = batch
    scores = np.tanh(numbers(model.hidden(inputs)) @ numbers(model.table)[:ITEMS].T + numbers(model.bias))
    expected = []
    for row, place in (targets != ITEMS).nonzero().tolist():
        target, others = int(targets[row, place]), targets[:, place].tolist()
        others = [item for item in others if item != ITEMS] if batch_negatives else []
        negatives = [scores[row, place, item] for item in [*others, *drawn[0].tolist()] if item != target]
        expected.append(numpy_networks.ranking_loss(loss, scores[row, place, target], negatives, 0.5))
    gradients = []
    for budget in (1, 1 << 20):
        monkeypatch.setattr(sequences, "SCORES", budget)
        model.zero_grad()
        found = what.loss(model, batch)  # type: ignore[arg-type]
        assert found.item() == pytest.approx(np.mean(expected), rel=1e-5)
        found.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)
    # the gradient is that of the loss: a small step against it lowers it by as much as it says
    with torch.no_grad():
        slope = sum(float(gradient.square().sum()) for gradient in gradients[0])
        for parameter, gradient in zip(model.parameters(), gradients[0], strict=True):
            parameter -= 1e-3 * gradient
        lower = what.loss(model, batch).item()  # type: ignore[arg-type]
    assert found.item() - lower == pytest.approx(1e-3 * slope, rel=0.05)


@pytest.mark.parametrize(("power", "share"), [(0.0, 0.1), (1.0, 0.5)])
def test_shared_negatives_follow_popularity(power: float, share: float) -> None:
    items = torch.tensor([0] * 9 + list(range(1, 10)))
    model = build("gru4rec")
    model.num_items = 10
    config = NextItemConfig(loss="bpr-max", shared_negatives=4000, popularity_power=power)
    what = NextItem(config, model, items, torch.tensor([0, 18]), batch_size=9)  # type: ignore[arg-type]
    _, _, drawn = what.draw(torch.tensor([0]), torch.Generator().manual_seed(1))
    assert abs((drawn == 0).float().mean().item() - share) < 0.03


def test_cross_entropy_takes_no_negatives() -> None:
    config = NextItemConfig(loss="cross-entropy", shared_negatives=4)
    with pytest.raises(UsageError, match="sampled-softmax"):
        NextItem(config, build("gru4rec"), *log(), batch_size=9)  # type: ignore[arg-type]
