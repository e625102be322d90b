"""Dropout from random bits: its rate, its scale, and who decides it."""

from __future__ import annotations

import pytest
import torch

from engine.models.layers import dropout


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


def test_elements_are_independent() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(4096, 256), 0.5) != 0).float() - 0.5
    for lag in (1, 2, 4, 8):
        assert abs((kept[:, lag:] * kept[:, :-lag]).mean().item()) < 0.001


def test_nothing_happens_outside_training_or_at_rate_0() -> None:
    x = torch.randn(5)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x


def test_every_shape() -> None:
    """Bits are drawn four at a time."""
    for shape in ((0,), (3,), (2, 3, 5)):
        assert dropout(torch.ones(shape), 0.5).shape == shape
    assert dropout(torch.ones(2, 3).T, 0.5).shape == (3, 2)


def test_the_default_generator_decides() -> None:
    x = torch.ones(100)
    torch.manual_seed(7)
    one = dropout(x, 0.5)
    torch.manual_seed(7)
    assert torch.equal(dropout(x, 0.5), one)
    assert not torch.equal(dropout(x, 0.5), one)


def test_low_precision() -> None:
    out = dropout(torch.ones(64, dtype=torch.bfloat16), 0.5)
    assert out.dtype == torch.bfloat16
    assert set(out.tolist()) == {0.0, 2.0}


def test_everything_can_be_dropped() -> None:
    assert not dropout(torch.ones(50), 1.0).any()
    assert not dropout(torch.ones(50), 1 - 1e-7).any()
