"""AttRec against its re-derivation in numpy: attention, distance, fold-in."""

import numpy as np
import pytest
import torch

from engine.models.attrec import AttRec, AttRecConfig
from engine.models.layers import sinusoid
from tests.models import numpy_attrec
from tests.models.contract import ITEMS, batch, build, histories
from tests.models.numpy_sasrec import numbers


def intent(model: AttRec, history: list[int], aggregate: str = "mean") -> np.ndarray:
    """Of the latest three items."""
    projection = None if model.project is None else numbers(model.project.weight)
    return numpy_attrec.intent(
        history[-3:], size=3, table=numbers(model.intent.weight), projection=projection, diagonal="before",
        aggregate=aggregate,
    )[0]  # fmt: skip


@pytest.mark.parametrize(("diagonal", "window"), [("before", 5), ("after", 5), ("before", 1)])
def test_intent_is_that_of_the_paper(diagonal: str, window: int) -> None:
    model = build("attrec", diagonal=diagonal, window=window, fold_in=8)
    for history in histories(model, 8):
        latest = history[-window:]
        m, seen = numpy_attrec.intent(
            latest, size=window, table=numbers(model.intent.weight), projection=numbers(model.project.weight),
            diagonal=diagonal,
        )  # fmt: skip
        found, weights = model.attended(model.window(torch.tensor([history])))
        np.testing.assert_allclose(numbers(found[0]), m, atol=1e-5)
        np.testing.assert_allclose(numbers(weights[0, window - len(latest) :, window - len(latest) :]), seen, atol=1e-5)


@pytest.mark.parametrize(
    ("attention", "aggregate"), [(True, "sum"), (True, "max"), (True, "min"), (False, "mean"), (False, "max")]
)
def test_other_ways_to_one_vector(attention: bool, aggregate: str) -> None:
    model = build("attrec", attention=attention, aggregate=aggregate, window=3, fold_in=8)
    assert (model.project is None) == (not attention)
    for history in histories(model, 8):
        m = intent(model, history, aggregate)
        tokens = batch(model, [history], 8)
        np.testing.assert_allclose(numbers(model.attended(model.window(tokens))[0][0]), m, atol=1e-5)
        np.testing.assert_allclose(numbers(model.query(tokens)[0, 8:]), 2 * 0.8 * m, atol=1e-5)
    nobody = model.attended(torch.full((1, 3), ITEMS))[0]
    assert not nobody.any()
    assert (model.attention is None) == (not attention or aggregate in ("max", "min"))


def test_the_score_may_be_a_dot_product() -> None:
    model = build("attrec", score="dot", omega=0.3)
    assert model.geometry == "cosine" and build("attrec").geometry == "euclidean"
    taste, aim = numbers(model.taste.weight), numbers(model.intent.weight)
    for number, history in enumerate(histories(model)):
        m = intent(model, history)
        user = numbers(model.users.weight)[number]
        expected = [numpy_attrec.product(user, m, taste[i], aim[i], 0.3) for i in range(ITEMS)]
        scores = model.scores(torch.tensor([history]), torch.tensor([number]))[0]
        np.testing.assert_allclose(numbers(scores), expected, atol=1e-4)
        window = model.window(torch.tensor([history]))
        trained = model.window_scores(torch.tensor([number]), window, torch.arange(ITEMS)[None], 0.0)
        np.testing.assert_allclose(numbers(trained[0]), expected, atol=1e-4)
    assert model.index().bias.shape == (ITEMS,) and not model.index().bias.any()


@pytest.mark.parametrize("known", [True, False])
def test_the_score_is_the_distance(known: bool) -> None:
    """score = query · row + bias = −distance + something that is the same for every item."""
    omega = 0.3
    model = build("attrec", omega=omega)
    taste, aim = numbers(model.taste.weight), numbers(model.intent.weight)
    for number, history in enumerate(histories(model)):
        user = numbers(model.users.weight)[number] if known else np.mean([taste[item] for item in history[-6:]], axis=0)
        m = intent(model, history)
        distances = np.array([numpy_attrec.distance(user, m, taste[i], aim[i], omega) for i in range(ITEMS)])
        scores = numbers(model.scores(torch.tensor([history]), torch.tensor([number]) if known else None)[0])
        constant = scores + distances
        assert np.ptp(constant) < 1e-4
        np.testing.assert_allclose(constant, omega * user @ user + (1 - omega) * m @ m, atol=1e-4)


def test_the_time_signal_of_odd_dimensions() -> None:
    assert sinusoid(3, 7).shape == (3, 7)
    assert torch.isfinite(sinusoid(3, 1)).all()


def test_where_it_starts() -> None:
    model = AttRec(AttRecConfig(), 200, 50, torch.Generator().manual_seed(0))
    for table in (model.users.weight, model.taste.weight[:200], model.intent.weight[:200]):
        assert table.abs().max() <= 0.002
        assert table.std().item() == pytest.approx(0.001 * 0.8796, rel=0.05)
    assert not model.taste.weight[200].any()
    assert not model.intent.weight[200].any()
    assert model.project.bias is None
    assert model.max_length == 200
