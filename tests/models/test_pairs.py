"""Models that compare pairs of items against their re-derivation in numpy: scores, loss, fold-in."""

import numpy as np
import pytest
import torch

from engine.models.base import Comparing
from engine.models.factorisation import RIDGE, FoldIn
from engine.models.graph import Graph
from engine.models.metric import squared_distances
from engine.models.neumf import NeuMF, NeuMFConfig
from engine.training import losses
from engine.training.objectives import OBJECTIVES
from engine.training.objectives.sets import WARP, PairsConfig, Transitions, WARPConfig
from tests.models import numpy_pairs
from tests.models.contract import ITEMS, MATERIALS, USERS, batch, build, histories, log

SETTINGS: list[tuple[str, dict[str, object]]] = [
    ("bpr-mf", {}), ("bpr-mf", {"item_bias": True}), ("fmc", {}), ("fpmc", {}), ("prme", {}), ("transrec", {}), ("neumf", {}),
    ("cml", {}),
]  # fmt: skip


def tables(model: Comparing) -> numpy_pairs.Tables:
    return {name.removesuffix(".weight"): value.detach().double().numpy() for name, value in model.named_parameters()}


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_scores_are_those_of_the_paper(name: str, settings: dict[str, object]) -> None:
    """Of training users; up to what is the same for every item."""
    model = build(name, **settings)
    of, score = tables(model), numpy_pairs.SCORES[name]
    rows = histories(model)
    users = torch.arange(len(rows)) % USERS
    found = model.scores(batch(model, rows), users).detach().numpy()
    for row, user, history in zip(found, users.tolist(), rows, strict=True):
        expected = np.array([score(of, user, history[-1], item) for item in range(ITEMS)])
        np.testing.assert_allclose(row - row[0], expected - expected[0], atol=1e-4)


@pytest.mark.parametrize(("name", "settings"), SETTINGS[:-1])
def test_the_loss_is_that_of_the_paper(name: str, settings: dict[str, object]) -> None:
    model = build(name, **settings)
    of, score, kind = tables(model), numpy_pairs.SCORES[name], OBJECTIVES[model.objective]
    learnt = kind.make(kind.Config(l2=0.3, negatives=2, loss="bce" if name == "neumf" else "bpr"), model, *log(), 5)
    examples = learnt.draw(torch.arange(5), torch.Generator().manual_seed(0))
    users, items, negatives, *before = (column.tolist() for column in examples)
    positive, negative, norms = [], [], 0.0
    for row, (user, item, others) in enumerate(zip(users, items, negatives, strict=True)):
        last = before[0][row] if before else -1
        positive.append(score(of, user, last, item))
        negative.append([score(of, user, last, other) for other in others])
        norms += numpy_pairs.norms(name, of, user, last, [item, *others])
    if name == "neumf":
        expected = numpy_pairs.bce(positive, negative)
    else:
        expected = numpy_pairs.bpr([x - y for x, others_ in zip(positive, negative, strict=True) for y in others_])
    expected += 0.3 / 2 * norms / len(users)
    assert learnt.loss(model, examples).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("nearest", [False, True])
def test_the_loss_of_collaborative_metric_learning(nearest: bool) -> None:
    model = build("cml")
    of = tables(model)
    config = WARPConfig(negatives=7, margin=0.4, nearest=nearest, covariance=2.0)
    learnt = WARP(config, model, *log(), 5)
    batch = learnt.draw(torch.arange(5), torch.Generator().manual_seed(0))
    users, items, negatives = (column.tolist() for column in batch)
    each = []
    for user, item, others in zip(users, items, negatives, strict=True):
        near, *far = (-numpy_pairs.cml(of, user, -1, other) for other in (item, *others))
        each.append(numpy_pairs.warp(near, far, 0.4, ITEMS, nearest))
    together = numpy_pairs.decorrelation(np.concatenate([of["users"][users], of["items"][items]]))
    assert learnt.loss(model, batch).item() == pytest.approx(np.mean(each) + 2 * together, rel=1e-5)


def test_a_guessed_rank_is_counted_in_whole_numbers() -> None:
    """13 of 20 among 180 items are 117 of them, of which floating-point numbers had made 116."""
    far = torch.tensor([[0.1] * 13 + [9.0] * 7])
    loss = losses.warp(torch.tensor([-0.2]), -far, 180, 0.5, ranked=True, nearest=False)
    assert loss.item() == pytest.approx(numpy_pairs.warp(0.2, far[0].tolist(), 0.5, 180, nearest=False), rel=1e-6)


