"""Models that compare pairs of items against their re-derivation in numpy: scores, loss, fold-in."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.models.base import Comparing
from engine.models.factorisation import RIDGE, WithUsers
from engine.training.objectives import OBJECTIVES
from tests.models import numpy_pairs
from tests.models.contract import ITEMS, USERS, batch, build, histories, log

SETTINGS: list[tuple[str, dict[str, object]]] = [("bpr-mf", {}), ("bpr-mf", {"item_bias": True})]


def comparing(name: str, **settings: object) -> Comparing:
    model = build(name, **settings)
    assert isinstance(model, Comparing)
    return model


def tables(model: Comparing) -> numpy_pairs.Tables:
    return {name.removesuffix(".weight"): value.detach().double().numpy() for name, value in model.named_parameters()}


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_scores_are_those_of_the_paper(name: str, settings: dict[str, object]) -> None:
    """Of training users; up to what is the same for every item."""
    model = comparing(name, **settings)
    of, score = tables(model), numpy_pairs.SCORES[name]
    rows = histories(model)
    users = torch.arange(len(rows)) % USERS
    found = model.scores(batch(model, rows), users).detach().numpy()
    for row, user, history in zip(found, users.tolist(), rows, strict=True):
        expected = np.array([score(of, user, history[-1], item) for item in range(ITEMS)])
        np.testing.assert_allclose(row - row[0], expected - expected[0], atol=1e-4)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_the_loss_is_that_of_the_paper(name: str, settings: dict[str, object]) -> None:
    model = comparing(name, **settings)
    of, score, kind = tables(model), numpy_pairs.SCORES[name], OBJECTIVES[model.objective]
    assert kind.make is not None
    learnt = kind.make(kind.Config(l2=0.3, negatives=2), model, *log(), 5)
    examples = learnt.draw(torch.arange(5), torch.Generator().manual_seed(0))
    users, items, negatives, *before = (column.tolist() for column in examples)
    differences, norms = [], 0.0
    for row, (user, item, others) in enumerate(zip(users, items, negatives, strict=True)):
        last = before[0][row] if before else -1
        x = score(of, user, last, item)
        differences += [x - score(of, user, last, other) for other in others]
        norms += numpy_pairs.norms(name, of, user, last, [item, *others])
    expected = numpy_pairs.bpr(differences) + 0.3 / 2 * norms / len(users)
    assert learnt.loss(model, examples).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", [name for name, _ in SETTINGS[:1]])
def test_the_fold_in_is_a_ridge_regression(name: str) -> None:
    model = comparing(name)
    assert isinstance(model, WithUsers)
    of, (items, offsets) = tables(model), log()
    taken = [part.tolist() for part in items.tensor_split(offsets[1:-1])]
    for history in histories(model):
        expected = numpy_pairs.folded(taken, of["users"], of["taste"], history, RIDGE)
        found = model.user_vectors(torch.tensor([history]), None)[0].detach().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4)
