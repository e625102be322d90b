"""RQ-VAE against a straight-line derivation from the paper, and against data with a known answer."""

import numpy as np
import pytest
import torch

from engine.errors import SeqscopeError
from engine.tokenizers import report
from engine.tokenizers.base import Material, Scaling
from engine.tokenizers.kmeans import centres
from engine.tokenizers.rqvae import Network, ResidualQuantiser, Rqvae, RqvaeConfig
from tests.tokenization.tiny import ITEMS, config, fit, groups, learning, material, planted


def by_hand(x: np.ndarray, network: Network, reduction: str) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Codes, ẑ and loss parts, one item and one level at a time."""
    weights = {name: tensor.detach().double().numpy() for name, tensor in network.state_dict().items()}

    def forward(part: str, h: np.ndarray) -> np.ndarray:
        layers = sorted({name.split(".")[1] for name in weights if name.startswith(part)}, key=int)
        for number, layer in enumerate(layers):
            h = weights[f"{part}.{layer}.weight"] @ h + weights[f"{part}.{layer}.bias"]
            if number < len(layers) - 1:
                h = np.maximum(h, 0)
        return h

    books = [weights[name] for name in sorted(weights) if "books" in name]
    codes, latents = [], []
    parts = {"reconstruction": 0.0, "codebook": 0.0, "commitment": 0.0}
    for item in x.astype(np.float64):
        residual, total, mine = forward("encoder", item), np.zeros(books[0].shape[1]), []
        for book in books:
            squares = [np.sum((residual - row) ** 2) for row in book]
            mine.append(int(np.argmin(squares)))
            size = 1 if reduction == "sum" else len(residual) * len(books)
            parts["codebook"] += min(squares) / size / len(x)
            parts["commitment"] += min(squares) / size / len(x)
            residual = residual - book[mine[-1]]
            total = total + book[mine[-1]]
        codes.append(mine)
        latents.append(total)
        error = np.sum((item - forward("decoder", total)) ** 2)
        parts["reconstruction"] += error / (1 if reduction == "sum" else len(item)) / len(x)
    return np.array(codes), np.array(latents), parts


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_codes_and_losses_are_the_papers(reduction: str) -> None:
    torch.manual_seed(0)
    network = Network(RqvaeConfig(levels=3, codes=5, dim=4, hidden=(9, 7), reduction=reduction), 6)  # type: ignore[arg-type]
    for book in network.quantiser.books:
        torch.nn.init.normal_(book)
    x = torch.randn(11, 6)
    found, quantised = network(x)
    codes, latents, parts = by_hand(x.numpy(), network, reduction)
    assert quantised.codes.tolist() == codes.tolist()
    assert np.allclose(quantised.latent.detach().numpy(), latents, atol=1e-5)
    for name, value in network.terms(x, found, quantised).items():
        assert float(value.detach()) == pytest.approx(parts[name], rel=1e-5)


def test_gradients_go_where_the_paper_sends_them() -> None:
    torch.manual_seed(0)
    quantiser = ResidualQuantiser(3, 4, 5)
    for book in quantiser.books:
        torch.nn.init.normal_(book)
    z = torch.randn(6, 5, requires_grad=True)
    quantised = quantiser(z)
    weights = torch.randn(6, 5)
    (quantised.latent * weights).sum().backward()
    assert torch.equal(z.grad, weights)  # straight through, as though nothing had been rounded
    assert all(book.grad is None for book in quantiser.books)

    quantised = quantiser(z.detach())  # codebook term: the rows alone move, each towards its own residual
    level = 1
    loss = (quantised.residuals[level].detach() - quantised.rows[level]).square().sum()
    loss.backward()
    moved = [book.grad is not None and bool(book.grad.any()) for book in quantiser.books]
    assert moved == [False, True, False]

    z.grad = None
    quantised = quantiser(z)  # commitment: the encoder alone moves, from every level
    sum((r - e.detach()).square().sum() for r, e in zip(quantised.residuals, quantised.rows, strict=True)).backward()
    expected = 2 * sum(r - e for r, e in zip(quantised.residuals, quantised.rows, strict=True)).detach()
    assert torch.allclose(z.grad, expected, atol=1e-6)


def test_it_finds_groups_of_groups() -> None:
    outer, inner = groups()
    tokenizer = fit("rqvae", material(), epochs=60, codes=4, levels=2)
    codes = tokenizer.identify(material())
    depths = report.purity(codes, inner)
    assert report.purity(codes, outer)[0]["purity"] > 0.9
    assert depths[1]["purity"] > 0.8
    assert depths[1]["purity"] > depths[0]["purity"] + 0.3
    assert tokenizer.lost(material(), codes) < 0.15


def test_it_finds_none_where_there_are_none() -> None:
    given = material()
    noise = np.random.default_rng(0).normal(size=given.vectors.shape).astype(np.float32)  # type: ignore[union-attr]
    tokenizer = fit("rqvae", Material(given.items, noise), epochs=30, codes=4, levels=2)
    codes = tokenizer.identify(Material(given.items, noise))
    first = report.purity(codes, groups()[0])[0]
    assert first["purity"] < first["chance"] + 0.08
    assert tokenizer.lost(Material(given.items, noise), codes) > 0.5


def test_codebooks_start_from_the_whole_catalogue() -> None:
    """The last items of the catalogue are a group of their own; a start from the first batch could not know them."""
    vectors = planted()
    vectors[-20:] += 40
    points = centres(vectors, 8, np.random.default_rng(0))
    nearest = np.linalg.norm(points[:, None] - vectors[None, -20:], axis=2).min()
    assert nearest < 20  # the others are 130 away
    given = Material(material().items, vectors)
    tokenizer = fit("rqvae", given, epochs=1, codes=8, levels=1)
    first = tokenizer.identify(given)[:, 0]
    assert not set(first[-20:]) & set(first[:-20])


def test_fewer_items_than_codes() -> None:
    given = material(5)
    tokenizer = fit("rqvae", given, epochs=3, codes=16)
    assert tokenizer.identify(given).shape == (5, 2)
    points = centres(given.vectors, 16, np.random.default_rng(0))  # type: ignore[arg-type]
    assert points.shape == (16, given.vectors.shape[1])  # type: ignore[union-attr]
    assert len(np.unique(points, axis=0)) == 16


def test_a_balanced_start_uses_most_codes() -> None:
    tokenizer = fit("rqvae", material(spread=0.5), epochs=5, start="balanced")
    assert report.usage(tokenizer.identify(material(spread=0.5)), tokenizer.sizes)[0]["used"] >= 6


def test_dead_codes_come_back() -> None:
    x = torch.from_numpy(planted(spread=0.5))
    settings = config("rqvae", dead_after=2, levels=2)
    torch.manual_seed(0)
    tokenizer = Rqvae(settings, Scaling.of(x.numpy(), False), Network(settings, x.shape[1]))
    book = tokenizer.network.quantiser.books[0]
    with torch.no_grad():
        tokenizer._start(x, torch.Generator().manual_seed(0))
        book[3:] = 1e4  # nobody is near
    optimiser = torch.optim.Adam(tokenizer.network.parameters())
    draw = torch.Generator().manual_seed(0)
    far = []
    for _ in range(3):
        tokenizer.loss(x, torch.arange(ITEMS), draw)["loss"].backward()
        optimiser.step()
        tokenizer._end_epoch(x, optimiser, draw)
        far.append(int((book.abs().amax(1) > 5e3).sum()))
    assert far == [5, 0, 0]  # idle for one epoch: nothing; for two: put where items are
    used = report.usage(tokenizer.identify(Material(material().items, x.numpy())), tokenizer.sizes)[0]["used"]
    assert used == 8


def test_no_code_is_dead_after_training() -> None:
    vectors = planted(spread=0.5)
    given = Material(material().items, vectors)
    settings = {"epochs": 1, "codes": 16, "levels": 2, "start": "random"}
    left = fit("rqvae", given, dead_after=0, **settings)
    revived = fit("rqvae", given, dead_after=50, **settings)  # not within this training
    dead = [level["dead"] for level in report.usage(left.identify(given), left.sizes)]
    assert max(dead) > 0
    assert [level["dead"] for level in report.usage(revived.identify(given), revived.sizes)] == [0, 0]
    assert revived.lost(given, revived.identify(given)) <= left.lost(given, left.identify(given)) + 1e-6


def test_inputs_are_standardised_by_the_catalogue_it_was_fitted_to() -> None:
    vectors = planted()
    vectors[:, 3] = 7.0
    scaling = Scaling.of(vectors, True)
    scaled = scaling(vectors)
    assert np.allclose(scaled.mean(0), 0, atol=1e-4)
    assert np.allclose(np.delete(scaled, 3, 1).std(0), 1, atol=1e-4)
    assert not scaled[:, 3].any()
    assert np.array_equal(scaling(vectors[:5]), scaled[:5])
    assert np.array_equal(Scaling.of(vectors, False)(vectors), vectors)


def test_a_loss_that_is_none_stops_with_a_message() -> None:
    broken = learning(3)
    broken = type(broken)(type(broken.optimiser)(name="adam", lr=1e30), broken.training)
    with pytest.raises(SeqscopeError, match="loss is"):
        Rqvae.fit(material(), config("rqvae"), np.random.default_rng(1), broken)
