"""Sequential networks against their re-derivations in numpy: queries, scores, losses."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.models.caser import Caser
from engine.models.hgn import HGN
from engine.models.hstu import HSTU
from engine.training.objectives import sequences
from engine.training.objectives.sequences import NextItem, NextItemConfig, WindowConfig, Windows
from tests.models import numpy_networks
from tests.models.contract import ITEMS, build, histories, log
from tests.models.numpy_sasrec import layer_norm, numbers

# --- GRU4Rec


@pytest.mark.parametrize("settings", [{"layers": 1}, {"shared_items": False}], ids=str)
def test_the_gru_is_that_of_the_paper(settings: dict[str, Any]) -> None:
    model = build("gru4rec", **settings)
    layers = numpy_networks.gru_layers(model.gru)
    for history in histories(model, 4):
        states = numpy_networks.gru(numbers(model.items.weight)[history], layers)
        np.testing.assert_allclose(numbers(model.hidden(torch.tensor([history]))[0]), states, atol=1e-5)
        rows = numbers((model.targets or model.items).weight)[:ITEMS]
        scores = rows @ states[-1] + numbers(model.bias)
        np.testing.assert_allclose(numbers(model.scores(torch.tensor([history]))[0]), scores, atol=1e-4)


# --- negatives that a batch shares


@pytest.mark.parametrize(
    ("loss", "batch_negatives", "shared"),
    [("bpr", True, 0), ("top1", True, 0), ("bpr-max", True, 5), ("top1-max", False, 5), ("sampled-softmax", True, 5)],
)
def test_shared_negatives_give_the_losses_of_the_papers(
    loss: Any, batch_negatives: bool, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of any size; an item is no negative of its own, and a target without any has no loss."""
    model = build("gru4rec")
    config = NextItemConfig(
        loss=loss, batch_negatives=batch_negatives, shared_negatives=shared, score_penalty=0.5, activation="tanh"
    )
    what = NextItem(config, model, *log(), batch_size=9)  # type: ignore[arg-type]
    batch = what.draw(torch.arange(len(what.ends)), torch.Generator().manual_seed(1))
    inputs, targets, drawn = batch
    scores = np.tanh(numbers(model.hidden(inputs)) @ numbers(model.table)[:ITEMS].T + numbers(model.bias))
    expected = []
    for row, place in (targets != ITEMS).nonzero().tolist():
        target, others = int(targets[row, place]), targets[:, place].tolist()
        others = [item for item in others if item != ITEMS] if batch_negatives else []
        negatives = [scores[row, place, item] for item in [*others, *drawn[0].tolist()] if item != target]
        expected.append(numpy_networks.ranking_loss(loss, scores[row, place, target], negatives, 0.5))
    gradients = []
    for budget in (1, 1 << 20):
        monkeypatch.setattr(sequences, "SCORES", budget)
        model.zero_grad()
        found = what.loss(model, batch)  # type: ignore[arg-type]
        assert found.item() == pytest.approx(np.mean(expected), rel=1e-5)
        found.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)
    # the gradient is that of the loss: a small step against it lowers it by as much as it says
    with torch.no_grad():
        slope = sum(float(gradient.square().sum()) for gradient in gradients[0])
        for parameter, gradient in zip(model.parameters(), gradients[0], strict=True):
            parameter -= 1e-3 * gradient
        lower = what.loss(model, batch).item()  # type: ignore[arg-type]
    assert found.item() - lower == pytest.approx(1e-3 * slope, rel=0.05)


