"""Blocked attention: its gradient is that of its value, dropout included, however it is cut into blocks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.models import layers
from engine.models.layers import visible


@pytest.mark.parametrize("causal", [True, False])
def test_gradient_is_that_of_the_value(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    monkeypatch.setattr(layers, "QUERIES", 2)
    monkeypatch.setattr(layers, "LOGITS", 1)
    items = torch.tensor([[9, 9, 1, 2, 3], [4, 5, 6, 7, 8], [9, 9, 9, 9, 9]])
    mask = visible(items, 9, causal).double()
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, 1, 5, 2, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(3))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        torch.manual_seed(7)  # the same weights are dropped every time
        return layers.attend_by_blocks(q, k, v, mask, 0.4, causal)

    assert torch.autograd.gradcheck(attend, (q, k, v))


def test_dropout_keeps_the_mean() -> None:
    items = torch.arange(12).reshape(1, 12)
    q, k = torch.zeros(1, 1, 12, 4), torch.zeros(1, 1, 12, 4)
    v = torch.ones(1, 1, 12, 4)
    torch.manual_seed(0)
    means = [layers.attend_by_blocks(q, k, v, visible(items, 99, False), 0.5, False).mean() for _ in range(200)]
    assert float(torch.stack(means).mean()) == pytest.approx(1, abs=0.05)
    assert float(torch.stack(means).std()) > 0.01  # something was dropped
