"""Mult-VAE against its re-derivation in numpy, and what makes it a model of sets."""

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.models import mult_vae
from engine.models.mult_vae import MultVAE
from engine.training.objectives.sets import Denoising, DenoisingConfig, Multinomial, MultinomialConfig
from tests.models import numpy_mult_vae
from tests.models.contract import ITEMS, build, histories
from tests.training.tiny import flat

NAMES = {
    "w1": "items.weight", "b1": "items_bias", "w2": "encoder.weight", "b2": "encoder.bias",
    "w3": "decoder.weight", "b3": "decoder.bias", "w4": "output.weight", "b4": "output.bias",
}  # fmt: skip
SEQUENCES = [[3, 1, 3, 8], [], [5], list(range(12)), [22, 0]]
"""Training histories; the longest exceeds `max_length` of the small model, and one has an item twice."""


def as_in_numpy(name: str, tensor: Tensor) -> np.ndarray:
    """A parameter, or its gradient, as [inputs, outputs] and without the row of the padding."""
    values = tensor.detach().double().numpy()
    return values[:ITEMS] if name == "w1" else values.T


def numpy_parameters(model: MultVAE) -> numpy_mult_vae.Parameters:
    return {name: as_in_numpy(name, model.get_parameter(ours)) for name, ours in NAMES.items()}


def objective(model: MultVAE, **config: float) -> Multinomial:
    return Multinomial(MultinomialConfig(**config), model, *flat(SEQUENCES), batch_size=4)


def test_scores_are_those_of_the_paper() -> None:
    model = build("mult-vae")
    for history in histories(model):
        _, _, logits = numpy_mult_vae.loss(history, numpy_parameters(model), np.zeros(8), 0)
        np.testing.assert_allclose(model.scores(torch.tensor([history]))[0].detach(), logits, atol=1e-5)


def test_loss_and_gradient_are_those_of_the_paper() -> None:
    model = build("mult-vae", dropout=0.0).train()
    learnt = objective(model, beta=0.3, anneal_steps=0)
    learnt.begin_step(0)
    examples = torch.arange(4)
    torch.manual_seed(5)
    loss = learnt.loss(model, learnt.draw(examples, torch.Generator()))
    loss.backward()
    torch.manual_seed(5)
    noise = torch.randn(4, 8).double().numpy()
    users = [
        numpy_mult_vae.loss(history, numpy_parameters(model), eps, 0.3)
        for history, eps in zip((SEQUENCES[0], SEQUENCES[2], SEQUENCES[3][-8:], SEQUENCES[4]), noise, strict=True)
    ]
    assert loss.item() == pytest.approx(np.mean([value for value, _, _ in users]), rel=1e-5)
    for name, ours in NAMES.items():
        expected = np.mean([gradient[name] for _, gradient, _ in users], axis=0)
        gradient = model.get_parameter(ours).grad
        np.testing.assert_allclose(as_in_numpy(name, gradient), expected, atol=1e-5, err_msg=name)


def test_the_normalised_input_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout acts after the division by the length: what stays is 1 / (length · (1 − rate))."""
    model, weights = build("mult-vae", dropout=0.5, max_length=400).train(), []
    monkeypatch.setattr(mult_vae, "weighted_sum", lambda table, rows, of: (weights.append(of), table[rows[:, 0]])[1])
    model.code(torch.arange(16).repeat(200, 1))
    (drawn,) = weights
    assert set(drawn.unique().tolist()) == {0.0, 0.5}
    assert float((drawn == 0).float().mean()) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("hidden_layers", [0, 1])
def test_a_denoising_autoencoder(hidden_layers: int) -> None:
    """Mult-DAE: a tanh at the code, nothing drawn, and an L2 term over weights alone."""
    model = build("mult-dae", hidden_layers=hidden_layers, dropout=0.0)
    names = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    weights = [np.delete(names["items.weight"], ITEMS, 0).T]
    weights += [names[f"{part}.weight"] for part in (("encoder", "decoder") if hidden_layers else ()) + ("output",)]
    biases = [value for name, value in names.items() if value.ndim == 1]
    losses = []
    for history in (SEQUENCES[0], SEQUENCES[4]):
        logits = numpy_mult_vae.denoised(history, weights, biases)
        np.testing.assert_allclose(model.scores(torch.tensor([history]))[0].detach(), logits, atol=1e-5)
        shares = logits - np.log(np.exp(logits).sum())
        losses.append(-sum(shares[item] for item in set(history)))
    offsets = torch.tensor([0, 4, 6])
    learnt = Denoising(DenoisingConfig(l2=0.2), model, torch.tensor(SEQUENCES[0] + SEQUENCES[4]), offsets, 2)
    expected = np.mean(losses) + 0.1 * sum((weight**2).sum() for weight in weights)
    loss = learnt.loss(model.train(), learnt.draw(torch.arange(2), torch.Generator()))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_how_it_starts() -> None:
    model = MultVAE(mult_vae.MultVAEConfig(), 3000, 1, torch.Generator().manual_seed(0))
    edge = (6 / 3600) ** 0.5  # Glorot: both tables of items have 3,000 and 600 ends
    for table in (model.items.weight[:3000], model.output.weight):
        assert 0.99 * edge < table.abs().max() <= edge
    assert 0 < model.output.bias.abs().max() <= 0.002
    assert not model.items.weight[3000].any()


# --- β


def test_beta_grows_to_its_cap() -> None:
    """By 1 / anneal_steps a step, as in the authors' code: the cap does not change how fast."""
    learnt = objective(build("mult-vae"), beta=0.25, anneal_steps=100)
    betas = []
    for step in (0, 1, 10, 24, 25, 26, 10_000):
        learnt.begin_step(step)
        betas.append(learnt.draw(torch.arange(2), torch.Generator())[1].tolist())
    expected = [0, 0.01, 0.1, 0.24, 0.25, 0.25, 0.25]
    assert [row[0] for row in betas] == pytest.approx(expected) == [row[1] for row in betas]
