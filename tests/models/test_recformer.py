"""Recformer against its re-derivation in numpy, and its attention against the dense one with a mask."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from engine.models import layers
from engine.models.recformer import Recformer, RecformerConfig
from engine.text.bert import Bert, BertConfig
from tests.models import numpy_recformer
from tests.models.contract import ITEMS, MATERIALS, USERS, batch, build, close, histories, small

WORDS = MATERIALS["words"]
TEXT = [
    list(zip(WORDS.tokens[a:b].tolist(), WORDS.kinds[a:b].tolist(), strict=True))
    for a, b in zip(WORDS.offsets[:-1], WORDS.offsets[1:], strict=True)
]


def derived(model: Recformer, history: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is read, states, weights."""
    config = model.config
    rows = numpy_recformer.sequence(history, TEXT, WORDS.first, config.max_tokens)
    state = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    window = config.window if config.attention == "window" else None
    return rows, *numpy_recformer.forward(rows, state, config.layers, config.heads, window)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"window": 64},
    {"attention": "full", "layers": 3, "heads": 1},
    {"max_tokens": 17, "window": 8},
    {"item_positions": False, "token_types": False, "temperature": 1.0},
    {"max_tokens": 2, "max_length": 1},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_network_is_that_of_the_paper(settings: dict[str, Any]) -> None:
    model = build("recformer", **settings)
    for history in histories(model, 6):
        rows, states, _ = derived(model, history)
        text = model.sequences(torch.tensor([history]))
        assert text.real.all()
        assert np.array_equal(torch.stack([text.tokens, text.kinds, text.places], -1)[0].numpy(), rows)
        np.testing.assert_allclose(model.hidden(text, first_only=False)[0].detach().numpy(), states, atol=1e-4)
        expected = states[0] / np.linalg.norm(states[0])
        np.testing.assert_allclose(
            model.query(torch.tensor([history]))[0].detach().numpy() * model.config.temperature, expected, atol=1e-5
        )


def test_a_row_is_the_state_over_the_words_of_the_item_alone() -> None:
    model = build("recformer")
    rows, bias = model.index()
    assert not bias.any()
    for item in (0, 4, ITEMS - 1):  # 4 has no words
        states = derived(model, [item])[1]
        np.testing.assert_allclose(rows[item].numpy(), states[0] / np.linalg.norm(states[0]), atol=1e-5)
    scores = model.scores(torch.tensor([[3, 5]]))
    assert scores.abs().max() <= 1 / model.config.temperature + 1e-3


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=str)
def test_the_map_sums_the_words_of_each_item(settings: dict[str, Any]) -> None:
    model = build("recformer", **settings)
    for history in histories(model, 5):
        rows, _, weights = derived(model, history)
        # [CLS] stands last, the newest item before it
        place = np.where(rows[:, 2] == 0, len(history), len(history) - rows[:, 2])
        expected = np.zeros((*weights.shape[:2], len(history) + 1, len(history) + 1))
        for i in range(len(history) + 1):
            if not (place == i).any():
                expected[..., i, i] = 1  # beyond the last token that is read
            for j in range(len(history) + 1):
                if (place == i).any():
                    expected[..., i, j] = weights[:, :, place == i][..., place == j].sum(-1).mean(-1)
        _, maps, words = model.looked_at(torch.tensor([history]))
        np.testing.assert_allclose(maps[0].detach().numpy(), expected, atol=1e-5)
        for number in range(len(history)):
            own = weights[:, :, 0][..., place == number]
            found = words[0, :, :, number].detach().numpy()
            np.testing.assert_allclose(found[..., : own.shape[-1]], own, atol=1e-5)
            assert not found[..., own.shape[-1] :].any()
        close(words.sum(-1)[0], maps[0, :, :, -1, :-1])


# --- the window


def dense(q: Tensor, k: Tensor, v: Tensor, real: Tensor, radius: int) -> Tensor:
    place = torch.arange(q.shape[2])
    band = (place[:, None] - place).abs() <= radius
    band[0], band[:, 0] = True, True
    return F.scaled_dot_product_attention(q, k, v, attn_mask=band & real[:, None, None])


