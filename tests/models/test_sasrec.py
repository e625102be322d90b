"""SASRec against its re-derivation in numpy, in every ablation of the paper."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.models.base import NO_TIME
from engine.models.layers import Mask
from engine.models.sasrec import SASRec, SASRecConfig
from tests.models import numpy_sasrec
from tests.models.contract import ITEMS, USERS, batch, build, histories, move, small
from tests.models.numpy_sasrec import numbers

DAY = 86_400


def derived(model: SASRec, history: list[int], rows: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """rows: of the vectors of periods, one per item."""
    config = model.config
    positions: Any = {"learned": None, "none": None, "sinusoidal": "sinusoidal"}[config.positions]
    if model.positions is not None:
        positions = numbers(model.positions.weight)
    return numpy_sasrec.forward(
        history, items=numbers(model.items.weight), positions=positions, longest=config.max_length,
        blocks=numpy_sasrec.block_weights(model.blocks),
        last_norm=(numbers(model.norm.weight), numbers(model.norm.bias)), heads=config.heads, residual=config.residual,
        user=None if model.users is None else numbers(model.users.weight).mean(0),
        periods=None if rows is None else tuple(
            numbers(table.vectors.weight)[rows] for table in (model.item_periods, model.state_periods)
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {"heads": 4, "dim": 12, "blocks": 3},
        {"blocks": 0},
        {"positions": "none"},
        {"positions": "sinusoidal"},
        {"shared_items": False, "user_vector": True},
        {"residual": False},
        {"max_length": 1},
    ],
    ids=str,
)
def test_the_network_is_that_of_the_paper(settings: dict[str, Any]) -> None:
    model = build("sasrec", **settings)
    assert isinstance(model, SASRec) and (model.attention is None) == (settings == {"blocks": 0})
    for history in histories(model, 6):
        states, seen = derived(model, history)
        tokens = torch.tensor([history])
        np.testing.assert_allclose(numbers(model.hidden(tokens)[0]), states, atol=1e-5)
        np.testing.assert_allclose(numbers(model.query(tokens)[0]), states[-1], atol=1e-5)
        # the table of targets is the table of the history, but for the ablation
        table = model.items if model.targets is None else model.targets
        np.testing.assert_allclose(
            numbers(model.scores(tokens)[0]), numbers(table.weight)[:ITEMS] @ states[-1], atol=1e-4
        )
        if model.attention is not None:
            query, weights = model.query_with_attention(tokens)
            np.testing.assert_allclose(numbers(query[0]), states[-1], atol=1e-5)
            np.testing.assert_allclose(numbers(weights[0]), seen, atol=1e-5)


def test_a_users_vector_is_added_to_the_state_and_newcomers_get_the_mean() -> None:
    plain, model = build("sasrec"), build("sasrec", user_vector=True)
    assert isinstance(model, SASRec) and model.users is not None
    assert model.trained_users and not plain.trained_users
    plain.load_state_dict({key: value for key, value in model.state_dict().items() if key != "users.weight"})
    items, users = batch(model, histories(model)), torch.tensor([3, 0, 0, 8, 1, 2, 7])
    states = plain.query(items)
    torch.testing.assert_close(model.query(items, users), states + model.users.weight[users])
    torch.testing.assert_close(model.query(items), states + model.users.weight.mean(0))
    torch.testing.assert_close(model.query_with_attention(items)[0], model.query(items))
    other = build("sasrec", seed=9, user_vector=True)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.query(items), model.query(items))  # the mean is that of what was read


@pytest.mark.parametrize("init", ["glorot", "normal"])
def test_where_it_starts(init: str) -> None:
    config = SASRecConfig(dim=40, max_length=50, init=init)  # type: ignore[arg-type]
    model = SASRec(config, 500, USERS, torch.Generator().manual_seed(0))
    assert not model.items.weight[500].any()
    expected = 0.02 if init == "normal" else np.sqrt(2 / (501 + 40))
    assert model.items.weight[:500].std().item() == pytest.approx(expected, rel=0.05)
    block: Any = model.blocks[0]
    expected = 0.02 if init == "normal" else np.sqrt(2 / 80)
    assert block.query.weight.std().item() == pytest.approx(expected, rel=0.05)
    assert not block.query.bias.any()


def test_in_training_the_blocked_attention_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rate that drops nothing, the CPU path of training computes what the fused kernel does, in every block size."""
    model = SASRec(small("sasrec", max_length=20, dropout=1e-9), ITEMS, USERS, torch.Generator().manual_seed(0))
    move(model, 1)
    items = batch(model, histories(model, 9))
    expected = model.eval().hidden(items)
    for queries, logits in ((64, 1 << 20), (7, 200), (1, 1)):
        monkeypatch.setattr("engine.models.layers.QUERIES", queries)
        monkeypatch.setattr("engine.models.layers.LOGITS", logits)
        states = model.train().hidden(items)
        torch.testing.assert_close(states[items != model.pad], expected[items != model.pad], atol=1e-5, rtol=1e-5)


def test_periods_have_vectors_for_items_and_for_states() -> None:
    """Three weeks: rows 0 to 2, and 3 where the time is not known. The next item comes at once, or after a week and a half."""
    log, gaps = np.array([10, 10 + 15 * DAY, 10 + 20 * DAY]), np.array([0, 3 * 7 * DAY // 2])
    model = SASRec(small("sasrec", period=7), ITEMS, USERS, torch.Generator().manual_seed(0), log, gaps)
    move(model, 1)
    model.eval()
    history, times, rows = [3, 5, 2, 3, 8], [-DAY, 10 + 70 * DAY, 10 + 7 * DAY, NO_TIME, 9 + 7 * DAY], [0, 2, 1, 3, 0]
    tokens, moments = torch.tensor([history]), torch.tensor([times])
    states, _ = derived(model, history, rows)
    np.testing.assert_allclose(numbers(model.hidden(tokens, times=moments)[0]), states, atol=1e-5)
    of_periods, rows_of_items = numbers(model.state_periods.vectors.weight), numbers(model.table)[:ITEMS]

    def probabilities(state: np.ndarray) -> np.ndarray:
        raised = np.exp(rows_of_items @ state)
        return raised / raised.sum()

    expected = sum(probabilities(states[-1] - of_periods[0] + of_periods[period]) for period in (0, 2)) / 2
    np.testing.assert_allclose(np.exp(numbers(model.scores_with_times(tokens, moments)[0])), expected, atol=1e-5)
    unknown = np.exp(numbers(model.scores_with_times(tokens[:, :4], moments[:, :4])[0]))
    np.testing.assert_allclose(unknown, probabilities(derived(model, history[:4], rows[:4])[0][-1]), atol=1e-5)
    np.testing.assert_allclose(numbers(model.query(tokens)[0]), derived(model, history, [3] * 5)[0][-1], atol=1e-5)


def test_a_layer_compiles_whole() -> None:
    """Where it broke in two, `training.compile` would compile two halves, and the mask between them."""
    model = SASRec(small("sasrec", dropout=0.0), ITEMS, USERS, torch.Generator().manual_seed(0))
    items = batch(model, histories(model, 3))
    x, layer = model.items(items), model.blocks[0]
    whole = torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)
    expected = layer(x, Mask(items, model.pad, causal=True), None, None)
    torch.testing.assert_close(whole(x, Mask(items, model.pad, causal=True), None, None), expected)
