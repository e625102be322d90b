"""Dropout from random bits: its rate, its scale, and who decides it; and the gradient of blocked attention with it."""

import dataclasses

import pytest
import torch
from torch import Tensor

from engine.models import layers
from engine.models.layers import dropout, dropout_from
from tests.models.contract import MATCHING, build


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_rate_and_scale(rate: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(401, 503)
    out = dropout(x, rate)
    kept = out != 0
    n = x.numel()
    assert abs(kept.float().mean().item() - (1 - rate)) < 4 * (rate * (1 - rate) / n) ** 0.5
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 1 / (1 - rate)), rtol=1e-3, atol=0)
    # rows and columns are hit alike
    assert abs(kept.float().mean(0) - (1 - rate)).max() < 6 * (rate * (1 - rate) / 401) ** 0.5
    assert not dropout(x, 1 - 1e-7).any()


def test_elements_are_independent() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(4096, 256), 0.5) != 0).float() - 0.5
    for lag in (1, 2, 4, 8):
        assert abs((kept[:, lag:] * kept[:, :-lag]).mean().item()) < 0.001


def test_the_default_generator_decides() -> None:
    x = torch.ones(100)
    torch.manual_seed(7)
    one = dropout(x, 0.5)
    torch.manual_seed(7)
    assert torch.equal(dropout(x, 0.5), one)
    assert not torch.equal(dropout(x, 0.5), one)


@pytest.mark.parametrize("causal", [True, False])
def test_gradient_is_that_of_the_value(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    monkeypatch.setattr(layers, "QUERIES", 2)
    monkeypatch.setattr(layers, "LOGITS", 1)
    items = torch.tensor([[9, 9, 1, 2, 3], [4, 5, 6, 7, 8], [9, 9, 9, 9, 9]])
    mask = layers.Mask(items, 9, causal)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, 1, 5, 2, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(3))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        torch.manual_seed(7)  # the same weights are dropped every time
        return layers.attend_by_blocks(q, k, v, mask, 0.4)

    assert torch.autograd.gradcheck(attend, (q, k, v))


RATES = [
    (name, field.name)
    for name, model in MATCHING.items()
    for field in dataclasses.fields(model.Config)
    if field.name.endswith("dropout")
]


@pytest.mark.parametrize(("name", "rate"), RATES)
def test_each_rate_of_a_model_counts_where_it_learns(name: str, rate: str) -> None:
    """Of one layer, since between layers of a GRU PyTorch has dropout of its own."""
    settings = {other: 0.0 for of, other in RATES if of == name} | (
        {"layers": 1} if name in ("gru4rec", "zesrec") else {}
    )
    answers = []
    for changed in ({}, {}, {rate: 0.5}):
        model = build(name, **settings | changed).train()
        torch.manual_seed(1)
        answers.append(model.query(torch.tensor([[1, 2, 3, 4, 5]])))
    assert torch.equal(*answers[:2]) and (answers[2] - answers[0]).abs().max() > 1e-3


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.999])
def test_a_generator_of_the_threads_own_meets_the_rate_on_average(rate: float) -> None:
    x = torch.ones(256)
    with dropout_from(torch.Generator().manual_seed(0)):
        dropped = torch.stack([(dropout(x, rate) == 0).float().mean() for _ in range(4000)])
    deviation = dropped.std() / 4000**0.5
    assert abs(dropped.mean() - rate) < 4 * deviation
