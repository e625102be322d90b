"""Models over a graph against their re-derivation in numpy, on the ten nodes that docs/models.md draws."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.models.graph import Graph, GraphRecommender, Propagation
from engine.models.ngcf import NGCF
from engine.registry import MODELS
from engine.training.objectives.sets import Pairs, PairsConfig
from tests.models import numpy_graph
from tests.models.contract import move, small
from tests.models.numpy_graph import HISTORIES
from tests.training.tiny import flat

BATCH = [(0, 0, 2), (1, 3, 5), (2, 3, 0), (3, 4, 1), (3, 0, 2)]


def ten_nodes() -> Graph:
    items, offsets = flat(HISTORIES)
    return Graph.of(items.numpy(), offsets.numpy(), numpy_graph.ITEMS)


def model(name: str = "lightgcn", **settings: object) -> Any:
    """Over the ten nodes."""
    recommender = MODELS[name](
        small(name, **settings), numpy_graph.ITEMS, numpy_graph.USERS, torch.Generator().manual_seed(0),
        graph=ten_nodes(),
    )  # fmt: skip
    move(recommender, 1)
    return recommender.eval()


def start(of: GraphRecommender) -> np.ndarray:
    """E⁰, float64 [10, dim]."""
    return torch.cat([of.users.weight, of.items.weight]).detach().double().numpy()


def vectors(of: GraphRecommender) -> np.ndarray:
    with torch.no_grad():
        return torch.cat(of.final(of.layers())).double().numpy()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    users, items, negatives = torch.tensor(BATCH).T
    return users, items, negatives[:, None]


# --- propagation


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("times", ["embedding_bag", "csr"])
def test_a_propagation_and_its_gradient(monkeypatch: pytest.MonkeyPatch, times: str) -> None:
    """Both sides receive what the dense matrix says, and send back the same of their gradients."""
    if times == "csr":  # what GPUs take
        monkeypatch.setattr("engine.models.graph.Sparse.times", lambda self, dense: self.csr() @ dense.contiguous())
    node = Propagation(ten_nodes())
    vectors = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    users, items = (part.clone().requires_grad_() for part in (vectors[:4], vectors[4:]))
    received = torch.cat(node(users, items))
    np.testing.assert_allclose(received.detach(), numpy_graph.normalised() @ vectors.numpy(), atol=1e-6)
    assert not received[4 + 5].any()  # nobody has item 5
    weights = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
    (received * weights).sum().backward()
    expected = numpy_graph.normalised().T @ weights.numpy()
    np.testing.assert_allclose(torch.cat([users.grad, items.grad]), expected, atol=1e-6)


def test_a_pair_is_one_edge() -> None:
    graph = Graph.of(np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4]), 4)
    assert (graph.items.tolist(), graph.offsets.tolist(), graph.repeated) == ([0, 2, 1], [0, 2, 2, 3], 1)
    for part in ("3 edges", "1 repeated", "1 repeated interaction counts once", "1 item without", "1 user without"):
        assert part in str(graph)


@pytest.mark.parametrize(
    ("items", "offsets", "reason"),
    [
        ([0, 1], [0, 2, 2], "two users"),
        ([1, 1], [0, 1, 2], "two items"),
        ([0, 1, 2, 0], [0, 3, 4], "3 different items"),
    ],
)
def test_what_is_no_graph(monkeypatch: pytest.MonkeyPatch, items: list[int], offsets: list[int], reason: str) -> None:
    monkeypatch.setattr("engine.models.graph.MOST_ITEMS", 2)
    with pytest.raises(ValueError, match=reason):
        Graph.of(np.array(items), np.array(offsets), 3)


# --- LightGCN


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_vectors_are_those_of_the_paper_and_a_history_is_a_new_node(layers: int) -> None:
    recommender = model(layers=layers)
    expected = np.mean(numpy_graph.layers(start(recommender), layers), axis=0)
    np.testing.assert_allclose(vectors(recommender), expected, atol=1e-6)
    np.testing.assert_allclose(recommender.index().rows, expected[4:], atol=1e-6)
    np.testing.assert_allclose(
        recommender.query(torch.zeros(4, 1, dtype=torch.int64), torch.arange(4)), expected[:4], atol=1e-6
    )
    for history in ([3], [4, 0, 1], [5, 2, 5], [0, 1, 2, 3, 4, 5]):
        folded = numpy_graph.folded(start(recommender), layers, history)
        np.testing.assert_allclose(recommender.query(torch.tensor([history]))[0].detach(), folded, atol=1e-6)


def test_loss_and_gradient_are_those_of_the_paper() -> None:
    recommender = model().train()
    expected, gradient = numpy_graph.lightgcn_loss(start(recommender), 2, BATCH, 0.3)
    loss = Pairs(PairsConfig(l2=0.3), recommender, *flat(HISTORIES), 4).loss(recommender, batch())
    loss.backward()
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(
        torch.cat([recommender.users.weight.grad, recommender.items.weight.grad]), gradient, atol=1e-6
    )


# --- NGCF


def weights(of: NGCF) -> list[tuple[np.ndarray, ...]]:
    """W1, W2 and biases of each layer, rows as inputs."""
    matrices_of_layers = []
    for mix in of.mixes:
        named = {name: parameter.detach().double().numpy().T for name, parameter in mix.named_parameters()}
        names = ("own.weight", "product.weight", "own.bias", "product.bias")
        matrices_of_layers.append(tuple(named[name] for name in names if name in named))
    return matrices_of_layers


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_messages_are_those_of_the_paper_or_of_its_code(variant: str) -> None:
    recommender = model("ngcf", variant=variant, layers=3)
    expected = numpy_graph.ngcf_shown(
        numpy_graph.ngcf_layers(start(recommender), weights(recommender), variant), variant
    )
    assert expected.shape == (10, 4 * 8)
    np.testing.assert_allclose(vectors(recommender), expected, atol=1e-6)
    for history in ([3], [4, 0, 1], [5, 2], [0, 1, 2, 3, 4, 5]):
        folded = numpy_graph.ngcf_folded(start(recommender), weights(recommender), variant, history)
        np.testing.assert_allclose(recommender.query(torch.tensor([history]))[0].detach(), folded, atol=1e-6)


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_gradient_is_the_slope_of_the_loss(variant: str) -> None:
    """Of E⁰ and of the matrices: central differences of the loss in numpy."""
    recommender = model("ngcf", variant=variant, dim=3, layers=2, message_dropout=0.0, node_dropout=0.0).train()
    e0, matrices = start(recommender), weights(recommender)

    def loss() -> float:
        return numpy_graph.ngcf_loss(e0, matrices, variant, BATCH, 0.3)

    ours = Pairs(PairsConfig(l2=0.3), recommender, *flat(HISTORIES), len(BATCH)).loss(recommender, batch())
    ours.backward()
    assert ours.item() == pytest.approx(loss(), rel=1e-5)
    gradients = {
        name: parameter.grad.numpy() for name, parameter in recommender.named_parameters() if parameter.grad is not None
    }
    places = [(e0, np.concatenate([gradients["users.weight"], gradients["items.weight"]]))]
    for layer, arrays in enumerate(matrices):
        names = ("own.weight", "product.weight", "own.bias", "product.bias")[: len(arrays)]
        places += [(array, gradients[f"mixes.{layer}.{name}"].T) for array, name in zip(arrays, names, strict=True)]
    for array, gradient in places:
        for place in np.ndindex(array.shape):
            slope = 0.0
            for sign in (1, -1):
                array[place] += sign * 1e-6
                slope += sign * loss() / 2e-6
                array[place] -= sign * 1e-6
            assert gradient[place] == pytest.approx(slope, abs=1e-5)


def test_what_dropout_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent node is heard by nobody; messages are dropped from what a layer gives."""
    recommender = model("ngcf", variant="paper", layers=1, message_dropout=0.0, node_dropout=0.5).train()
    monkeypatch.setattr(
        "engine.models.ngcf.dropout", lambda x, *_: x if x.shape[1] > 1 else x * 2 * (torch.arange(len(x))[:, None] > 0)
    )
    heard = recommender.propagation(
        recommender.users.weight * torch.tensor([[0.0], [2], [2], [2]]), recommender.items.weight * 2
    )
    (mix,) = recommender.mixes
    torch.testing.assert_close(recommender.layers()[1][1], mix(recommender.items.weight, heard[1]))
    monkeypatch.undo()
    recommender = model("ngcf", variant="code", layers=2, message_dropout=0.5, node_dropout=0.0).train()
    for side in recommender.layers()[1]:
        assert 0.2 < (side == 0).float().mean() < 0.8