@pytest.mark.parametrize(("length", "radius"), [(1, 5), (16, 1), (33, 5), (33, 40)])
def test_blocks_are_the_dense_attention_with_a_band(length: int, radius: int) -> None:
    generator = torch.Generator().manual_seed(length)
    parts = [torch.randn(3, 2, length, 4, generator=generator, requires_grad=True) for _ in range(3)]
    real = torch.arange(length) < torch.tensor([[length], [max(1, length // 2)], [1]])
    found, expected = layers.attend_in_window(*parts, real, radius, 0.0), dense(*parts, real, radius)
    close(found, expected)
    into = torch.randn(found.shape, generator=generator)
    for one, other in zip(
        torch.autograd.grad(found, parts, into), torch.autograd.grad(expected, parts, into), strict=True
    ):
        close(one, other)
    groups = torch.rand(3, length, 4, generator=generator)
    shares = layers.shares_of_all(parts[0], parts[1], real, radius=radius) @ groups[:, None]
    close(shares, dense(parts[0], parts[1], groups[:, None].expand(-1, 2, -1, -1), real, radius))


class Largest(TorchDispatchMode):
    """The most numbers that any operation answers with."""

    numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.numbers = max(self.numbers, found.numel())
        return found


def test_a_whole_history_of_1024_tokens_never_makes_a_square() -> None:
    config = RecformerConfig(dim=8, layers=2, heads=1, max_length=50, max_tokens=1024, window=8)
    tiled = {name: np.tile(getattr(WORDS, name), 20) for name in ("tokens", "kinds", "attributes", "words")}
    long = dataclasses.replace(WORDS, **tiled, offsets=WORDS.offsets * 20)
    model = Recformer(config, ITEMS, USERS, torch.Generator().manual_seed(0), long).train()
    items = torch.arange(50)[None] % ITEMS
    assert model.sequences(items).tokens.shape == (1, 1024)
    with Largest() as largest:
        model.query(items).sum().backward()
    assert largest.numbers < 1024 * 1024 // 8


# --- where it starts


def test_it_starts_from_a_bert() -> None:
    bert = Bert(BertConfig(WORDS.vocabulary, 8, 2, 2, 32, positions=10), torch.Generator().manual_seed(1)).eval()
    config = small("recformer", max_tokens=25, attention="full")
    model = Recformer(config, ITEMS, USERS, torch.Generator().manual_seed(0), WORDS, bert.state_dict()).eval()
    # positions beyond its last are its own once more
    assert torch.equal(model.positions.weight[10:20], bert.positions.weight)
    assert torch.equal(model.positions.weight[20:], bert.positions.weight[:5])
    # with what Recformer adds at zero, the same states
    with torch.no_grad():
        model.types.weight[:] = bert.types.weight[0]
        model.places.weight[:] = 0
    text = model.sequences(torch.tensor([[0, 1]]))
    tokens = text.tokens[:, :10]
    text.tokens, text.kinds, text.places, text.real = (t[:, :10] for t in (tokens, text.kinds, text.places, text.real))
    model.layers[0].dropout = model.layers[1].dropout = bert.layers[0].dropout  # type: ignore[assignment, union-attr]
    close(model.hidden(text, first_only=False), bert(tokens))


def test_of_a_deeper_start_some_layers_are_taken() -> None:
    deep = build("recformer", layers=4)
    for count, taken in ((1, [3]), (2, [0, 3]), (3, [0, 2, 3]), (4, [0, 1, 2, 3])):
        config = small("recformer", layers=count)
        model = Recformer(config, ITEMS, USERS, torch.Generator().manual_seed(0), WORDS, deep.state_dict())
        for layer, source in enumerate(taken):
            for name, tensor in model.layers[layer].state_dict().items():
                assert torch.equal(tensor, deep.layers[source].state_dict()[name])
    longer = Recformer(small("recformer", max_length=20), ITEMS, USERS, torch.Generator(), WORDS, deep.state_dict())
    assert torch.equal(longer.places.weight[: len(deep.places.weight)], deep.places.weight)


def test_a_start_of_other_sizes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"does not fit.*\(300, 8\).*12"):
        start = dict(build("recformer").state_dict())
        start["words.weight"] = start["words.weight"][:300]
        Recformer(small("recformer", dim=12), ITEMS, USERS, torch.Generator(), WORDS, start)
    with pytest.raises(ValueError, match=r"it has no layers\.2"):
        Recformer(small("recformer", layers=3), ITEMS, USERS, torch.Generator(), WORDS, build("recformer").state_dict())


def test_items_are_encoded_in_batches_as_alone() -> None:
    model = build("recformer")
    before = model.matrix.clone()
    model.train().refresh()
    assert model.training
    close(model.matrix, before)
    for item in range(ITEMS):
        close(model.matrix[item], model.eval().direction(model.sequences(torch.tensor([[item]])))[0])


def test_new_items_are_encoded_as_the_others_were() -> None:
    model = build("recformer")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1
    then = model.item_encoder()
    close(then.direction(then.sequences(torch.arange(ITEMS)[:, None])), model.matrix)
    assert not torch.allclose(model.direction(model.sequences(torch.arange(ITEMS)[:, None])), model.matrix, atol=1e-3)


def test_in_training_the_windows_are_the_same() -> None:
    model = build("recformer", dropout=1e-9, window=4)
    items = batch(model, histories(model, 9))
    expected = model.eval().query(items)
    close(model.train().query(items), expected, 1e-4)
