"""BERT4Rec against its re-derivation in numpy."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.models.bert4rec import BERT4Rec, BERT4RecConfig
from tests.models import numpy_bert4rec, numpy_sasrec
from tests.models.contract import ITEMS, batch, build, histories
from tests.models.numpy_sasrec import numbers


def derived(model: BERT4Rec, tokens: list[int]) -> tuple[np.ndarray, np.ndarray]:
    head = {"W": model.head.weight, "b": model.head.bias, "alpha": model.head_norm.weight, "beta": model.head_norm.bias}
    return numpy_bert4rec.forward(
        tokens, items=numbers(model.items.weight),
        positions=None if model.positions is None else numbers(model.positions.weight),
        norm=(numbers(model.norm.weight), numbers(model.norm.bias)), layers=numpy_sasrec.block_weights(model.layers),
        heads=model.config.heads, residual=model.config.residual,
        head={key: numbers(value) for key, value in head.items()},
    )  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layers": 1, "heads": 4, "inner": 2, "positions": "none"},
        {"feed_forward": False},
        {"norm": False},
        {"residual": False},
    ],
    ids=str,
)
def test_the_network_is_that_of_the_paper(settings: dict[str, Any]) -> None:
    model = build("bert4rec", **settings)
    for history in histories(model, 5):
        found, seen = derived(model, [*history, ITEMS + 1])  # [MASK] stands where the next item will
        query, weights = model.query_with_attention(torch.tensor([history]))
        np.testing.assert_allclose(numbers(query[0]), found[-1], atol=1e-5)
        np.testing.assert_allclose(numbers(weights[0]), seen, atol=1e-5)
        logits = numbers(model.items.weight)[:ITEMS] @ found[-1] + numbers(model.bias)
        np.testing.assert_allclose(numbers(model.scores(torch.tensor([history]))[0]), logits, atol=1e-4)


def test_hidden_items_anywhere_are_filled_in_from_both_sides() -> None:
    model = build("bert4rec")
    tokens = [3, model.mask_token, 7, model.mask_token, 1]
    found, _ = derived(model, tokens)
    states = model.transform(model.hidden(torch.tensor([[model.pad, model.pad, *tokens]])))
    np.testing.assert_allclose(numbers(states[0, 2:]), found, atol=1e-5)
    changed = model.transform(model.hidden(torch.tensor([[3, model.mask_token, 7, model.mask_token, 2]])))
    assert not torch.allclose(changed[0, 1], states[0, 3])


def test_nobodys_history_is_mask_alone() -> None:
    model = build("bert4rec")
    found, _ = derived(model, [ITEMS + 1])
    np.testing.assert_allclose(numbers(model.query(batch(model, [[]], 3))[0]), found[-1], atol=1e-5)


def test_where_it_starts() -> None:
    model = BERT4Rec(BERT4RecConfig(dim=64), 300, 0, torch.Generator().manual_seed(0))
    weight = model.items.weight[:300]
    assert weight.abs().max() <= 0.04
    assert weight.std().item() == pytest.approx(0.02 * 0.8796, rel=0.05)  # a normal cut at two deviations
    assert not model.items.weight[model.pad].any()
    assert model.items.weight[model.mask_token].any()
    assert not model.bias.any()