# --- all of them


def test_layers_are_kept_until_training_goes_on() -> None:
    recommender, history = model(), torch.tensor([[0, 3]])
    before = recommender.query(history)
    recommender.layers = None  # type: ignore[assignment,method-assign]
    assert torch.equal(recommender.query(history), before)  # nothing is computed anew
    del recommender.layers
    recommender.train()
    with torch.no_grad():
        recommender.items.weight += 1
    assert not torch.equal(recommender.eval().query(history), before)


@pytest.mark.parametrize("name", ["lightgcn", "ngcf"])
def test_a_graph_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    config, graph, kind = small(name), ten_nodes(), MODELS[name]
    assert issubclass(kind, GraphRecommender)
    needed = kind.bytes_needed(config, graph)
    assert needed > graph.bytes + 4 * 4 * 10 * config.dim  # parameters, gradient and Adam's moments alone
    assert graph.bytes == sum(b.numel() * 4 for name, b in Propagation(graph).named_buffers() if "degrees" not in name)
    graph.check_bytes(needed)
    monkeypatch.setattr("engine.models.graph.MOST_BYTES", needed - 1)
    with pytest.raises(ValueError, match=r"GB is the bound.*model\.dim"):
        graph.check_bytes(needed)


# --- pairs


@pytest.mark.parametrize("sampling", ["pairs", "users"])
def test_pairs(sampling: str) -> None:
    """Every pair once, or users alike often; a negative is never the user's own."""
    pairs = Pairs(PairsConfig(sampling=sampling, negatives=2), model(), *flat(HISTORIES), 4)  # type: ignore[arg-type]
    assert (pairs.steps, pairs.typical_targets) == (3, 3)
    plan = torch.cat(list(pairs.batches(torch.Generator().manual_seed(0))))
    assert plan.sort().values.tolist() == list(range(9))
    users, items, negatives = pairs.draw(plan.repeat(200), torch.Generator().manual_seed(0))
    assert negatives.shape == (1800, 2)
    for user, item, others in zip(users.tolist(), items.tolist(), negatives.tolist(), strict=True):
        assert item in HISTORIES[user] and not {*others} & {*HISTORIES[user]}
    shares = users.bincount() / len(users)
    expected = [2 / 9, 3 / 9, 1 / 9, 3 / 9] if sampling == "pairs" else [0.25] * 4
    assert shares.tolist() == pytest.approx(expected, abs=0.03)
