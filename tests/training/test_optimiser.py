"""Optimisers and schedules."""

import pytest
import torch
from torch import nn

from engine.training.optimiser import Average, OptimiserConfig, build, learning_rate


def test_rates() -> None:
    flat = OptimiserConfig(lr=0.1)
    assert [learning_rate(flat, step, 10) for step in (0, 5, 9)] == [0.1] * 3
    warm = OptimiserConfig(lr=0.1, warmup_steps=4)
    assert [learning_rate(warm, step, 10) for step in range(6)] == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])
    linear = OptimiserConfig(lr=0.1, decay="linear")
    assert [learning_rate(linear, step, 4) for step in range(5)] == pytest.approx([0.1, 0.075, 0.05, 0.025, 0])
    both = OptimiserConfig(lr=0.1, warmup_steps=2, decay="linear")
    assert [learning_rate(both, step, 4) for step in range(4)] == pytest.approx([0.05, 0.075, 0.05, 0.025])
    cosine = OptimiserConfig(lr=0.1, decay="cosine")
    assert [learning_rate(cosine, step, 4) for step in (0, 2, 4)] == pytest.approx([0.1, 0.05, 0])
    root = OptimiserConfig(lr=0.1, warmup_steps=4, decay="inverse-sqrt")
    assert [learning_rate(root, step, 99) for step in (0, 4, 16, 36)] == pytest.approx([0.1, 0.1, 0.05, 0.1 / 3])
    cold = OptimiserConfig(lr=0.1, decay="inverse-sqrt")
    assert [learning_rate(cold, step, 99) for step in (0, 1, 4, 25)] == pytest.approx([0.1, 0.1, 0.05, 0.02])


def test_adamw_decays_matrices_alone() -> None:
    model = nn.Sequential(nn.Embedding(3, 4), nn.LayerNorm(4), nn.Linear(4, 4))
    matrices, vectors = build(OptimiserConfig(name="adamw", weight_decay=0.01), model).param_groups
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.01, 0)
    assert {p.ndim for p in matrices["params"]} == {2}
    assert {p.ndim for p in vectors["params"]} == {1}
    assert len(matrices["params"]) + len(vectors["params"]) == len(list(model.parameters()))


def test_settings_arrive() -> None:
    config = OptimiserConfig(lr=0.5, beta1=0.8, beta2=0.7, eps=1e-3, weight_decay=0.2)
    (group,) = build(config, nn.Linear(2, 2)).param_groups
    assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (0.5, (0.8, 0.7), 1e-3, 0.2)
    optimiser = build(OptimiserConfig(name="adagrad", initial_accumulator=0.05), nn.Linear(2, 2))
    assert all((state["sum"] == 0.05).all() for state in optimiser.state.values())


def test_the_average_of_parameters() -> None:
    model = nn.Linear(2, 1, bias=False)
    average = Average(model, 0.5)
    expected = model.weight.detach().numpy().copy()
    for step in range(30):
        with torch.no_grad():
            model.weight += step
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach().numpy()
    assert average.parameters["weight"].numpy() == pytest.approx(expected)
    trained = model.weight.detach().clone()
    with pytest.raises(KeyError), average.in_the_model():
        assert model.weight.detach().numpy() == pytest.approx(expected)
        raise KeyError
    assert torch.equal(model.weight, trained)
    assert average.parameters["weight"].numpy() == pytest.approx(expected)
