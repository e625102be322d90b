"""Losses against the papers' formulas, written out in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.training import losses
from tests.models.numpy_networks import sigma


def scores(seed: int = 0, targets: int = 40, k: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(targets, generator=generator), 3 * torch.randn(targets, k, generator=generator)


@pytest.mark.parametrize("t", [0.0, 0.5, 0.75, 1.0])
def test_gbce_of_the_paper(t: float) -> None:
    """L = −1/(k+1) [log σ(s⁺)^β + Σ log(1 − σ(s⁻))], β = α(t(1 − 1/α) + 1/α), α = k/(|I| − 1)"""
    positive, negative = scores()
    s, n = positive.double().numpy(), negative.double().numpy()
    k, items = 6, 500
    alpha = k / (items - 1)
    beta = alpha * (t * (1 - 1 / alpha) + 1 / alpha)
    per_target = -(np.log(sigma(s) ** beta) + np.log(1 - sigma(n)).sum(1)) / (k + 1)
    found = losses.generalised_binary_cross_entropy(positive.double(), negative.double(), items, t)
    assert found.item() == pytest.approx(per_target.mean(), rel=1e-12)
    # the authors compute it as BCE of a transformed positive logit, log(1 / (σ(s)^{−β} − 1)): the same thing
    transformed = torch.from_numpy(np.log(1 / (sigma(s) ** -beta - 1)))
    assert losses.binary_cross_entropy(transformed, negative.double()).item() / (k + 1) == pytest.approx(
        found.item(), rel=1e-9
    )


@pytest.mark.parametrize("loss", [losses.binary_cross_entropy, losses.sampled_softmax])
def test_large_scores_stay_finite(loss: Any) -> None:
    positive, negative = torch.tensor([500.0, -500.0], requires_grad=True), torch.tensor([[500.0], [-500.0]])
    value = loss(positive, negative)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(positive.grad).all()


# --- cross-entropy over the catalogue, a block at a time


def problem(bias: bool, targets: int = 97, items: int = 53, dim: int = 12) -> list[Tensor | None]:
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(targets, dim, generator=generator), torch.randn(items, dim, generator=generator)]
    tensors.append(torch.randn(items, generator=generator))
    for tensor in tensors:
        tensor.requires_grad_()
    wanted = torch.randint(items, (targets,), generator=generator)
    return [tensors[0], tensors[1], tensors[2] if bias else None, wanted]


def compare(bias: bool, dtype: torch.dtype, **sizes: int) -> tuple[list[Tensor], list[Tensor]]:
    """Value and gradients of ours, and of torch.nn.functional.cross_entropy."""
    found: list[list[Tensor]] = []
    for ours in (True, False):
        hidden, table, offset, wanted = problem(bias, **sizes)
        if ours:
            value = losses.cross_entropy(hidden, table, offset, wanted, dtype=dtype)
        else:
            value = F.cross_entropy(hidden @ table.T + (0 if offset is None else offset), wanted)
        (3 * value).backward()  # a gradient of its own, not 1
        grads = [t.grad for t in (hidden, table, offset) if t is not None]
        found.append([value.detach(), *(g for g in grads if g is not None)])
    return found[0], found[1]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_cross_entropy_is_that_of_torch(monkeypatch: pytest.MonkeyPatch, bias: bool, block: int) -> None:
    monkeypatch.setattr(losses, "_block", lambda items, device: block)
    ours, theirs = compare(bias, torch.float32)
    assert len(ours) == len(theirs) == 3 + bias
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_cross_entropy_in_low_precision_is_near(bias: bool) -> None:
    ours, theirs = compare(bias, torch.bfloat16)
    assert ours[0].dtype == torch.float32
    assert abs(ours[0] - theirs[0]) < 0.01 * theirs[0]
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.01 * other.norm()


def test_cross_entropy_keeps_memory_bounded() -> None:
    for items in (10, 3_000, 100_000, 10_000_000):
        size = losses._block(items, torch.device("cpu"))
        assert size >= 32
        assert size * items <= max(1 << 20, 32 * items)


def test_a_hopeless_target_has_a_finite_loss_and_the_full_gradient() -> None:
    hidden = torch.tensor([[200.0]], requires_grad=True)
    table = torch.tensor([[1.0], [-1.0]])
    value = losses.cross_entropy(hidden, table, None, torch.tensor([1]))
    value.backward()
    assert value.item() == pytest.approx(-math.log(torch.finfo(torch.float32).tiny), rel=1e-5)
    assert hidden.grad.item() == pytest.approx(2.0)


def test_a_single_item_is_certain() -> None:
    value = losses.cross_entropy(torch.ones(3, 2), torch.ones(1, 2), None, torch.zeros(3, dtype=torch.int64))
    assert value.item() == 0
