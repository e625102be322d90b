"""Losses of large scores, and cross-entropy a block at a time. The formulas of papers: test_objectives.py, tests/models."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.training import losses


@pytest.mark.parametrize("loss", [losses.binary_cross_entropy, losses.sampled_softmax])
def test_large_scores_stay_finite(loss: Any) -> None:
    positive, negative = torch.tensor([500.0, -500.0], requires_grad=True), torch.tensor([[500.0], [-500.0]])
    value = loss(positive, negative)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(positive.grad).all()


def test_a_catalogue_of_one_item_has_a_finite_gbce() -> None:
    loss = losses.generalised_binary_cross_entropy(torch.zeros(1), torch.zeros(1, 1), items=1, t=0.75)
    torch.testing.assert_close(loss, torch.tensor(math.log(2)))


# --- cross-entropy over the catalogue, a block at a time


def problem(bias: bool) -> list[Tensor | None]:
    targets, items, dim = 97, 53, 12
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(targets, dim, generator=generator), torch.randn(items, dim, generator=generator)]
    tensors.append(torch.randn(items, generator=generator))
    for tensor in tensors:
        tensor.requires_grad_()
    wanted = torch.randint(items, (targets,), generator=generator)
    return [tensors[0], tensors[1], tensors[2] if bias else None, wanted]


def compare(bias: bool, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """Value and gradients of ours, and of torch.nn.functional.cross_entropy."""
    found: list[list[Tensor]] = []
    for ours in (True, False):
        hidden, table, offset, wanted = problem(bias)
        if ours:
            value = losses.cross_entropy(hidden, table, offset, wanted, dtype=dtype)
        else:
            value = F.cross_entropy(hidden @ table.T + (0 if offset is None else offset), wanted)
        (3 * value).backward()  # a gradient of its own, not 1
        grads = [t.grad for t in (hidden, table, offset) if t is not None]
        found.append([value.detach(), *(g for g in grads if g is not None)])
    return found[0], found[1]


@pytest.mark.parametrize(("bias", "block"), [(True, 7), (False, 1), (True, 1000)])
def test_cross_entropy_is_that_of_torch(monkeypatch: pytest.MonkeyPatch, bias: bool, block: int) -> None:
    monkeypatch.setattr(losses, "_block", lambda items, device: block)
    ours, theirs = compare(bias, torch.float32)
    assert len(ours) == len(theirs) == 3 + bias
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_cross_entropy_in_low_precision_is_near() -> None:
    ours, theirs = compare(True, torch.bfloat16)
    assert ours[0].dtype == torch.float32
    assert abs(ours[0] - theirs[0]) < 0.01 * theirs[0]
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.01 * other.norm()
    hidden, table, offset, targets = problem(True)
    loss = losses.cross_entropy(
        hidden.bfloat16(), table, offset, targets, dtype=torch.bfloat16
    )  # as of a layer's output
    assert loss.dtype == torch.float32 and loss != loss.bfloat16()


@pytest.mark.parametrize(("bias", "block"), [(True, 70), (False, 1000)])
def test_two_readings_have_the_loss_and_the_gradients_of_r_drop(
    monkeypatch: pytest.MonkeyPatch, bias: bool, block: int
) -> None:
    monkeypatch.setattr(losses, "_block", lambda items, device: block)
    first, table, offset, targets = problem(bias)
    second = torch.randn(first.shape, generator=torch.Generator().manual_seed(2)).requires_grad_()
    tensors = [tensor for tensor in (first, second, table, offset) if tensor is not None]
    ours = losses.consistent_cross_entropy(first, second, table, offset, targets, 1.7)
    scores = [state @ table.T + (0 if offset is None else offset) for state in (first, second)]
    p, q = (each.log_softmax(1) for each in scores)
    apart = [F.kl_div(a, b, log_target=True, reduction="batchmean") for a, b in ((p, q), (q, p))]
    theirs = sum(F.cross_entropy(each, targets) for each in scores) / 2 + 1.7 / 4 * sum(apart)
    torch.testing.assert_close(ours, theirs)
    for one, other in zip(*(torch.autograd.grad(3 * loss, tensors) for loss in (ours, theirs)), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_a_hopeless_target_has_a_finite_loss_and_the_full_gradient() -> None:
    hidden = torch.tensor([[200.0]], requires_grad=True)
    table = torch.tensor([[1.0], [-1.0]])
    value = losses.cross_entropy(hidden, table, None, torch.tensor([1]))
    value.backward()
    assert value.item() == pytest.approx(-math.log(torch.finfo(torch.float32).tiny), rel=1e-5)
    assert hidden.grad.item() == pytest.approx(2.0)