def test_a_transition_is_an_event_with_one_before_it() -> None:
    items, offsets = torch.tensor([4, 4, 7, 9, 1, 2]), torch.tensor([0, 3, 3, 4, 6])
    learnt = Transitions(PairsConfig(), build("fmc"), items, offsets, 4)
    users, targets, negatives, last = learnt.draw(torch.arange(3), torch.Generator())
    assert (users.tolist(), last.tolist(), targets.tolist()) == ([0, 0, 3], [4, 4, 1], [4, 7, 2])
    assert negatives.shape == (3, 1) and learnt.typical_targets == 3


BALLS: list[tuple[str, list[str]]] = [
    ("transrec", ["items"]), ("cml", ["items", "users"]), ("attrec", ["users", "taste", "intent"]), ("prme", []),
]  # fmt: skip
"""Tables whose rows have a length of 1 at most."""


@pytest.mark.parametrize(("name", "balls"), BALLS)
def test_points_that_stay_in_the_ball(name: str, balls: list[str]) -> None:
    model = build(name)
    with torch.no_grad():
        for parameter in model.parameters():  # short rows and long ones
            parameter.mul_(torch.linspace(0, 50, len(parameter)).reshape(-1, *[1] * (parameter.ndim - 1)))
    before = {key: value.copy() for key, value in tables(model).items()}
    model.constrain()
    for key, value in tables(model).items():
        wanted = before[key] / np.maximum(1, np.linalg.norm(before[key], axis=-1, keepdims=True))
        np.testing.assert_allclose(value, wanted if key in balls else before[key], atol=1e-5)


@pytest.mark.parametrize("name", ["prme", "cml"])
def test_a_new_user_stands_nearest_to_the_items(name: str) -> None:
    """Σ of squared distances to the different items of the history grows whichever way one goes from there."""
    model = build(name)
    of = tables(model)["taste" if name == "prme" else "items"]
    for history in histories(model):
        found = model.folded(torch.tensor([history]))
        np.testing.assert_allclose(found[0].detach(), np.mean([of[item] for item in {*history}], axis=0), atol=1e-5)


def test_a_new_user_of_transrec_moves_as_everybody() -> None:
    model = build("transrec")
    for users, step in ((None, model.everybody), (torch.tensor([1, 2]), model.everybody + model.users.weight[1:3])):
        parts = model.query_parts(torch.tensor([[3], [5]]), users)
        torch.testing.assert_close(parts[:, 0], 2 * model.items.weight[[3, 5]])
        torch.testing.assert_close(parts[:, 1], 2 * step.expand(2, -1))


def test_a_catalogue_that_is_too_large_for_a_network_over_pairs() -> None:
    with pytest.raises(ValueError, match="train bpr-mf"):
        NeuMF(NeuMFConfig(dim=64, layers=4), 200_000, USERS, torch.Generator(), MATERIALS["graph"])


@pytest.mark.parametrize("name", ["bpr-mf", "fpmc", "neumf"])
def test_the_fold_in_is_a_ridge_regression(name: str) -> None:
    model = build(name)
    of, (items, offsets) = tables(model), log()
    taken = [part.tolist() for part in items.tensor_split(offsets[1:-1])]
    # of a single item nothing follows: such a vector is as it was drawn
    least = 2 if model.objective == "transitions" else 1
    learnt = [user for user, part in enumerate(taken) if len({*part}) >= least]
    assert (len(learnt) == len(taken)) == (least == 1)
    for history in histories(model):
        expected = numpy_pairs.folded(
            [taken[user] for user in learnt], of["users"][learnt], of["taste"], history, RIDGE
        )
        found = model.user_vectors(torch.tensor([history]), None)[0].detach().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", ["fpmc", "caser", "hgn"])
def test_vectors_that_were_not_learnt_have_no_say_in_the_fold_in(name: str) -> None:
    model, (items, offsets) = build(name), log()
    alone = [user for user, part in enumerate(items.tensor_split(offsets[1:-1])) if len({*part.tolist()}) == 1]
    assert alone
    before = model.eval().query(torch.tensor([[1, 2, 3]]))
    with torch.no_grad():
        model.users.weight[alone] = 100.0
    assert torch.equal(model.eval().query(torch.tensor([[1, 2, 3]])), before)


def test_where_everybody_has_one_item_their_vectors_are_all_there_is() -> None:
    users, items = (torch.randn(3, 2, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    graph = Graph.of(np.arange(3), np.arange(4), 3)
    folds = [FoldIn(graph, 2, 2, least=least) for least in (1, 2)]
    for fold in folds:
        fold.fit(users, items)
    assert torch.equal(folds[0].slope, folds[1].slope) and folds[0].slope.isfinite().all()


def test_squared_distances_have_their_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    points, rows = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True, generator=generator)
        for shape in ((3, 5), (3, 4, 5))
    )
    assert torch.autograd.gradcheck(squared_distances, (points, rows))