@pytest.mark.parametrize("loss", ["bce", "gbce", "sampled-softmax", "bpr", "top1", "bpr-max", "top1-max"])
def test_a_share_of_a_batch_may_have_no_targets_at_some_places(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest history is another process's: what is left of one's own is padding."""
    monkeypatch.setattr(sequences, "SCORES", 1)
    model = build("gru4rec")
    what = NextItem(NextItemConfig(loss=loss, batch_negatives=True, shared_negatives=5), model, *log(), batch_size=9)  # type: ignore[arg-type]
    batch = what.draw(torch.arange(len(what.ends)), torch.Generator().manual_seed(1))
    shortest = what.targets(batch).argmin()
    inputs, targets, drawn = (part[shortest, None] for part in batch)
    there = targets[0] != ITEMS
    assert not there.all()
    alone = what.loss(model, (inputs[:, there], targets[:, there], drawn))  # type: ignore[arg-type]
    assert what.loss(model, (inputs, targets, drawn)).item() == pytest.approx(alone.item(), rel=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("power", "share"), [(0.0, 0.1), (1.0, 0.5)])
def test_shared_negatives_follow_popularity(power: float, share: float) -> None:
    items = torch.tensor([0] * 9 + list(range(1, 10)))
    model = build("gru4rec")
    model.num_items = 10
    config = NextItemConfig(loss="bpr-max", shared_negatives=4000, popularity_power=power)
    what = NextItem(config, model, items, torch.tensor([0, 18]), batch_size=9)  # type: ignore[arg-type]
    _, _, drawn = what.draw(torch.tensor([0]), torch.Generator().manual_seed(1))
    assert abs((drawn == 0).float().mean().item() - share) < 0.03


def test_cross_entropy_takes_no_negatives() -> None:
    config = NextItemConfig(loss="cross-entropy", shared_negatives=4)
    with pytest.raises(UsageError, match="sampled-softmax"):
        NextItem(config, build("gru4rec"), *log(), batch_size=9)  # type: ignore[arg-type]


# --- windows: Caser and HGN


def scores_of_trained_user(model: Caser | HGN, history: list[int], query: np.ndarray) -> None:
    bias = numbers(model.index().bias)
    expected = numbers(model.targets.weight)[:ITEMS] @ query + bias
    np.testing.assert_allclose(
        numbers(model.scores(torch.tensor([history]), torch.tensor([2]))[0]), expected, atol=1e-4
    )


def test_caser_is_that_of_the_paper() -> None:
    model = build("caser")
    rows: list[Any] = list(model.rows)
    for history in histories(model, 5):
        image = np.zeros((3, 8))
        latest = numbers(model.items.weight)[history[-3:]]
        image[3 - len(latest) :] = latest
        query = numpy_networks.caser(
            image, [numbers(filters) for filters in rows], numbers(model.place_weights),
            (numbers(model.joint.weight), numbers(model.joint.bias)), numbers(model.users.weight)[2],
        )  # fmt: skip
        scores_of_trained_user(model, history, query)
        for height, found in enumerate(model.query_with_matches(torch.tensor([history]))[1], 1):
            assert found.shape == (1, 3 - height + 1, 3)


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_hgn_is_that_of_the_paper(variant: str) -> None:
    model = build("hgn", variant=variant)
    user, items = torch.tensor([2]), numbers(model.items.weight)
    for history in histories(model, 5):
        latest, tokens = history[-3:], torch.tensor([history])
        gated, beside, instances = numpy_networks.hgn(
            items[latest], numbers(model.users.weight)[2], numbers(model.feature_item.weight),
            numbers(model.feature_user.weight), numbers(model.feature_item.bias), numbers(model.instance_item.weight)[0],
            numbers(model.instance_user.weight)[3 - len(latest) :], variant,
        )  # fmt: skip
        scores_of_trained_user(model, history, numbers(model.users.weight)[2] + gated + beside)
        np.testing.assert_allclose(numbers(model.gates(tokens, user)[0])[3 - len(latest) :], instances, atol=1e-5)
        parts = [numbers(model.users.weight)[2], gated, beside]
        np.testing.assert_allclose(numbers(model.query_parts(tokens, user)[0]), parts, atol=1e-5)


@pytest.mark.parametrize(("name", "loss"), [("caser", "bce"), ("hgn", "bpr"), ("attrec", "hinge")])
def test_windows_have_the_losses_of_the_papers(name: str, loss: Any) -> None:
    model: Any = build(name)
    what = Windows(WindowConfig(loss=loss, targets=2, negatives=3, l2=0.1), model, *log(), batch_size=9)
    users, window, targets, negatives = batch = what.draw(torch.arange(20), torch.Generator().manual_seed(1))
    scores = numbers(model.scores(window, users))
    expected, touched, real = 0.0, 0.0, 0
    read, sought = (["intent"], ["taste", "intent"]) if name == "attrec" else (["items"], ["targets"])
    tables = {name: numbers(getattr(model, name).weight) for name in ("users", *read, *sought)}
    for row, place in (targets != ITEMS).nonzero().tolist():
        among = [int(targets[row, place]), *negatives[row, place].tolist()]
        positive, *others = scores[row, among]
        if loss == "bpr":
            expected += numpy_networks.ranking_loss("bpr", positive, others)
        elif loss == "hinge":
            expected += np.maximum(0.5 + np.array(others) - positive, 0).sum()
        else:
            expected -= (
                np.log(numpy_networks.sigma(positive)) + np.log(1 - numpy_networks.sigma(np.array(others))).sum()
            )
        touched += sum((tables[table][among] ** 2).sum() for table in sought)
        real += 1
    touched += (tables["users"][users] ** 2).sum() + sum((tables[table][window] ** 2).sum() for table in read)
    matrices = [
        weight for key, weight in model.named_parameters() if weight.ndim > 1 and key.split(".")[0] not in tables
    ]
    touched += sum((numbers(matrix) ** 2).sum() for matrix in matrices)
    assert what.loss(model, batch).item() == pytest.approx((expected + 0.05 * touched) / real, rel=1e-5)


@pytest.mark.parametrize("name", ["caser", "hgn", "attrec"])
def test_processes_together_hold_matrices_as_one_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = build(name).eval()
    what = Windows(WindowConfig(loss="bpr", l2=0.1), model, *log(), batch_size=9)
    batch = what.draw(torch.arange(9), torch.Generator().manual_seed(1))

    def summed(share: tuple[torch.Tensor, ...]) -> float:
        return what.loss(model, share).item() * int(what.targets(share).sum())

    whole = summed(batch)
    monkeypatch.setattr(sequences, "processes", lambda: 2)
    assert sum(summed(tuple(part[rank::2] for part in batch)) for rank in range(2)) == pytest.approx(whole, rel=1e-5)


# --- NARM, eSASRec, HSTU


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_narm_is_that_of_the_paper(variant: str) -> None:
    model = build("narm", variant=variant)
    layers = numpy_networks.gru_layers(model.gru)
    matrices = [numbers(part.weight) for part in (model.from_last, model.from_each, model.weigh, model.bilinear)]
    for history in histories(model, 4):
        states = numpy_networks.gru(numbers(model.items.weight)[history], layers)
        a1, a2, v, b = matrices
        query, alpha = numpy_networks.narm(states, a1, a2, v[0], b, variant)
        tokens = torch.tensor([history])
        np.testing.assert_allclose(numbers(model.query(tokens)[0]), query, atol=1e-5)
        np.testing.assert_allclose(numbers(model.alpha(tokens)[0]), alpha, atol=1e-5)
        parts = [b[:, : len(states[0])] @ states[-1], b[:, len(states[0]) :] @ (alpha @ states)]
        np.testing.assert_allclose(numbers(model.query_parts(tokens)[0]), parts, atol=1e-5)
        # what training reads: every position as though nothing came after it, and padding before it
        every = [numpy_networks.narm(states[:end], a1, a2, v[0], b, variant)[0] for end in range(1, len(states) + 1)]
        padded = torch.tensor([[ITEMS] * (8 - len(history)) + history])
        np.testing.assert_allclose(numbers(model.hidden(padded)[0, -len(history) :]), every, atol=1e-5)
        if variant == "code":
            query_again, weights = model.query_with_attention(tokens)
            assert torch.allclose(query_again, model.query(tokens), atol=1e-6)
            np.testing.assert_allclose(numbers(weights[0, 0, 0, -1]), alpha, atol=1e-5)
    assert (model.attention is None) == (variant == "paper")


@pytest.mark.parametrize(
    ("name", "settings", "timed"),
    [
        ("esasrec", {}, False),
        ("hstu", {}, False),
        ("hstu", {"time_bias": False}, False),
        ("hstu", {}, True),
        ("hstu", {"scaled": True}, False),
    ],
)
def test_layers_are_those_of_the_paper(name: str, settings: dict[str, Any], timed: bool) -> None:
    model: Any = build(name, **settings)
    rng = np.random.default_rng(3)
    for history in histories(model, 4):
        # seconds to decades apart, some at the same time
        times = np.cumsum(10 ** rng.uniform(-1, 9, len(history))).astype(int).tolist() if timed else None
        beside = {"times": torch.tensor([times])} if timed else {}
        tokens, length = torch.tensor([history]), len(history)
        scaled = settings.get("scaled", False)
        x = (
            numbers(model.items.weight)[history] * (np.sqrt(model.config.dim) if scaled else 1)
            + numbers(model.positions.weight)[8 - length :]
        )
        seen = []
        for block in model.blocks:
            parameters = {key: numbers(value) for key, value in block.named_parameters()}
            if name == "esasrec":
                x, weights = numpy_networks.ligr(x, parameters, 2)
            else:
                x, weights = numpy_networks.hstu(x, parameters, 2, 8, times, eps=1e-6 if scaled else 1e-5)
            seen.append(weights)
        if isinstance(model, HSTU):
            x = np.array([layer_norm(row, numbers(model.norm.weight), numbers(model.norm.bias), 1e-5) for row in x])
            found = model.weights(tokens, **beside)
        else:
            found = model.query_with_attention(tokens)[1]
        np.testing.assert_allclose(numbers(model.hidden(tokens, **beside)[0]), x, atol=1e-4)
        np.testing.assert_allclose(numbers(found[0]), np.stack(seen), atol=1e-5)


# --- rollout takes layers for a stack, each half of it a residual connection


@pytest.mark.parametrize(
    ("name", "settings", "word"),
    [
        ("narm", {"variant": "code"}, "recurrent"),
        ("fdsa", {}, "side by side"),
        ("sasrec", {"residual": False}, "residual"),
        ("bert4rec", {"residual": False}, "residual"),
    ],
)
def test_what_is_no_stack_of_residual_layers_declares_it(name: str, settings: dict[str, Any], word: str) -> None:
    shape, stack = build(name, **settings).attention, build("bert4rec").attention
    assert shape is not None and word in (shape.no_rollout or "")
    assert stack is not None and stack.no_rollout is None
